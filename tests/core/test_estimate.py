"""When a queued job starts: the queue ahead of it is run forward."""

from math import inf
from typing import Any

import pytest

from shiftwork.core.health.position import EXACT_UP_TO, Ahead, Position, estimated_ahead, parked_position, position
from shiftwork.core.health.start_estimate import (
    Line,
    Overtaking,
    QueueAhead,
    along,
    closed_until,
    growing_slots,
    overtaking,
    rest,
    starts_in,
    unknown_runs,
)
from shiftwork.core.model.workers import PoolConfig, WorkerState
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.scaling.bounds import Bounds
from shiftwork.core.scaling.demand import Demand, Share
from shiftwork.core.scaling.size import PoolLoad
from shiftwork.core.workers.admission import Lane, Obstacle, RateLimit, Running
from shiftwork.views.explanation import estimate_of

NOW = 1_000.0


def line(worker: str = "w", ahead: int = 0, running: int = 0, seconds: float | None = 2.0, **more: object) -> Line:
    return Line(**{"worker": worker, "ahead": ahead, "running": running, "run_seconds": seconds, **more})  # type: ignore[arg-type]


def start(mine: Line, *others: Line, slots: int = 1, grown: tuple[float, int] | None = None, **more: object) -> float:
    counts = [(NOW, slots), *([grown] if grown else [])]
    queue = QueueAhead(**{"now": NOW, "due_at": 0.0, "mine": mine, "others": others, "slots": counts, **more})  # type: ignore[arg-type]
    found = starts_in(queue)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ahead", "running", "slots", "seconds"),
    [
        (0, 0, 1, 0.0),
        (0, 1, 4, 0.0),
        (0, 1, 1, 2.0),
        (3, 1, 1, 8.0),
        (3, 4, 4, 2.0),
        (7, 4, 4, 4.0),
        (39, 4, 4, 20.0),
        (16_700, 50, 50, 668.0),
        (100_000, 4, 4, 50_000.0),
    ],
)
def test_a_queue_of_one_worker(ahead: int, running: int, slots: int, seconds: float) -> None:
    assert start(line(ahead=ahead, running=running), slots=slots) == pytest.approx(seconds, rel=0.05)


def test_jobs_of_other_workers_take_their_time() -> None:
    slow, quick = line("slow", ahead=10, seconds=10.0), line("quick", ahead=100, seconds=0.1)
    assert start(line(), slow, quick, slots=1) == pytest.approx(110.0)
    assert start(line(), slow, quick, slots=10) == pytest.approx(11.0, rel=0.3)


@pytest.mark.parametrize(("ahead", "seconds"), [(99, 2.0), (16_700, 334.0)])
def test_a_rate_limit_and_not_the_slots(ahead: int, seconds: float) -> None:
    """50 a second: job 16,701 starts after five and a half minutes, although the gate opens within one second."""
    limited = line(ahead=ahead, seconds=0.1, rate=RateLimit(50, 1.0), rate_at=NOW)
    assert start(limited, slots=40) == pytest.approx(seconds, rel=0.15)


def test_what_a_limit_holds_back_takes_no_slots_from_others() -> None:
    held = line("held", ahead=1_000, rate=RateLimit(1, 60.0), rate_at=NOW + 60)
    assert start(line(ahead=2, running=1), held) == pytest.approx(6.0)


def test_max_running_holds_back_its_own_worker_only() -> None:
    one = line("one", ahead=10, running=1, most=1)
    assert start(one, slots=8) == pytest.approx(22.0)
    assert start(line("other"), one, slots=8) == 0.0


def test_a_gate_that_opens_later_and_one_that_may_never() -> None:
    assert start(line(ahead=1, running=0, opens_at=NOW + 30), slots=1) == pytest.approx(32.0)
    queue = QueueAhead(now=NOW, due_at=0.0, mine=line(opens_at=inf), slots=[(NOW, 4)])
    assert starts_in(queue) is None
    assert start(line(), line("never", ahead=50, opens_at=inf)) == 0.0


def test_a_job_that_is_due_later_starts_then() -> None:
    assert start(line(), due_at=NOW + 90) == pytest.approx(90.0)
    assert start(line(ahead=100), due_at=NOW + 90) == pytest.approx(200.0)


def test_while_a_gate_holds_it_back_jobs_from_behind_take_the_slots() -> None:
    held = line(opens_at=NOW + 30)
    assert start(held, slots=2, behind_seconds=10.0) == pytest.approx(35.0)
    assert start(line(), slots=2, behind_seconds=10.0) == 0.0
    assert start(line(ahead=1, running=1), slots=1, behind_seconds=10.0) == pytest.approx(4.0), "no gate held it back"


