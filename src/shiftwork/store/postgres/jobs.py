"""Adding, finishing, reading and changing jobs, each by one function of the database."""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import msgpack
from psycopg import Rollback

from shiftwork.core.jobs.needs import needs_of
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, Finished, Outcome, Requeue
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.values.beginnings import HEAD, TAIL, read_signal, read_step, seen_signal, seen_step
from shiftwork.core.values.job_limits import PAGE_BYTES, SIGNALS, STEPS, signals_full, steps_full
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.server.session import PostgresSession, Statements
from shiftwork.store.postgres.sql import STEP_FULL, STEP_KEPT

Timed = tuple[NewJob, float]
"""A job, and the time of the call that adds it."""
NewStep = tuple[str, int, Step, str | None]
"""The id and the fence of a running job, its next step, and the name of the signal that it takes."""


async def add(session: PostgresSession, jobs: Sequence[Timed]) -> list[Added]:
    """Add these jobs, and return what happened to each, in order."""
    parts = split_by_id(jobs)
    if len(parts) == 1:
        return await _add(session, parts[0])
    async with session.conn.transaction():
        begun = await _begun(session, jobs)
        added = [one for part in parts for one in await _add(session, part, apart=True)]
        await _tie(session, [timed for timed, one in zip(jobs, added, strict=True) if one.created])
        await _aim(session, beginning(jobs, added, begun))
        return added


async def _add(session: PostgresSession, jobs: Sequence[Timed], *, apart: bool = False) -> list[Added]:
    new = [job for job, _ in jobs]
    plain = all(rows.is_plain(job) for job in new)
    if len(new) == 1 and rows.is_lone(new[0]):
        twins, topics = await session.row("add_one", (session.namespace, *rows.new_row(*jobs[0])))
        session.ring(topics)
        return added(new, twins)
    args = (session.namespace, *rows.new_columns(new, [now for _, now in jobs]), None)
    if plain:
        twins, topics = await session.row("add", args)
    else:
        twins, topics = await session.row("add_any", (*args, *rows.part_columns(new), apart))
    session.ring(topics)
    return added(new, twins)


async def extend(session: PostgresSession, parent: str, fence: int, jobs: Sequence[Timed]) -> list[Added] | None:
    """Add jobs of a running job; None unless it runs under this fence and was not asked to stop.

    Adding locks the parent's row, with others in their order, so the look comes last.
    """
    async with session.conn.transaction():
        added = await add(session, jobs)
        runs = await session.value("may_add", (session.namespace, parent, fence))
        if not runs:
            raise Rollback
    return added if runs else None


async def _begun(session: PostgresSession, jobs: Sequence[Timed]) -> set[str | None]:
    """Return which of their flows exist, and None, so that a job without a flow begins none."""
    flows = {job.flow for job, _ in jobs if job.flow is not None}
    if not flows:
        return {None}
    return {None, *await session.value("begun_flows", (session.namespace, arrays.texts([*flows])))}


def beginning(jobs: Sequence[Timed], added: Sequence[Added], begun: Collection[str | None]) -> list[Timed]:
    """Return those of these jobs that are new, in flows other than those that have begun already."""
    return [timed for timed, one in zip(jobs, added, strict=True) if one.created and timed[0].flow not in begun]


def aim_columns(beginning: Sequence[Timed]) -> tuple[str | None, str | None, str]:
    """Return the arguments of `aim`, which says what flows are for that began with these jobs."""
    ids, flows = arrays.texts([job.id for job, _ in beginning]), arrays.texts([job.flow for job, _ in beginning])
    return ids, flows, arrays.numbers([now for _, now in beginning])


async def _aim(session: PostgresSession, beginning: Sequence[Timed]) -> None:
    """Say what flows are for that began with several parts: each part knows its own jobs alone."""
    if beginning:
        await session.run("aim", (session.namespace, *aim_columns(beginning)))


