"""A past for a store: history as a leader would have written it, for tests of what is made from it."""

from collections.abc import Callable

from shiftwork.core.doc_kinds import HISTORY
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.observing.pool_history import HOUR, MINUTE, EndedTotals, Hour, Moment, Point, hour_name
from shiftwork.core.observing.worker_hours import WorkerHour
from shiftwork.store.protocol import Store

RUN_SECONDS = 2.0


def past(now: float, minutes: int, jobs: Callable[[float], int], *, pool: str, worker: str) -> list[Hour]:
    """The last minutes of one pool with ten slots, whose jobs take 2 s and wait 3 s."""
    hours: dict[int, Hour] = {}
    done = 1_000
    for minute in range(minutes, 0, -1):
        at = now - (minute - 1) * MINUTE
        n = jobs(at)
        done += n
        hour = hours.setdefault(int(at // HOUR), Hour(int(at // HOUR)))
        point = Point(n // 10, 4, 10, 10, 1.0, n, 0, 0, 3.0, 2.0, n, n * RUN_SECONDS)
        hour.moments.append(Moment(at, {pool: point}))
        hour.totals[pool] = EndedTotals(done, 0, {"w3.5s": done, "r2s": done}, done * 3.0, done * RUN_SECONDS)
        hour.run_marks[pool] = {"r2s": n + hour.run_marks.get(pool, {}).get("r2s", 0)}
        before = hour.workers.get(worker, WorkerHour())
        hour.workers[worker] = before.plus(WorkerHour(n, n, 0, 0, n * RUN_SECONDS))
    return list(hours.values())


async def put(store: Store, hours: list[Hour]) -> None:
    """Write them into a store, over what is there."""
    there = {doc.name: doc.version for doc in await store.docs(HISTORY.name)}
    for hour in hours:
        name = hour_name(hour.number)
        assert await store.put([Doc(HISTORY.name, name, HISTORY.encode(hour), there.get(name, 0))]) == [True]
