"""One pool in virtual time: order, slots that start and drain, machines that are full, bounds by the clock."""

import pytest

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.workers.admission import RateLimit
from shiftwork.sim.breaking import breaking
from shiftwork.sim.fixed_size import fixed_sizes
from shiftwork.sim.pool_queue import PROCESS_START_SECONDS, LimitedLane, PoolQueue
from shiftwork.sim.report.study_words import findings, suggestion_words
from shiftwork.sim.simulate import simulate
from shiftwork.sim.study import study_scenario
from shiftwork.sim.suggest import suggest
from shiftwork.sim.traffic import jobs_of, multiplied
from tests.sim.scenarios import BRIEF, small


def queue(jobs: list[tuple[float, float, int, int]], kind: str = "process", *, high: float = 0.0) -> PoolQueue:
    """A pool with two workers; the second one has a head start of `high` seconds."""
    pool = PoolConfig(name="p", kind=kind)  # type: ignore[arg-type]  # one of three words
    return PoolQueue(pool, jobs, head_starts=[0.0, high], retries=[1, 1])


def test_jobs_start_by_rank_and_old_work_overtakes_new_work_of_higher_priority() -> None:
    jobs = [(0.0, 10.0, 0, 0), (1.0, 1.0, 0, 0), (50.0, 1.0, 0, 0), (55.0, 1.0, 0, 1), (95.0, 1.0, 0, 1)]
    pool = queue([*jobs[:1], *[(at, 60.0, 0, worker) for at, _, _, worker in jobs[1:]]], high=30.0)
    pool.open(1)
    pool.advance(1000.0)
    # The one of 55 s goes before the one of 50 s: it has a head start of 30 s. The one of 95 s comes too late for that.
    assert pool.waits[0] == [0.0, 9.0, 130.0 - 50.0]
    assert pool.waits[1] == [70.0 - 55.0, 190.0 - 95.0]


def test_a_slot_takes_a_moment_to_start_and_a_draining_one_finishes_its_job() -> None:
    pool = queue([(0.0, 10.0, 0, 0), (0.0, 10.0, 0, 0)])
    pool.resize(0.0, 2)
    pool.advance(5.0)
    assert pool.waits[0] == [PROCESS_START_SECONDS, PROCESS_START_SECONDS]
    pool.resize(5.0, 0)
    assert (pool.slots, pool.busy, pool.draining) == (0, 2, 2)
    pool.advance(60.0)
    assert (pool.busy, pool.draining, pool.free, pool.completed) == (0, 0, 0, [2, 0])
    assert pool.slot_seconds(60.0) == 2 * (10.0 + PROCESS_START_SECONDS)


def test_a_slot_of_a_running_process_is_there_at_once() -> None:
    pool = queue([(1.0, 10.0, 0, 0), (2.0, 1.0, 0, 0)], "thread")
    pool.open(1)
    pool.advance(3.0)
    pool.resize(3.0, 2)
    pool.advance(4.0)
    assert pool.waits[0] == [0.0, 1.0]


def test_a_job_that_fails_runs_again_after_a_while_and_is_dead_after_its_retries() -> None:
    pool = queue([(0.0, 1.0, 1, 0), (0.0, 1.0, 2, 0)])
    pool.open(2)
    pool.advance(3.0)
    assert (pool.retrying, pool.failed) == (2, [2, 0])
    pool.advance(60.0)
    assert (pool.completed, pool.failed, pool.dead, pool.left) == ([1, 0], [3, 0], 1, 0)
    assert pool.waits[0] == [0.0, 0.0]


def limited(jobs: list[tuple[float, float, int, int]], lane: LimitedLane) -> PoolQueue:
    """A pool whose first worker has a limit."""
    pool = PoolConfig(name="p", kind="thread")
    return PoolQueue(pool, jobs, head_starts=[0.0, 0.0], retries=[1, 1], limits={0: lane})


