"""What health sees of a pool: its slots, its runs and its gates, from one snapshot. And how a snapshot is read."""

import asyncio
from collections import Counter
from typing import Any

from shiftwork.core.health.health_values import PoolFacts
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, RateLimit, Running
from shiftwork.runtime.clock import until_idle
from shiftwork.views.snapshot import Snapshot, _pool_facts
from tests.runtime.stage import Stage

NOW = 1_000.0


def instance(name: str, slots: int, expires_in: float = 9.0) -> InstanceRecord:
    beat = Beat(instance=name, node="n", pool="p", slots=slots, workers=("quick", "slow", "first"))
    return InstanceRecord(beat, expires_at=NOW + expires_in, last_beat_at=NOW - 1)


def lane(name: str, began: list[float], **state: Any) -> Lane:
    return Lane(
        state=WorkerState(worker=name, **state),
        running=len(began),
        eldest=Running(f"eldest {name}", "i", NOW - max(began)) if began else None,
        newest_started_at=NOW - min(began) if began else None,
        head=Head(NOW - 9, "h", NOW - 9),
        live=True,
    )


def seen(*lanes: Lane, processing: int, rate: RateLimit | None = None) -> PoolFacts:
    workers = {
        "quick": WorkerStats(queued=300, processing=1, completed=100, run_seconds=10.0, marks={"r0.1s": 100}),
        "slow": WorkerStats(processing=1, completed=10, run_seconds=600.0, marks={"r60s": 10}),
        "first": WorkerStats(processing=1),
    }
    names = {one.state.worker for one in lanes}
    snapshot = Snapshot(
        at=NOW,
        facts=Facts(
            lanes={one.state.worker: one for one in lanes},
            gates={name: Gates(worker=name, pool="p", rate=rate) for name in names},
            served={"p"},
        ),
        stats=Stats(
            pools={"p": PoolStats(queued=300, processing=processing)},
            workers={name: one for name, one in workers.items() if name in names},
        ),
        instances=[instance("a", 4), instance("gone", 4, expires_in=-1.0)],
        workers={name: WorkerConfig(name=name, pool="p") for name in names},
        pools={"p": PoolConfig(name="p")},
        cursors={},
        plan=Plan(),
        keys_in_use=set(),
    )
    (facts,) = _pool_facts(snapshot, [])
    return facts


def test_only_live_instances_have_slots() -> None:
    assert seen(lane("quick", [3.0]), processing=4).slots == 4


def test_the_slowest_and_the_newest_of_what_runs_count() -> None:
    mixed = seen(lane("quick", [3.0]), lane("slow", [50.0]), processing=4)
    assert (mixed.usual_seconds, mixed.long_seconds, mixed.untimed) == (60.0, 60.0, False)
    assert (mixed.newest_start, mixed.eldest) == (NOW - 3, "eldest slow")
    with_first = seen(lane("quick", [3.0]), lane("first", [2.0]), processing=4)
    assert (with_first.usual_seconds, with_first.untimed, with_first.newest_start) == (0.1, True, NOW - 2)
    assert (seen(lane("quick", []), processing=0).newest_start, seen(lane("quick", []), processing=0).eldest) == (
        None,
        None,
    )


def test_a_limit_that_has_tokens_left_holds_nothing_while_every_slot_is_busy() -> None:
    known, limit = lane("quick", [3.0], rate_at=NOW - 0.01), RateLimit(50, 1.0)
    assert seen(known, processing=4, rate=limit).gate is None
    gate = seen(known, processing=3, rate=limit).gate
    assert gate is not None
    assert gate.code == "rate_limit"


async def test_the_parts_of_a_snapshot_are_asked_for_together(stage: Stage) -> None:
    app, parts = stage.faulty_app(), ("docs", "stats", "survey", "instances")
    await app.control.store.open()
    stage.faults.calls.clear()
    gates = [stage.faults.hold(part, "before") for part in parts]
    asking = asyncio.create_task(app.control.system.health())
    await until_idle()
    assert stage.faults.calls == Counter(docs=2, stats=1, survey=1, instances=1), "no part waits for another one"
    for gate in gates:
        gate.set()
    await asking
