"""Adding jobs: one of three functions of the database inserts them, depending on what they have.

    add_one_fast   one plain job
    add            several plain jobs, by `add_fast` if none of them exists, otherwise by `add_full`
    add_full       jobs with a flow, needs, a parent, tags, options or a time to expire

Everything could be added by `add_full`. `add_one_fast` and `add_fast` are there because they save the server more than
half of the time for one job, and about 30 % for a batch; functions/add.sql has the measurements.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from psycopg import AsyncConnection, Rollback
from psycopg.pq.abc import PGresult

from shiftwork.core.model.jobs import Added, NewJob
from shiftwork.store.postgres import flows, rows
from shiftwork.store.postgres.rows import TimedJob
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.direct_call import Prepared
from shiftwork.store.postgres.server.pending_call import LoneStatement
from shiftwork.store.postgres.server.statements import PostgresSession
from shiftwork.store.postgres.server.store_connections import StoreConnections

PAYLOAD_PLACE: Final = 4
"""The place of the payload among the arguments of `add_one_fast`."""


class Adder:
    """Adds jobs for all callers of one store: many at a time in batches, a lone one by a prepared statement."""

    def __init__(self, connections: StoreConnections, address: PostgresAddress, lone: Prepared) -> None:
        self._connections = connections
        self._prepares = not address.transaction_pooling
        """Whether statements can be prepared: a proxy that pools by transaction does not keep them."""
        self._lone = lone

    @staticmethod
    def lone_statement(sql: dict[str, str]) -> Prepared:
        """Return the statement that adds a lone job."""
        return Prepared.of("shiftwork_add_one_fast", sql["add_one_fast"], binary=(PAYLOAD_PLACE,))

    async def add(self, jobs: list[TimedJob]) -> list[Added]:
        """Add jobs after the earlier calls of this event loop, in one batch with those of other callers."""
        calls = self._connections.of_this_loop().calls
        lone = None if calls.busy else self._lone_call(jobs)
        if lone is None:
            return await calls.call_in_batch(jobs, self._add)
        return await calls.call_alone(jobs, self._add, lone)

    async def _add(self, conn: AsyncConnection[Any], jobs: list[Any]) -> list[Any]:
        return await self._connections.run(conn, lambda session: add(session, jobs))

    def add_blocking(self, jobs: list[TimedJob]) -> list[Added] | None:
        """Add jobs on this thread, which runs no event loop. None if they have to be added by `add`."""
        lone = self._lone_call(jobs) if self._connections.open else None
        result = None if lone is None else self._connections.blocking.run(lone.arguments)
        return None if result is None else self._read_added(jobs[0], result)

    def _lone_call(self, jobs: list[TimedJob]) -> LoneStatement | None:
        """Return the call that adds these jobs by the prepared statement; None if it cannot."""
        if len(jobs) > 1 or not self._prepares or not rows.is_lone(jobs[0][0]):
            return None
        try:
            arguments = rows.lone_row(self._connections.number, *jobs[0])
        except UnicodeEncodeError:  # `add` reports it
            return None
        return LoneStatement(self._lone, arguments, partial(self._read_added, jobs[0]))

    def _read_added(self, timed: TimedJob, result: PGresult) -> list[Added]:
        """Read the result of the function `add_one_fast`, and ring its topics."""
        (job, now), twins, topics = timed, result.get_value(0, 0), result.get_value(0, 1)
        if topics != b"{}":
            self._connections.doorbell.ring((f"pool:{job.pool}",) if job.run_at <= now else ("leader",))
        return [Added(job.id, created=twins is None)]


async def add(session: PostgresSession, jobs: Sequence[TimedJob]) -> list[Added]:
    """Add these jobs, and return what happened to each, in order."""
    parts = split_by_id(jobs)
    if len(parts) == 1:
        return await _add(session, parts[0])
    async with session.conn.transaction():
        begun = await flows.begun(session, jobs)
        added = [one for part in parts for one in await _add(session, part, apart=True)]
        await flows.tie(session, [timed for timed, one in zip(jobs, added, strict=True) if one.created])
        await flows.aim(session, flows.beginning(jobs, added, begun))
        return added


async def extend(session: PostgresSession, parent: str, fence: int, jobs: Sequence[TimedJob]) -> list[Added] | None:
    """Add jobs of a running job; None if it does not run under this fence, or was asked to stop.

    Adding locks the row of the parent together with other jobs, in their order. So the parent is looked at last.
    """
    async with session.conn.transaction():
        added = await add(session, jobs)
        runs = await session.value("may_add", (session.namespace, parent, fence))
        if not runs:
            raise Rollback
    return added if runs else None


async def _add(session: PostgresSession, jobs: Sequence[TimedJob], *, apart: bool = False) -> list[Added]:
    new = [job for job, _ in jobs]
    plain = all(rows.is_plain(job) for job in new)
    if len(new) == 1 and rows.is_lone(new[0]):
        twins, topics = await session.row("add_one_fast", (session.namespace, *rows.new_row(*jobs[0])))
        session.ring(topics)
        return read_added(new, twins)
    args = (session.namespace, *rows.new_columns(new, [now for _, now in jobs]), None)
    if plain:
        twins, topics = await session.row("add", args)
    else:
        twins, topics = await session.row("add_full", (*args, *rows.part_columns(new), apart))
    session.ring(topics)
    return read_added(new, twins)


def split_by_id(jobs: Sequence[TimedJob]) -> list[list[TimedJob]]:
    """Split the jobs into parts in which no id occurs twice: the first job with an id decides about the second."""
    ids = {job.id for job, _ in jobs}
    if len(ids) == len(jobs):
        return [list(jobs)]
    parts: list[list[TimedJob]] = [[]]
    seen: set[str] = set()
    for timed in jobs:
        if timed[0].id in seen:
            parts.append([])
            seen = set()
        seen.add(timed[0].id)
        parts[-1].append(timed)
    return parts


def read_added(jobs: Sequence[NewJob], twins: Sequence[str | None] | None) -> list[Added]:
    """Return what happened to each job; `twins` has the id of the job that exists in its place, if there is one."""
    if twins is None:
        return [Added(job.id, created=True) for job in jobs]
    return [Added(twin or job.id, created=twin is None) for job, twin in zip(jobs, twins, strict=True)]