def test_what_a_rate_limit_holds_back_takes_no_slot_from_others() -> None:
    pool = limited([*[(0.0, 0.1, 0, 0)] * 4, (0.5, 5.0, 0, 1)], LimitedLane(RateLimit(10, 10.0), None))
    pool.open(2)
    pool.advance(0.9)
    assert (pool.depth, pool.free, pool.full, pool.oldest_due) == (3, 1, False, 0.0)
    pool.advance(60.0)
    assert (pool.waits, pool.left) == ([[0.0, 1.0, 2.0, 3.0], [0.0]], 0)


def test_as_many_jobs_run_as_max_running_allows_and_the_first_due_goes_first() -> None:
    jobs = [(0.0, 10.0, 0, 0), (1.0, 10.0, 0, 0), (2.0, 10.0, 0, 1), (3.0, 10.0, 0, 1), (4.0, 10.0, 0, 1)]
    pool = limited(jobs, LimitedLane(None, 1))
    pool.open(2)
    pool.advance(60.0)
    assert pool.waits == [[0.0, 9.0], [0.0, 9.0, 16.0]], "at 10 s the one of 1 s, at 12 s that of 3 s, at 20 s the last"


LIMITED = (
    *(("min_workers = 4", "min_workers = 2"), ("max_workers = 8", "max_workers = 40\ncpu = 0.1")),
    *(("{ median = 2.0, p95 = 5.0 }", "0.08"), ("[100, 800, 100]", "[600, 12000, 600]"), ('"20m"', '"5m"')),
)


def test_no_slots_are_planned_that_a_limit_keeps_idle() -> None:
    scenario = small(*LIMITED, ("arrivals", 'rate_limit = "50/s"\narrivals'))
    course = simulate(scenario, "as written").pools["images"]
    assert course.deepest > 5_000
    assert course.most_slots <= 6, "50/s of 80 ms each keep four busy"
    assert simulate(small(*LIMITED), "as written").pools["images"].most_slots > 20
    said = "\n".join(findings(study_scenario(scenario)))
    assert "the queue never empties: rate limit of resize: 50 in 1 s" in said
    running = small(*LIMITED, ("arrivals", "max_running = 3\narrivals"))
    assert simulate(running, "as written").pools["images"].most_slots <= 4
    slow = small(("arrivals", 'rate_limit = "3/s"\narrivals'), ("max_workers = 8", "max_workers = 20\ncpu = 0.1"))
    found = breaking(slow, "as written", simulate(slow, "as written"))
    assert found.words.endswith("because of the rate limit of resize: 3 in 1 s")


def test_arrivals_are_those_of_the_scenario_in_every_configuration() -> None:
    scenario = small(("arrivals = [100, 800, 100]", "arrivals = [0, 600, 30]\nspread = 'even'"))
    traffic = scenario.configurations["as written"].workers["resize"]
    times = [at for at, _, _ in jobs_of(scenario, "resize", traffic)]
    assert len(times) == 630
    assert (min(times), max(times)) == pytest.approx((400 + 1 / 3, 1200 - 20 / 3))
    assert len(jobs_of(multiplied(scenario, 2.0), "resize", traffic)) == 630
    twice = multiplied(scenario, 2.0).configurations["as written"].workers["resize"]
    assert len(jobs_of(scenario, "resize", twice)) == 1260


def test_run_times_have_the_distribution_that_is_written() -> None:
    scenario = small(("[100, 800, 100]", "20000"))
    traffic = scenario.configurations["as written"].workers["resize"]
    runs = sorted(run for _, run, _ in jobs_of(scenario, "resize", traffic))
    assert 1.9 < runs[10_000] < 2.1
    assert 4.7 < runs[19_000] < 5.3
    assert abs(sum(runs) / len(runs) - traffic.run.mean_seconds()) < 0.1