async def _tie(session: PostgresSession, created: Sequence[Timed]) -> None:
    """Tie jobs that were added in several parts to what they need, and to what waits for their parents."""
    tied = [job for job, _ in created if job.needs or job.parent]
    if tied:
        needs = [(job.id, need.id) for job in tied for need in needs_of(job)]
        waiters, neededs = arrays.texts([id for id, _ in needs]), arrays.texts([id for _, id in needs])
        family = arrays.texts([job.id for job in tied]), arrays.texts([job.parent for job in tied])
        session.ring(await session.value("tie_jobs", (session.namespace, created[0][1], waiters, neededs, *family)))


def split_by_id(jobs: Sequence[Timed]) -> list[list[Timed]]:
    """Split the jobs into parts in which no id occurs twice: the first job of an id decides about the second."""
    ids = {job.id for job, _ in jobs}
    if len(ids) == len(jobs):
        return [list(jobs)]
    parts: list[list[Timed]] = [[]]
    seen: set[str] = set()
    for timed in jobs:
        if timed[0].id in seen:
            parts.append([])
            seen = set()
        seen.add(timed[0].id)
        parts[-1].append(timed)
    return parts


def added(jobs: Sequence[NewJob], twins: Sequence[str | None] | None) -> list[Added]:
    """Return what happened to each job, from what the function `add` returned."""
    if twins is None:
        return [Added(job.id, created=True) for job in jobs]
    return [Added(twin or job.id, created=twin is None) for job, twin in zip(jobs, twins, strict=True)]


