"""Finishing: writing the outcomes of runs, and the progress of runs that go on."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import json, msgpack

from shiftwork.core.jobs.transitions import COUNTED, NUMBERS
from shiftwork.core.model.job_changes import VERDICTS, Finished, Outcome
from shiftwork.core.model.jobs import ProgressNote
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.server.statements import PostgresSession
from shiftwork.store.postgres.stats import WAITED


async def finish(session: PostgresSession, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write the outcomes of claimed jobs."""
    args = (session.namespace, now, *outcome_columns(outcomes))
    accepted, disabled, topics = await session.row("finish", args)
    session.ring(topics)
    taken = set(accepted)
    positions = range(1, len(outcomes) + 1)
    return Finished([at in taken for at in positions], [outcomes[at - 1].worker for at in disabled])


def outcome_columns(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Return outcomes as arguments of the function `finish`."""
    verdicts = [VERDICTS[one.verdict] for one in outcomes]
    run_ats = [one.run_at for one in outcomes]
    waits = any(one.wait for one in outcomes)
    return (
        arrays.texts([one.id for one in outcomes]),
        arrays.numbers([one.fence for one in outcomes]),
        arrays.numbers(arrays.collapsed([NUMBERS[one.status] for one in outcomes])),
        arrays.numbers([one.ended_at for one in outcomes]),
        arrays.numbers(run_ats if waits else arrays.collapsed(run_ats)),
        arrays.numbers(arrays.collapsed([one.attempt for one in outcomes])),
        arrays.numbers(arrays.collapsed([one.crashes for one in outcomes])),
        arrays.numbers(arrays.collapsed(verdicts)),
        arrays.optional_numbers([one.disable_after for one in outcomes]) if VERDICTS["failure"] in verdicts else None,
        arrays.blobs([one.result for one in outcomes]),
        arrays.texts([rows.storable(one.error) for one in outcomes]),
        arrays.blobs([msgpack.encode(one.report) if one.report else None for one in outcomes]),
        arrays.optional_numbers([one.keep_until for one in outcomes]),
        *(rows.wait_columns([one.wait for one in outcomes]) if waits else (None, None)),
        arrays.booleans([not one.keeps_rank for one in outcomes]),
        *_outcome_marks(outcomes),
    )


def _outcome_marks(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Return what the outcomes add to the marks of their pools: summed up by pool and name, and one by one."""
    one_by_one = [(one.pool, one.marks, one.waited if one.status in COUNTED else 0.0) for one in outcomes]
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (pool, marks), n in Counter([(pool, marks) for pool, marks, _ in one_by_one]).items():
        for mark in marks.split():
            sums[pool, mark] += n
    for pool, _, waited in one_by_one:
        sums[pool, WAITED] += waited
    keys = sorted(sums)
    return (
        arrays.texts([pool for pool, _ in keys]),
        arrays.texts([name for _, name in keys]),
        arrays.numbers([sums[key] for key in keys]),
        json.encode(one_by_one).decode(),
    )


async def note(session: PostgresSession, notes: Sequence[ProgressNote]) -> None:
    """Store the progress of running jobs."""
    newest = {(each.id, each.fence): each for each in notes}.values()
    ids = arrays.texts([each.id for each in newest])
    fences = arrays.numbers([each.fence for each in newest])
    bodies = arrays.blobs([msgpack.encode(each.progress) for each in newest])
    await session.run("note", (ids, fences, bodies, session.namespace))