def test_a_pool_that_grows() -> None:
    assert start(line(ahead=39, running=1), slots=1, grown=(NOW + 1, 10)) == pytest.approx(9.0, rel=0.2)


def test_jobs_that_still_come_and_go_first() -> None:
    """They take half of the slots; those that come after `until` rank behind."""
    alone = start(line(ahead=98, running=2), slots=2)
    assert start(line(ahead=98, running=2), slots=2, overtaking=[Overtaking(inf, 1.0)]) == pytest.approx(
        2 * alone, rel=0.1
    )
    assert start(line(ahead=98, running=2), slots=2, overtaking=[Overtaking(NOW, 1.0)]) == pytest.approx(alone)
    crowded = QueueAhead(now=NOW, due_at=0, mine=line(), slots=[(NOW, 2)], overtaking=[Overtaking(inf, 2.0)])
    assert starts_in(crowded) is None


def test_there_is_no_estimate_while_nothing_is_known() -> None:
    unknown = QueueAhead(now=NOW, due_at=0, mine=line(), others=[line("new", ahead=1, seconds=None)], slots=[(NOW, 1)])
    assert starts_in(unknown) is None
    assert unknown_runs(unknown) == ["new"]
    assert starts_in(QueueAhead(now=NOW, due_at=0, mine=line(), slots=[(NOW, 0)])) is None
    assert start(line(seconds=None)) == 0.0


def test_the_basis_says_that_the_end_of_a_first_run_is_a_guess() -> None:
    first = line("first", running=1, seconds=None, eldest_at=NOW - 5, newest_at=NOW - 5)
    queue = QueueAhead(now=NOW, due_at=0, mine=line(), others=[first], slots=[(NOW, 1)])
    told = estimate_of(Position(1, exact=True), queue, starts_in(queue), [])
    assert told.estimate is not None
    assert "no run of first has ended yet, so when those that run will end is a guess" in (told.basis or "")


def test_a_job_that_has_run_for_long_will_run_for_longer() -> None:
    assert rest(10.0, 0.0) == 10.0
    assert rest(10.0, 5.0) < 10.0
    assert rest(10.0, 100.0) == 50.0


def test_slots_that_hang_are_not_expected_to_end_soon() -> None:
    hung = line(ahead=3, running=4, seconds=1.0, eldest_at=NOW - 49, newest_at=NOW - 48)
    assert start(hung, slots=4) > 20
    assert hung.overdue(NOW) == 48
    some = line(ahead=3, running=4, seconds=1.0, eldest_at=NOW - 49, newest_at=NOW - 0.5)
    assert start(some, slots=4) < 5
    assert some.overdue(NOW) is None


# ── gates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def opens(*waits: Obstacle, first: bool = True) -> float:
    lanes = {"b": Lane(state=WorkerState(worker="b"), running=1, eldest=Running("1", "i", NOW - 4))}
    return closed_until(waits, lanes, {"w": 2.0, "b": 10.0}.get, worker="w", first=first, now=NOW)


def test_when_gates_open() -> None:
    breaker = Obstacle("breaker", "x", "breaker x is open", until=NOW + 30)
    running = Obstacle("dependency", "b", "depends on b, which is running")
    assert opens() == 0.0
    assert opens(Obstacle("rate_limit", "w", "", until=NOW + 1)) == 0.0, "a line has its own limits"
    assert opens(breaker) == NOW + 30, "the job is the probe"
    assert opens(breaker, first=False) == NOW + 32, "the probe has ended"
    assert opens(running) == NOW + rest(10.0, 4.0)
    assert opens(Obstacle("precedence", "b", "b goes first")) == NOW + 10.0
    assert opens(Obstacle("turn", "b", "it is the turn of b", until=NOW + 3)) == NOW + 3
    assert opens(Obstacle("turn", "b", "it is the turn of b")) == NOW
    assert opens(running, breaker) == NOW + 30
    assert opens(Obstacle("paused", "p", "")) == inf
    assert opens(Obstacle("dependency", "other", "which has not succeeded yet")) == inf


# ── slots, and those that overtake ───────────────────────────────────────────────────────────────────────────────────


def foreseen(high: int, low: int = 1, *, wide: int = 8, **load: Any) -> list[tuple[float, int]]:
    pool = PoolConfig(name="p", max_workers=wide, scale_up_threshold=20)
    seen = PoolLoad(**{"busy_slots": 1, "current": 1, **load})
    return growing_slots(pool, Bounds(low=low, high=high), seen, NOW)


