"""Jobs as bytes for the scripts of the hot path, and back: new jobs, claimed jobs, outcomes."""

import struct
from collections.abc import Iterable, Sequence
from math import isnan
from operator import attrgetter
from typing import Any, Final

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.needs import needs_of
from shiftwork.core.jobs.transitions import NUMBERS, STATUSES
from shiftwork.core.model.flows import FlowMember
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Wait
from shiftwork.core.model.jobs import Added, Claimed, JobRecord, JobStatus, NewJob
from shiftwork.store.redis.layout import NEW, OUTCOME, STATE, Flag

_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder().decode
_new: Final = attrgetter(*NEW[: NEW.index("created_at")])
_outcome_fields: Final = attrgetter(*OUTCOME[: OUTCOME.index("moves")])
_STATUS: Final = OUTCOME.index("status")
"""The place of the status among these."""
_QUEUED: Final = NUMBERS[JobStatus.QUEUED]
_NONE: Final = float("nan")
OWN_ARGUMENTS: Final = 2
"""How many elements of ARGV come before the bytes that follow the arguments."""


def new_jobs(jobs: Sequence[NewJob], now: float) -> tuple[list[tuple[Any, ...]], list[bytes]]:
    """Return jobs as rows for `added_together`, and their payloads."""
    rows, payloads = [], []
    for job in jobs:
        job.id.encode()  # an id that cannot be sent fails here, not for all jobs of the batch
        rows.append((*_new(job), now, never_changes_of(job, now), _extra(job)))
        payloads.append(job.payload)
    return rows, payloads


def one_plain(job: NewJob, now: float) -> tuple[bytes, ...] | None:
    """Return a job as arguments of `add_one`; None if it is not due, or has something that few jobs have."""
    run_at, head_start = job.run_at, job.head_start
    if job.unique_key is not None or job.key is not None or not run_at <= now or _extra(job) is not None:
        return None
    return (
        job.id.encode(),
        STATE.pack(_QUEUED, 0, 0, 0, 0, 0.0, run_at, head_start, _NONE, _NONE),
        never_changes_of(job, now),
        job.payload,
        job.worker.encode(),
        job.pool.encode(),
        repr(now).encode(),
        repr(run_at - head_start).encode(),
    )


def added_together(
    rows: Sequence[tuple[Any, ...]], payloads: Sequence[bytes], by: tuple[str, int] | tuple[()] = ()
) -> tuple[bytes, list[bytes]]:
    """Return the rows of a batch as arguments of `add`, and the bytes that follow them.

    If a running job adds them, its id and its fence are given.
    """
    first = OWN_ARGUMENTS + len(payloads) + 1
    if len(rows) == 1:
        [(*row, info, extra)] = rows
        if extra is None:
            return _encode((1, (*row, first), *by)), [*payloads, info]
        return _encode((1, (*row, first, first + 1), *by)), [*payloads, info, extra]
    *given, infos, extras = zip(*rows, strict=True)
    at = {info: first + n for n, info in enumerate(dict.fromkeys(infos))}
    given.append(tuple(map(at.__getitem__, infos)))
    if extras.count(None) < len(extras):
        for extra in dict.fromkeys(filter(None, extras)):
            at[extra] = first + len(at)
        given.append(tuple(map(at.get, extras)))
    return _encode((len(rows), [_brief(column) for column in given], *by)), [*payloads, *at]


def answered(new: Sequence[NewJob], answers: list[Any]) -> list[Added]:
    """Return what happened to each job, from the reply of `add`."""
    if not answers:
        return [Added(job.id, created=True) for job in new]
    return [
        Added(one.decode(), created=False) if isinstance(one, bytes) else Added(job.id, created=one == 1)
        for job, one in zip(new, answers, strict=True)
    ]