def test_a_histogram_gives_run_times_with_its_mean() -> None:
    counts = "{ counts = [0, 0, 0, 0, 0, 0, 10, 80, 10, 0, 0, 0, 0, 0, 0, 0, 0], mean = 0.9 }"
    scenario = small(("{ median = 2.0, p95 = 5.0 }", counts), ("[100, 800, 100]", "5000"))
    runs = [run for _, run, _ in jobs_of(scenario, "resize", scenario.configurations["as written"].workers["resize"])]
    assert abs(sum(runs) / len(runs) - 0.9) < 0.03


def test_bounds_by_the_clock_hold_from_their_minute_on() -> None:
    zone = 'timezone = "Europe/Vienna"\n'
    clock = f'min_workers = 1\n{zone}bounds = {{ "0 0 * * *" = [1, 8], "2 0 * * *" = [5, 8], "5 0 * * *" = [1, 8] }}'
    idle_first = ("[100, 800, 100]", "[0, 800, 100]")
    course = simulate(
        small(("min_workers = 4", clock), ("length =", f"{zone}length ="), idle_first), "as written"
    ).pools["images"]
    assert max(course.slots[:28]) == pytest.approx(1)
    assert min(course.slots[30:70]) == pytest.approx(5)
    assert min(course.slots[70:95]) < 4
    assert any("the clock's bounds since 00:02 Europe/Vienna: 5 to 8" in step.reason for step in course.steps)


def test_machines_that_are_full_are_named() -> None:
    scenario = small(("cores = 8", "cores = 4"), ("[100, 800, 100]", "[100, 3000, 100]"))
    plan = study_scenario(scenario)
    assert plan.simulated["as written"].most_slots == 4
    said = "\n".join(findings(plan))
    assert "images wanted more slots than fit: no suitable node has 1 cores (at most 0) free" in said
    assert "jobs of images have not ended at the end; the queue never empties" in said


def test_what_breaks_first_is_found_with_its_load_and_its_cause() -> None:
    scenario = small()
    broken = breaking(scenario, "as written", simulate(scenario, "as written"))
    assert broken.load is not None
    assert 1.2 < broken.load < 3  # 800 jobs of 2.3 s in 400 s keep 4.7 of 8 slots busy
    assert broken.words.startswith("images waits more than 30 s (p99) at ")
    assert broken.words.endswith("× this load, because max_workers of images is 8")


def test_a_fixed_pool_that_is_as_good_has_the_size_of_the_peak() -> None:
    scenario = small()
    assert fixed_sizes(scenario, "as written", simulate(scenario, "as written")) == {"images": 5}


@pytest.mark.parametrize("target", ['wait_p99_seconds = "30s"', "depth = 30"])
def test_the_search_finds_cheaper_options_that_meet_the_targets(target: str) -> None:
    scenario = small(*BRIEF, ('wait_p99_seconds = "30s"', target))
    before = simulate(scenario, "as written")
    found = suggest(scenario, "as written")
    assert found.simulated.missed == before.missed == []
    assert found.simulated.cost < 0.95 * before.cost
    assert found.changes["images"]


def test_the_search_meets_the_targets_with_more_traffic_too() -> None:
    scenario = small(*BRIEF)
    found = suggest(scenario, "as written", headroom=1.4)
    assert simulate(multiplied(found.scenario, 1.4), "suggested").missed == []


def test_a_pool_that_misses_its_target_is_given_more_slots() -> None:
    scenario = small(*BRIEF, ("min_workers = 4", "min_workers = 1"), ("max_workers = 8", "max_workers = 2"))
    assert simulate(scenario, "as written").missed != []
    assert suggest(scenario, "as written").simulated.missed == []


def test_no_slots_are_suggested_where_a_limit_makes_jobs_wait() -> None:
    scenario = small(*BRIEF, ("arrivals", 'rate_limit = "1/s"\narrivals'))
    found = suggest(scenario, "as written")
    assert found.changes == {"images": {}}
    said = suggestion_words(study_scenario(scenario), found)
    assert said.startswith("no change of as written meets its targets: images waits ")
