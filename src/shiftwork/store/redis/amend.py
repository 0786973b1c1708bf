"""What people change, as arguments of the scripts `amend` and `rewrite`, which decide whether a job allows it."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import msgpack

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Requeue
from shiftwork.core.model.jobs import JobRecord, Rewrite
from shiftwork.store.redis.rows import Fields, numbered

_encode: Final = msgpack.Encoder().encode


def amendment(change: Change, ids: Sequence[str]) -> tuple[tuple[Any, ...], tuple[bytes, ...]]:
    """Return a change of jobs as arguments of `amend` behind the time, and the bytes that follow them."""
    match change:
        case Cancel(reason=reason):
            return ("cancel", ids, reason), ()
        case Requeue(run_at=run_at, payload=payload, key=key):
            return ("requeue", ids, run_at, key), () if payload is None else (payload,)
        case _:
            return ("discard", ids), ()


def amended(ids: Sequence[str], answers: Sequence[Any]) -> list[Amended]:
    """Return what happened to each job, from the reply of `amend`."""
    return [
        Amended(id, ok=done == 1, status=STATUSES[status] if status >= 0 else None)
        for id, (status, done) in zip(ids, answers, strict=True)
    ]


def rewrites_of(given: Sequence[Rewrite]) -> tuple[list[Any], list[bytes]]:
    """Return rewrites as arguments of `rewrite`, and the bytes that follow them."""
    jobs: list[Any] = []
    behind: list[bytes] = []
    for one in given:
        old, new = _carried(one.before), _carried(one.after)
        jobs.append((one.before.id, len(new)))
        for name, value in new.items():
            behind += (name, old.get(name, b""), value)
    return jobs, behind


def _carried(one: JobRecord) -> Fields:
    """Return the fields of a job that hold what it carries."""
    optional = {
        b"r": one.result,
        b"e": None if one.error is None else one.error.encode(),
        b"g": None if one.progress is None else _encode(one.progress),
    }
    return {
        b"p": one.payload,
        **{name: value for name, value in optional.items() if value is not None},
        **numbered(b"a", one.attempts),
        **numbered(b"step", one.steps),
        **numbered(b"signal", one.signals),
    }