def columns(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Turn rows into columns, which the server unpacks several times faster."""
    return [_brief(column) for column in zip(*rows, strict=True)]


def _brief(column: tuple[Any, ...]) -> Any:
    """Return the one value that a whole column has, or the column: most columns of a batch have one value."""
    return column[0] if column.count(column[0]) == len(column) else column


def never_changes_of(job: NewJob | JobRecord, now: float) -> bytes:
    """Return i of a job, which was created at this time."""
    never_changes = (
        job.worker,
        job.pool,
        int(job.priority),
        job.head_start,
        now,
        job.cause,
        job.unique_key,
        job.key,
        job.key_limit,
        job.trace,
    )
    if job.options is None and job.expires_at is None:
        return _encode(never_changes)
    # The server's MessagePack knows texts, but no bytes.
    options = None if job.options is None else job.options.decode("latin-1")
    return _encode((*never_changes, options, job.expires_at))


def _extra(job: NewJob) -> bytes | None:
    """Return what few new jobs have, as `add` describes it; None if this one has nothing of it."""
    if job.flow is None and not job.tags and not job.needs and job.parent is None and job.expires_at is None:
        return None
    return _encode((job.flow, job.tags, needs_of(job), job.parent, job.expires_at))


def outcomes(given: Sequence[Outcome]) -> tuple[list[Any], list[bytes]]:
    """Return outcomes as columns for `finish`, and the bytes that follow them."""
    behind: list[bytes] = []
    said = columns(_outcome(one, behind) for one in given)
    if said and said[_STATUS] is not JobStatus.COMPLETED:  # apart: nearly all have completed, and need no place
        said.append(_brief(tuple(not one.keeps_rank for one in given)))
    return said, behind


def _outcome(one: Outcome, behind: list[bytes]) -> tuple[Any, ...]:
    if one.result is None and one.report is None and one.wait is None:
        return _outcome_fields(one)
    result = report = None
    if one.result is not None:
        behind.append(one.result)
        result = OWN_ARGUMENTS + len(behind)
    if one.report is not None:
        behind.append(_encode(one.report))
        report = OWN_ARGUMENTS + len(behind)
    *before, _, error, keep_until, cause, _, waited, marks, wait = _outcome_fields(one)
    return (*before, result, error, keep_until, cause, report, waited, marks, wait_text(wait))


def wait_text(wait: Wait | None) -> str | None:
    """Return the signal that a job waits for as the scripts have it."""
    return None if wait is None else f"{wait.nth} {wait.name}"


def claimed(flat: Sequence[Any], broken: dict[str, str]) -> list[Claimed]:
    """Return the jobs of a reply of `claim`. Unreadable ones are added to `broken`, with the reason."""
    jobs: list[Claimed] = []
    for id, state, never_changes, payload in zip(flat[::4], flat[1::4], flat[2::4], flat[3::4], strict=True):
        _, flags, _, attempt, crashes, fence, run_at, _, _, _ = STATE.unpack_from(state)
        try:
            worker, pool, _, _, _, cause, _, _, _, trace, *own = _decode(never_changes)
        except (MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
            broken[id.decode()] = f"unreadable: {error}"
            continue
        name = id.decode()
        job = Claimed(name, worker, pool, payload, int(fence), attempt, crashes, run_at, cause, trace or None)
        jobs.append(job if not own else replace(job, **own_values(own, flags)))
    return jobs


def own_values(own: Sequence[Any], flags: int) -> dict[str, Any]:
    """Return what few jobs have in i: their options, and their expiry as long as it holds."""
    if not own:
        return {}
    options, expires_at = own
    return {
        "options": options.encode("latin-1") if options else None,
        "expires_at": expires_at if flags & Flag.EXPIRES and expires_at else None,
    }


def members(flat: Sequence[Any]) -> list[FlowMember]:
    """Return the jobs of a reply of `members`."""
    return [_member(*flat[at : at + 5]) for at in range(0, len(flat), 5)]


def _member(id: bytes, created_at: bytes, state: bytes, never_changes: bytes, stranded: int) -> FlowMember:
    worker, status, started_at, ended_at, options = "", JobStatus.DEAD, None, None, None
    try:
        number, flags, *_, started, ended = STATE.unpack_from(state)
        worker, _, _, _, _, _, _, _, _, _, *own = _decode(never_changes)
        status = STATUSES[number]
        started_at, ended_at = _time(started), _time(ended)
        options = own_values(own, flags).get("options")
    except (MsgspecError, struct.error, UnicodeDecodeError, LookupError, TypeError, ValueError):
        pass  # damaged: the next call that reads the job itself buries it
    return FlowMember(id.decode(), worker, status, float(created_at), started_at, ended_at, options, bool(stranded))


def _time(number: float) -> float | None:
    return None if isnan(number) else number
