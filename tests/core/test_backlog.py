"""What holds the queued jobs of a worker, and how many of them could start."""

from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.health.pool_problems import _REMEDIES
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.scaling.backlog import SHUT, Backlog, backlog, held_of, largest_gate, main_gate, unserved
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, RateLimit, Running
from shiftwork.core.workers.breaker import BreakerState

NOW = 1000.0


def lane(name: str = "w", *, running: int = 0, head: bool = True, ready: int | None = None, **state: Any) -> Lane:
    return Lane(
        state=WorkerState(worker=name, **state),
        running=running,
        eldest=Running("r", "i", NOW - 5) if running else None,
        newest_started_at=NOW - 2 if running else None,
        head=Head(NOW - 9, "h", NOW - 9) if head else None,
        live=True,
        ready=ready,
    )


def facts(*lanes: Lane, breakers: dict[str, BreakerState] | None = None, paused: bool = False, **gates: Any) -> Facts:
    return Facts(
        lanes={one.state.worker: one for one in lanes},
        gates={"w": Gates(worker="w", pool="p", **gates)},
        breakers=breakers or {},
        pools={"p": PoolDoc(paused=paused, reason="deploy")},
        served={"p"},
    )


def look(known: Facts, queued: int = 300, **more: Any) -> Backlog:
    running = known.lanes["w"].running
    return backlog("w", WorkerStats(queued=queued, processing=running), known, NOW, **more)


FIFTY = RateLimit(50, 1.0)

SHUT_GATES = [
    (facts(lane(), paused=True), "paused", "p"),
    (facts(lane(enabled=False, reason="5 failures")), "disabled", "w"),
    (facts(lane(), breaker="smtp", breakers={"smtp": BreakerState(open=True, until=NOW + 9)}), "breaker", "smtp"),
    (facts(lane(), lane("a", running=1), after={"a": "done"}), "dependency", "a"),
    (facts(lane(), lane("b", running=1), conflicts=("b",)), "blocked", "b"),
]


@pytest.mark.parametrize(("known", "code", "by"), SHUT_GATES, ids=[row[1] for row in SHUT_GATES])
def test_a_shut_gate_holds_every_job_and_wants_no_slot(known: Facts, code: str, by: str) -> None:
    seen = look(known)
    assert seen.gate is not None
    assert (seen.gate.code, seen.gate.by, seen.gate.jobs) == (code, by, 300)
    assert (seen.open, seen.startable, seen.slots) == (0, 0, 0.0)
    assert seen.gate.why


def test_without_gates_every_job_waits_for_a_slot_only() -> None:
    for known in (facts(lane()), Facts(lanes={"w": lane()})):
        seen = look(known)
        assert (seen.gate, seen.open, seen.startable, seen.slots) == (None, 300, 300, None)


def test_a_rate_limit_lets_its_tokens_start_and_keeps_rate_times_run_time_busy() -> None:
    quiet = facts(lane(), rate=FIFTY)
    assert look(quiet).startable == FIFTY.burst, "nothing is known of its run time"
    assert look(quiet, run_seconds=0.05).startable == 4, "short runs use up a burst with few slots"
    used_up = facts(lane(rate_at=NOW + (FIFTY.burst - 2.5) * FIFTY.spacing), rate=FIFTY)
    assert look(used_up).startable == 2, "as many tokens as have come since"
    used = facts(lane(running=1, rate_at=NOW + 1), rate=FIFTY)
    assert look(used, run_seconds=0.05).slots == pytest.approx(3.5)
    assert look(used, run_seconds=0.05).startable == 3
    assert look(used, run_seconds=2.0).startable == 100, "slow runs need many slots, and get them"
    gate = look(used).gate
    assert gate is not None
    assert (gate.code, gate.per_second) == ("rate_limit", 50.0)


def test_a_rate_limit_with_tokens_left_holds_nothing_while_every_slot_is_busy() -> None:
    known = facts(lane(running=8, rate_at=NOW - 0.01), rate=FIFTY)
    assert look(known, full=True).gate is None
    assert look(known, full=False).gate is not None, "with a free slot it has just let one start"
    assert look(facts(lane(rate_at=NOW - 5), rate=FIFTY), full=False).gate is None, "it has not been used lately"


