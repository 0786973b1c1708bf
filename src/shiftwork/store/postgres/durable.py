"""Durable functions: the steps that a job has done, and the signals that were sent to it."""

from collections.abc import Sequence

from msgspec import msgpack

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.values.beginnings import HEAD, TAIL, read_signal, read_step, seen_signal, seen_step
from shiftwork.core.values.job_limits import PAGE_BYTES, SIGNALS, STEPS, signals_full, steps_full
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.server.sql import STEP_FULL, STEP_KEPT
from shiftwork.store.postgres.server.statements import PostgresSession, Statements

NewStep = tuple[str, int, Step, str | None]
"""Id and fence of a running job, its next step, and the name of the signal that the step takes."""


async def keep_steps(session: PostgresSession, steps: Sequence[NewStep]) -> list[int]:
    """Keep steps of several jobs, and return for each what `keep_step` returns."""
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
    """Return the first signal with this name that the job has not taken."""
    body = await session.value("first_signal", (session.namespace, id, rows.storable(name)))
    return None if body is None else read_signal(body)


async def send(session: Statements, id: str, signal: Signal, now: float) -> JobStatus | None:
    name, size = rows.storable(signal.name), len(signal.value)
    args = (session.namespace, id, name, msgpack.encode(signal), size, now, SIGNALS.number, SIGNALS.bytes)
    had, is_full, topics = await session.row("send", args)
    if is_full:
        raise signals_full(id)
    session.ring(topics)
    return None if had is None else STATUSES[had]


async def parts(session: PostgresSession, id: str, steps: int, signals: int) -> SeenParts:
    """Return the newest steps and the signals of a job, shortened, with their numbers and sizes."""
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