def test_slots_are_foreseen_by_the_scaling_rules() -> None:
    found = foreseen(8, queue_depth=60)
    assert found[0] == (NOW, 1)
    assert found[1][1] == 4, "60 / 20 more"
    assert found[-1][1] <= 8
    ended = foreseen(100, wide=100, queue_depth=60, demand=Demand(queued_seconds=6.0))
    assert ended[-1][1] == 7, "the queue has ended by then"
    assert foreseen(3, queue_depth=900)[-1][1] == 3
    assert foreseen(8, queue_depth=5) == [(NOW, 1)]
    asleep = foreseen(8, 0, queue_depth=1, current=0, busy_slots=0)
    assert [n for _, n in asleep] == [0, 1]


def test_no_slots_are_foreseen_for_what_gates_hold() -> None:
    limited: dict[str, Any] = {"wide": 40, "queue_depth": 6_000, "busy_slots": 2, "current": 2}
    assert foreseen(40, **limited)[-1][1] == 40
    assert foreseen(40, open=6_000, startable=3, **limited)[-1][1] == 5, "50/s of 80 ms each"
    assert foreseen(40, open=0, startable=0, **limited) == [(NOW, 2)], "behind an open breaker"
    mixed = foreseen(40, open=400, startable=403, **limited)
    assert [n for _, n in mixed] == [2, 22, 40], "the others need slots"


def test_only_jobs_that_will_rank_ahead_overtake() -> None:
    demand = Demand(
        shares=tuple(Share(worker=name, per_second=2.0, run_seconds=0.5) for name in ("high", "same", "gone"))
    )
    found = overtaking(NOW - 60, {"high": 3_600.0, "same": 0.0}, demand, NOW)
    assert found == [Overtaking(NOW - 60 + 3_600.0, 1.0)]


# ── the position ─────────────────────────────────────────────────────────────────────────────────────────────────────


def stats(**queued: int) -> Stats:
    workers = {name: WorkerStats(queued=n) for name, n in queued.items()}
    return Stats(pools={"p": PoolStats(queued=sum(queued.values()))}, workers=workers)


def test_a_position_is_exact_up_to_a_thousand() -> None:
    assert position(Ahead({}), stats(), "p") == Position(1, exact=True)
    assert position(Ahead({"w": EXACT_UP_TO - 1}), stats(w=EXACT_UP_TO), "p") == Position(EXACT_UP_TO, exact=True)
    assert position(Ahead({"w": EXACT_UP_TO}), stats(w=EXACT_UP_TO + 1), "p") == Position(EXACT_UP_TO + 1, exact=False)
    assert position(Ahead({"w": 9}, exact=False), stats(w=20), "p") == Position(10, exact=False)


def test_workers_that_were_not_looked_at_are_like_the_others() -> None:
    found = position(Ahead({"a": 10, "b": 20}, complete=False), stats(a=20, b=40, c=100), "p")
    assert found == Position(81, exact=False)


@pytest.mark.parametrize(
    ("counted", "rank", "n"),
    [(100, 5.0, 500), (100, 10.0, 1_000), (100, 0.1, 100), (100, 99.0, 1_000), (100, -1.0, 100)],
)
def test_what_is_not_counted_is_taken_from_the_ranks(counted: int, rank: float, n: int) -> None:
    assert estimated_ahead(counted, 1_000, rank, (0.0, 10.0)) == n


def test_a_parked_job_is_behind_those_with_its_key() -> None:
    assert parked_position(Position(3, exact=True), 2) == Position(5, exact=True)
    assert parked_position(Position(3, exact=True), EXACT_UP_TO) == Position(EXACT_UP_TO + 3, exact=False)


def test_jobs_of_one_rank_that_were_not_counted() -> None:
    assert estimated_ahead(100, 1_000, 5.0, (5.0, 5.0)) == 500


@pytest.mark.parametrize(
    ("places", "first", "last", "expected"),
    [
        ([1], 3.0, 3.0, [3.0]),
        ([1], None, None, [None]),
        ([2, 4, 12], 1.0, 11.0, [1.0, 3.0, 11.0]),
        ([2, 4, 12], 1.0, None, [1.0, None, None]),
        ([7, 7], 5.0, 5.0, [5.0, 5.0]),
    ],
)
def test_jobs_of_one_queue_start_between_its_first_and_its_last(
    places: list[int], first: float | None, last: float | None, expected: list[float | None]
) -> None:
    assert along(places, first, last) == expected
