"""A scenario file that someone else wrote: it cannot fill the memory, exhaust the stack or run for hours."""

import time
from pathlib import Path

import pytest

from shiftwork import ConfigurationError
from shiftwork.sim.reading import read_scenario
from shiftwork.sim.scenario_limits import MOST_FILE_BYTES, MOST_SIMULATED_RUNS, refuse_size
from shiftwork.sim.study import study_scenario
from shiftwork.sim.traffic import multiplied
from tests.cli.terminal import Terminal
from tests.sim.scenarios import changed, small

SOON = 30.0
"""A bomb would take minutes or hours."""

HUGE = "0x" + "f" * 20_000
MANY_JOBS = "[1_900_000]\nrun_seconds = 2.0\n" + "".join(f"[configurations.c{n}]\n" for n in range(40))
BOMBS = {
    "nested lists": (("[100, 800, 100]", "[" * 5_000 + "]" * 5_000), "nested too deeply|far too large|recursion"),
    "nested tables": (("[100, 800, 100]", "{a=" * 900 + "1" + "}" * 900), "nested too deeply|expected|dots"),
    "a dotted key": (("name = ", f"{'a.' * 200_000}a = 1\nname = "), "dots or more"),
    "a dotted key with spaces": (("name = ", f"{'a . ' * 200_000}a = 1\nname = "), "dots or more"),
    "dotted table names": (("name = ", f"[{'a.' * 200_000}a]\nname = "), "dots or more"),
    "many keys": (("name = ", "".join(f"k{n} = 1\n" for n in range(60_000)) + "name = "), "unknown key"),
    "many jobs": (("[100, 800, 100]", "[1e12]"), "runs of jobs"),
    "infinitely many": (("[100, 800, 100]", "[1e308, 1e308]"), "runs of jobs"),
    "many jobs in many configurations": (
        ("[100, 800, 100]\nrun_seconds = { median = 2.0, p95 = 5.0 }", MANY_JOBS),
        "76,000,000 runs of jobs together; at most 10,000,000",
    ),
    "a huge burst": (("[100, 800, 100]", '[1]\nbursts = [{ at = "00:01", jobs = 10_000_000_000 }]'), "runs of jobs"),
    "endless retries": (
        ("[100, 800, 100]", "[1000]\nfailing = 0.9999999\nmax_retries = 1_000_000_000"),
        "runs of jobs",
    ),
    "many slots": (("max_workers = 8", "max_workers = 1_000_000_000"), "slots; at most 100,000"),
    "many nodes": (("cores = 8", "cores = 8\ncount = 1_000_000_000"), "nodes; at most 2,000"),
    "a thousand years": (('"20m"', "31_536_000_000"), "ten years|31 days"),
    "a year": (('"20m"', '"365d"'), "at most 31 days"),
    "a digit too many": (('"20m"', "9" * 5_000), "far too large|not valid TOML"),
    "a number of a million bits": (("max_workers = 8", f"max_workers = {HUGE}"), "far too large"),
    "retries of a million bits": (("[100, 800, 100]", f"[1]\nmax_retries = {HUGE}"), "far too large"),
    "a seed of a million bits": (("name = ", f"seed = {HUGE}\nname = "), "seed must be"),
    "much memory": (('"16GB"', f'"{"9" * 400}GB"'), "memory must be"),
    "a wide spread": (("median = 2.0, p95 = 5.0", "median = 1e-300, p95 = 1e300"), "between a microsecond and ten"),
    "the year 9999": (("name = ", "start = 9999-12-31\nname = "), "start must be between"),
    "many configurations": (
        ("[targets.images]", "".join(f"[configurations.c{n}]\n" for n in range(20_000)) + "[targets.images]"),
        "20,000 configurations; at most 50",
    ),
    "many workers": (
        ("[targets.images]", "".join(f"[workers.w{n}]\n" for n in range(20_000)) + "[targets.images]"),
        "20,001 workers; at most 2,000",
    ),
    "a large file": (("name = ", "#" + "x" * MOST_FILE_BYTES + "\nname = "), "too large for a scenario"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_with_a_reason_and_at_once(bomb: str) -> None:
    change, words = BOMBS[bomb]
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match=words) as raised:
        read_scenario(changed(change), name="day.toml")
    assert len(str(raised.value)) < 20_000
    assert time.monotonic() - began < SOON


def test_more_load_is_counted_before_it_is_simulated() -> None:
    with pytest.raises(ConfigurationError, match="1,000,000,000 runs of jobs; at most 2,000,000"):
        study_scenario(multiplied(small(), 1e6))
    with pytest.raises(ConfigurationError, match="runs of jobs"):
        study_scenario(small(), search=True, headroom=1e6)
    refuse_size(small(), load=MOST_SIMULATED_RUNS / 1_000)


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    said = Terminal(tmp_path).run("plan", "/dev/zero", store=None)
    assert said.exit_code != 0
    assert "too large for a scenario" in said.output