async def finish(session: PostgresSession, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write the outcomes of claimed jobs."""
    args = (session.namespace, now, *rows.outcome_columns(outcomes))
    accepted, disabled, topics = await session.row("finish", args)
    session.ring(topics)
    taken = set(accepted)
    positions = range(1, len(outcomes) + 1)
    return Finished([at in taken for at in positions], [outcomes[at - 1].worker for at in disabled])


async def note(session: PostgresSession, notes: Sequence[ProgressNote]) -> None:
    """Store the progress of running jobs."""
    newest = {(each.id, each.fence): each for each in notes}.values()
    ids = arrays.texts([each.id for each in newest])
    fences = arrays.numbers([each.fence for each in newest])
    bodies = arrays.blobs([msgpack.encode(each.progress) for each in newest])
    await session.run("note", (ids, fences, bodies, session.namespace))


async def results(session: Statements, ids: Sequence[str]) -> list[bytes | None]:
    """Return the results of these jobs, in order; None where a job has none."""
    found = await session.rows("results", (session.namespace, arrays.texts(list(set(ids)))))
    by_id: dict[str, bytes] = dict(found)
    return [by_id.get(id) for id in ids]


async def keep_steps(session: PostgresSession, steps: Sequence[NewStep]) -> list[int]:
    """Keep steps of several jobs, and return for each what `keep_step` would."""
    if len(steps) == 1:
        return [await keep_step(session, *steps[0])]
    kept: list[int] = await session.value(
        "keep_steps",
        (
            session.namespace,
            arrays.texts([id for id, _, _, _ in steps]),
            arrays.numbers([fence for _, fence, _, _ in steps]),
            arrays.numbers([step.number for _, _, step, _ in steps]),
            arrays.blobs([msgpack.encode(step) for _, _, step, _ in steps]),
            arrays.numbers([len(step.result) for _, _, step, _ in steps]),
            arrays.texts([rows.storable(taking) for _, _, _, taking in steps]),
            STEPS.number,
            STEPS.bytes,
        ),
    )
    return kept


async def keep_step(session: Statements, id: str, fence: int, step: Step, taking: str | None = None) -> int:
    """Keep a step of a job that is processing under this fence, if it is the next one.

    Returns `STEP_KEPT` if the job is, `STEP_STALE` if it is not, and `STEP_FULL` if it has no room for the step.
    """
    place = (step.number, msgpack.encode(step), len(step.result), rows.storable(taking))
    kept: int = await session.value("keep_step", (session.namespace, id, fence, *place, STEPS.number, STEPS.bytes))
    return kept


def is_kept(id: str, answer: int) -> bool:
    """Return whether a step is kept. Raises if its job has no room for it."""
    if answer == STEP_FULL:
        raise steps_full(id)
    return answer == STEP_KEPT


async def steps(session: Statements, id: str, fence: int, after: int) -> StepPage | None:
    """Return the next steps of a running job."""
    args = {"namespace": session.namespace, "id": id, "fence": fence, "after": after, "most_bytes": PAGE_BYTES}
    found = await session.rows("steps", args)
    if not found:
        return None
    [(bodies, last)] = found
    return StepPage([read_step(body) for body in bodies], more=after + len(bodies) < last)


async def first_signal(session: Statements, id: str, name: str) -> Signal | None:
    """Return the first signal with this name that a job has not taken."""
    body = await session.value("first_signal", (session.namespace, id, rows.storable(name)))
    return None if body is None else read_signal(body)


async def parts(session: PostgresSession, id: str, steps: int, signals: int) -> SeenParts:
    """Return what people see of a job's steps and signals."""
    of = {"namespace": session.namespace, "id": id}
    cut = of | {"head": HEAD, "tail": TAIL}
    [counts], newest, sent = await session.together(
        [("count_parts", of), ("seen_steps", cut | {"limit": steps}), ("seen_signals", cut | {"limit": signals})]
    )
    step_count, step_bytes, signal_count, signal_bytes = counts
    return SeenParts(
        steps=[seen_step(head, tail) for head, tail in reversed(newest)],
        signals=[seen_signal(head, tail) for head, tail in sent],
        step_count=step_count,
        step_bytes=step_bytes,
        signal_count=signal_count,
        signal_bytes=signal_bytes,
    )


async def send(session: Statements, id: str, signal: Signal, now: float) -> JobStatus | None:
    """Append a signal to a live job, and return its status before."""
    name, size = rows.storable(signal.name), len(signal.value)
    args = (session.namespace, id, name, msgpack.encode(signal), size, now, SIGNALS.number, SIGNALS.bytes)
    had, is_full, topics = await session.row("send", args)
    if is_full:
        raise signals_full(id)
    session.ring(topics)
    return None if had is None else STATUSES[had]


async def get(session: Statements, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
    """Return these jobs, in order; None for an unknown id. Whole ones have their steps and signals."""
    found = await session.rows("get_whole" if whole else "get", (session.namespace, arrays.texts(list(set(ids)))))
    records = [rows.record(row) for row in found]
    by_id = {record.id: record for record in records}
    return [by_id.get(id) for id in ids]


async def rewrite(session: PostgresSession, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Store what these jobs carry in other bytes, one statement for each: it is never on the way of a run."""
    written: list[bool] = []
    for one in rewrites:
        values = rows.carried(one.after) | {f"old_{name}": value for name, value in rows.carried(one.before).items()}
        place = {"id": one.before.id, "namespace": session.namespace}
        found = await session.rows("rewrite", values | place)
        written.append(bool(found and found[0][0]))
    return written


async def amend(session: PostgresSession, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, and return what happened to each, in order."""
    done, had, topics = await _amend(session, arrays.texts(list(ids)), change, now)
    session.ring(topics)
    return [
        Amended(id, ok=ok, status=None if status is None else STATUSES[status])
        for id, ok, status in zip(ids, done, had, strict=True)
    ]


async def _amend(session: PostgresSession, ids: str | None, change: Change, now: float) -> tuple[Any, ...]:
    match change:
        case Cancel():
            return await session.row("cancel", (session.namespace, ids, rows.storable(change.reason), now))
        case Requeue():
            return await session.row(
                "requeue", (session.namespace, ids, change.run_at, change.payload, change.key, now)
            )
        case Discard():
            return await session.row("discard", (session.namespace, ids))
