"""A scenario file that cannot work is refused with the place, the cause and the remedy, all problems at once."""

import pytest

from shiftwork.core.model.jobs import JobPriority
from shiftwork.errors import ConfigurationError
from shiftwork.sim.reading import read_scenario
from tests.sim.scenarios import changed, small

WRONG = [
    (("cores = 8", "cores = "), "a day is not valid TOML: Invalid value (at line 8, column 9)"),
    (("length =", "lenght ="), "unknown key 'lenght'; did you mean 'length'?"),
    (('"20m"', '"an hour"'), "length: 'an hour' is not a duration; write seconds"),
    (('"20m"', "-5"), "length must be above 0, not -5"),
    (("length =", 'timezone = "Vienna"\nlength ='), "timezone"),
    (("length =", 'start = "Monday"\nlength ='), "start must be a date or a time such as 2026-03-03, not 'Monday'"),
    (('[nodes.machine]\ncores = 8\nmemory = "16GB"', ""), "the scenario has no nodes; add [nodes.NAME] with cores"),
    (("cores = 8", "cores = 0"), "[nodes.machine]: cores must be above 0, not 0"),
    (("cores = 8", "core = 8"), "[nodes.machine]: unknown key 'core'; did you mean 'cores'?"),
    (('"16GB"', '"much"'), '[nodes.machine]: memory must be a number of bytes, or a string such as "512MB"'),
    (("[nodes.machine]", "[nodes]"), "nodes must be tables: write [nodes.NAME] above its keys"),
    (("min_workers = 4", "min_worker = 4"), "pool 'images': unknown option 'min_worker'; did you mean 'min_workers'?"),
    (("min_workers = 4", "min_workers = 9"), "min_workers (9) must not be above max_workers (8)"),
    (
        ('kind = "process"', 'kind = "process"\nlabels = ["gpu"]'),
        "[pools.images]: no node can host a single slot: no node has gpu",
    ),
    (
        ('kind = "process"', 'kind = "process"\ncpu = 16'),
        "no node can host a single slot: no suitable node has 16 cores",
    ),
    (('pool = "images"', 'pool = "imags"'), "[workers.resize]: there is no pool 'imags'; did you mean 'images'?"),
    (("[100, 800, 100]", "[300, -1]"), "[workers.resize]: arrivals must be numbers of at least 0"),
    (("[100, 800, 100]", "[0, 0]"), "no jobs come: give a worker arrivals above 0"),
    (("[100, 800, 100]", '"many"'), "[workers.resize]: arrivals: expected `float | array`, got `str`"),
    (("median = 2.0, p95 = 5.0", "median = 2.0"), "[workers.resize]: run_seconds: give a number of seconds, or two of"),
    (("median = 2.0, p95 = 5.0", "median = 5.0, p95 = 2.0"), "median (5) must not be above p95 (2)"),
    (("median = 2.0, p95 = 5.0", "mean = 1.0, p95 = 50.0"), "no lognormal distribution has p95 50 with mean 1"),
    (("median = 2.0, p95 = 5.0", "counts = [1, 2]"), "counts must be 51 whole numbers"),
    (("p95 = 5.0 }", "p95 = 5.0 }\nfailing = 1.5"), "failing must be a share of at least 0 and below 1, not 1.5"),
    (("p95 = 5.0 }", 'p95 = 5.0 }\npriority = "hihg"'), "priority must be one of low, normal, high, critical"),
    (
        ("p95 = 5.0 }", 'p95 = 5.0 }\nbursts = [{ at = "noon", jobs = 5 }]'),
        'bursts: at must be a clock time such as "11:00"',
    ),
    (("p95 = 5.0 }", 'p95 = 5.0 }\nrate_limit = "soon"'), 'rate_limit must be a count per time, such as "100/m"'),
    (("p95 = 5.0 }", "p95 = 5.0 }\nmax_running = 0"), "max_running must be at least 1, not 0"),
    (("p95 = 5.0 }", 'p95 = 5.0 }\nbursts = [{ at = "11:00", jobs = 5 }]'), "does not fit into the scenario"),
    (
        ("[targets.images]", "[targets.image]"),
        "[targets.image]: there is no pool or worker 'image'; did you mean 'images'?",
    ),
    (("wait_p99_seconds", "wait_p98_seconds"), "[targets.images]: unknown key 'wait_p98_seconds'; did you mean"),
    (
        ("[targets.images]", "[configurations.big.pools.imagse]\nmax_workers = 20\n[targets.images]"),
        "no worker has the pool 'imagse' there; did you mean 'images'?",
    ),
    (
        ("[targets.images]", "[configurations.big.workers.resiz]\npool = 'images'\n[targets.images]"),
        "there is no worker 'resiz'; did you mean 'resize'?",
    ),
    (
        ("[targets.images]", "[pools.idle]\n[targets.images]"),
        "[pools.idle]: no worker has this pool; remove it, or name it",
    ),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_problem_is_named_with_its_place_and_remedy(change: tuple[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_scenario(changed(change), name="a day")
    assert str(raised.value).startswith("a day")
    assert said in str(raised.value)


def test_all_problems_are_reported_at_once() -> None:
    wrong = changed(("cores = 8", "cores = -1"), ("[100, 800, 100]", "[-1]"), ("max_workers = 8", "max_workers = 0"))
    with pytest.raises(ConfigurationError) as raised:
        read_scenario(wrong, name="day.toml")
    said = str(raised.value)
    assert said.startswith("day.toml has 2 problems:\n  - [nodes.machine]: cores")
    assert "\n  - [workers.resize]: arrivals" in said


@pytest.mark.parametrize("text", ["", "name = 'nothing'"])
def test_an_empty_scenario_says_what_it_needs(text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_scenario(text)
    said = str(raised.value)
    assert all(f"the scenario has no {part}; add [{part}.NAME]" in said for part in ("nodes", "pools", "workers"))


CONFIGURATIONS = """
[configurations.usual]
[configurations.one]
pool = "all"
[configurations.one.pools.all]
max_workers = 3
[configurations.one.workers.resize]
priority = "high"
[targets.images]
"""


def test_a_configuration_changes_pools_and_workers_and_keeps_the_rest() -> None:
    scenario = small(("[targets.images]", CONFIGURATIONS))
    usual, one = scenario.configurations["usual"], scenario.configurations["one"]
    assert (usual.pools["images"].max_workers, usual.workers["resize"].priority) == (8, JobPriority.NORMAL)
    assert (list(one.pools), one.pools["all"].max_workers) == (["all"], 3)
    assert (one.workers["resize"].pool, one.workers["resize"].priority) == ("all", JobPriority.HIGH)
    assert one.workers["resize"].arrivals == usual.workers["resize"].arrivals
    assert scenario.groups == {"images": ("resize",)}


def test_a_scenario_begins_at_a_time_in_its_zone() -> None:
    zone = 'timezone = "Europe/Vienna"\nlength ='
    assert small(("length =", f"start = 2026-07-01\n{zone}")).start == 1_782_856_800  # 22:00 UTC of the day before
    assert small(("length =", f"start = 2026-07-01T08:30:00\n{zone}")).start == 1_782_856_800 + 8.5 * 3600
    assert small(("length =", "start = 2026-07-01T00:00:00Z\nlength =")).start == 1_782_864_000
