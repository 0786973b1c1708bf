"""`shiftwork probe` beside a real node, and the file between them."""

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from shiftwork.cli import main
from shiftwork.serve.vitals import Vitals, forget_vitals, write_vitals
from tests.deploy.conftest import Nodes
from tests.polling import wait_until

WELL = Vitals(pid=os.getpid(), stage="running", leased=True, words="follows", at=0.0)


def probe(question: str, path: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["probe", question, "--probe-file", str(path), *options], prog_name="shiftwork")
    return result.exit_code, result.output


def is_well(question: str, path: Path, *options: str) -> bool:
    return probe(question, path, *options)[0] == 0


def test_a_node_from_its_start_to_its_end(nodes: Nodes, tmp_path: Path) -> None:
    path = tmp_path / "probe"
    assert probe("live", path)[0] == 1
    node = nodes.up("--probe-file", str(path))
    wait_until(lambda: is_well("ready", path))
    said = f"the node (process {node.pid}) is alive: leads: 7 slots in 2 pools, 0 jobs running\n"
    wait_until(lambda: probe("live", path) == (0, said))

    [job_id] = nodes.enqueue(nodes.call(1, 60.0))
    wait_until(lambda: "1 job running" in probe("live", path)[1])
    node.signal(signal.SIGTERM)
    wait_until(lambda: not is_well("ready", path))
    assert is_well("live", path), "a node that lets its jobs finish is alive"
    said = f"shiftwork: the node (process {node.pid}) is not ready: stopping: 1 job running\n"
    assert probe("ready", path) == (1, said)
    nodes.let_finish()
    assert node.end() == 0
    nodes.completed([job_id])
    assert "there is no" in probe("live", path)[1]
    assert list(tmp_path.glob("probe*")) == []


def test_the_answer_in_json_is_on_stdout_whether_or_not_the_node_is_well(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    code, told = probe("live", path, "--json")
    assert (code, json.loads(told)["ok"]) == (1, False)
    write_vitals(path, replace(WELL, at=time.monotonic()))
    code, told = probe("ready", path, "--json")
    assert code == 0
    assert json.loads(told) == {
        "question": "ready",
        "ok": True,
        "text": f"the node (process {os.getpid()}) is ready: follows",
    }


def test_a_frozen_node_is_not_alive(nodes: Nodes, tmp_path: Path) -> None:
    path = tmp_path / "probe"
    node = nodes.up(SHIFTWORK_PROBE=str(path))
    wait_until(lambda: is_well("live", path))
    node.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: not is_well("live", path, "--within", "3"))
        assert "it hangs or has ended" in probe("ready", path, "--within", "3")[1]
    finally:
        node.signal(signal.SIGCONT)
    wait_until(lambda: is_well("live", path, "--within", "3"))


def test_a_node_without_its_store_is_alive_but_not_ready(nodes: Nodes, tmp_path: Path) -> None:
    path = tmp_path / "probe"
    nodes.up("--probe-file", str(path), SHOP_LEASE="3")
    wait_until(lambda: is_well("ready", path))
    with closing(sqlite3.connect(nodes.database, timeout=30)) as other:
        other.execute("begin exclusive")
        wait_until(lambda: "is the store available?" in probe("ready", path)[1])
        assert is_well("live", path)
        other.rollback()
    wait_until(lambda: is_well("ready", path))


def test_a_probe_file_that_cannot_be_written_is_refused_at_the_start(nodes: Nodes, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "probe"
    node = nodes.start("--probe-file", str(path))
    assert node.end() == 1
    assert node.said(f"shiftwork: cannot write the probe file {path}: No such file or directory")


def test_a_node_that_was_killed_leaves_a_file_that_grows_old(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    write_vitals(path, replace(WELL, at=time.monotonic() - 16))
    assert not is_well("live", path)
    assert is_well("live", path, "--within", "1m")


def test_a_file_from_before_the_machine_was_started(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    write_vitals(path, replace(WELL, at=time.monotonic() + 1_000))
    assert not is_well("live", path)


def test_a_node_that_starts_is_alive_but_not_ready(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    write_vitals(path, replace(WELL, stage="starting", leased=False, at=time.monotonic()))
    assert is_well("live", path)
    assert not is_well("ready", path)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"pid": "x"}'])
def test_a_file_that_is_something_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "probe"
    path.write_bytes(content)
    assert "was not written by a node" in probe("live", path)[1]
    assert "cannot read" in probe("live", tmp_path)[1]


def test_the_end_of_a_node_does_not_remove_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    write_vitals(path, replace(WELL, pid=1))
    forget_vitals(path)
    assert path.exists()


def test_without_a_file_the_command_line_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIFTWORK_PROBE", raising=False)
    result = CliRunner().invoke(main, ["probe", "live"])
    assert result.exit_code == 2
    assert "--probe-file" in result.output