def test_max_running_leaves_as_many_as_fit() -> None:
    known = facts(lane(running=2), max_running=3)
    assert (look(known).startable, look(known).slots, look(known).gate) == (1, 3, None)
    assert look(known, full=False).gate is not None, "with a free slot, one has just ended"
    assert look(facts(lane(), max_running=3), full=False).gate is None, "it holds nothing while none runs"
    full = look(facts(lane(running=3), max_running=3))
    assert full.gate is not None
    assert (full.startable, full.open, full.gate.code) == (0, 300, "max_running")
    assert "3 of 3 allowed w jobs are running" in full.gate.why


def test_the_smaller_limit_counts() -> None:
    known = facts(lane(running=1), max_running=2, rate=FIFTY)
    assert look(known, run_seconds=10.0).startable == 1
    assert look(facts(lane(), max_running=2, rate=FIFTY)).startable == 2, "of five tokens"
    assert look(facts(lane(running=3), max_running=2, rate=FIFTY)).startable == 0, "max_running was lowered"


def test_parked_jobs_are_held_by_their_concurrency_key() -> None:
    seen = look(facts(lane(ready=4)))
    assert seen.gate is not None
    assert (seen.gate.code, seen.gate.jobs, seen.open, seen.startable) == ("concurrency_key", 296, 4, 4)
    assert look(facts(lane(ready=0, head=False))).startable == 0
    assert look(facts(lane(ready=200))).gate is None, "most of them only wait for a slot"
    assert look(facts(lane(ready=9)), queued=4).open == 4, "counted a moment before"
    assert look(facts(lane(ready=1000)), queued=5000).open == 5000, "a thousand are as many as are counted"


def test_a_half_open_breaker_lets_one_run_start() -> None:
    known = facts(lane(), breaker="smtp", breakers={"smtp": BreakerState(open=True, until=NOW - 1)}, rate=FIFTY)
    seen = look(known, run_seconds=2.0)
    assert seen.gate is not None
    assert (seen.gate.code, seen.startable, seen.slots) == ("breaker", 1, 1.0)


def held(by: str, jobs: int, queued: int, since: float | None = None) -> Backlog:
    known = facts(lane(), breaker=by, breakers={by: BreakerState(open=True, until=NOW + 9)})
    gate = look(known, jobs).gate
    assert gate is not None
    return Backlog(queued=queued, gate=replace(gate, since=since), open=queued - jobs, startable=queued - jobs)


def test_the_gate_that_holds_most_is_named_and_none_if_most_jobs_wait_for_a_slot() -> None:
    smtp, sms = held("smtp", 60, 60), held("sms", 50, 50)
    assert main_gate([smtp, sms]).by == "smtp"  # type: ignore[union-attr]
    assert main_gate([smtp, sms, held("sms", 50, 50)]).by == "sms", "two workers share it"  # type: ignore[union-attr]
    older, newer = held("sms", 1, 1, since=NOW - 50), held("sms", 50, 50, since=NOW - 5)
    assert main_gate([newer, older]).since == NOW - 50  # type: ignore[union-attr]
    free = Backlog(queued=200, open=200, startable=200)
    assert main_gate([smtp, sms, free]) is None
    assert largest_gate([smtp, sms, free]).jobs == 60  # type: ignore[union-attr]
    assert (main_gate([]), main_gate([free])) == (None, None)


def test_every_gate_has_a_remedy() -> None:
    assert {*SHUT, "rate_limit", "max_running", "concurrency_key", "unserved"} == _REMEDIES.keys()


def test_what_all_gates_hold_goes_by_the_largest_of_them() -> None:
    free = Backlog(queued=200, open=200, startable=200)
    known = held_of([held("smtp", 60, 60), held("sms", 50, 50), unserved("gone", 55), free])
    assert known is not None
    assert (known.jobs, known.gate.code, known.gate.by) == (165, "breaker", "smtp")
    assert held_of([free]) is None


def test_jobs_that_no_node_can_run_want_no_slot() -> None:
    gone = unserved("gone", 55)
    assert (gone.queued, gone.open, gone.startable, gone.slots) == (55, 0, 0, 0.0)
