"""Outcomes as bytes for the script `finish`, which decides where each takes its job (`scripts/finish.lua`)."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import msgpack

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.redis.lua import OUTCOME, OWN_ARGUMENTS, brief, columns
from shiftwork.store.redis.rows import wait_text

_encode: Final = msgpack.Encoder().encode
_outcome_fields: Final = attrgetter(*OUTCOME[: OUTCOME.index("moves")])
_STATUS: Final = OUTCOME.index("status")
"""The position of the status among these."""


def outcomes(given: Sequence[Outcome]) -> tuple[list[Any], list[bytes]]:
    """Return outcomes as columns for `finish`, and the bytes that follow them."""
    behind: list[bytes] = []
    sent = columns(_outcome(one, behind) for one in given)
    if sent and sent[_STATUS] is not JobStatus.COMPLETED:  # an ended job has no rank, and nearly all have completed
        sent.append(brief(tuple(not one.keeps_rank for one in given)))
    return sent, behind


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
