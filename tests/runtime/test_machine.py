"""What a node may use: the limits of a container, and of a service manager."""

from pathlib import Path

from shiftwork.runtime.machine import measure, starved


def limit(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_a_container(tmp_path: Path) -> None:
    limit(tmp_path, cpu__max="50000 100000", memory__max="1000000")
    (tmp_path / "mine").write_text("0::/\n")
    assert (machine := measure(tmp_path, tmp_path / "mine")).cores == 0.5
    assert machine.memory == 1_000_000


def test_a_service_of_systemd_and_the_slice_around_it(tmp_path: Path) -> None:
    limit(tmp_path / "system.slice" / "shiftwork.service", cpu__max="70000 100000", memory__max="max")
    limit(tmp_path / "system.slice", cpu__max="max 100000", memory__max="2000000")
    (tmp_path / "mine").write_text("0::/system.slice/shiftwork.service\n")
    assert (machine := measure(tmp_path, tmp_path / "mine")).cores == 0.7
    assert machine.memory == 2_000_000


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    limit(tmp_path / "cpu" / "job", cpu__cfs_quota_us="30000", cpu__cfs_period_us="100000")
    limit(tmp_path / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    limit(tmp_path / "memory", memory__limit_in_bytes="3000000")
    (tmp_path / "mine").write_text("4:memory:/elsewhere\n1:cpu,cpuacct:/job\n0::/\n")
    assert (machine := measure(tmp_path, tmp_path / "mine")).cores == 0.3
    assert machine.memory == 3_000_000


def test_no_limits(tmp_path: Path) -> None:
    machine = measure(tmp_path, tmp_path / "mine")
    assert machine.cores >= 1
    assert machine.memory > 1_000_000


def test_how_many_died_for_want_of_memory(tmp_path: Path) -> None:
    mine, stat = tmp_path / "mine", tmp_path / "vmstat"
    assert starved(tmp_path, mine, stat) == 0
    stat.write_text("nr_free_pages 5\noom_kill 3\noom_kill_disable 9\n")
    assert starved(tmp_path, mine, stat) == 3
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "memory.events").write_text("low 0\noom 7\noom_kill 1\noom_group_kill 0\n")
    mine.write_text("1:cpu,cpuacct:/other\n0::/job\n")
    assert starved(tmp_path, mine, stat) == 1, "the others died elsewhere on this machine"
