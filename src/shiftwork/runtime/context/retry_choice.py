"""Decides what an exception means for the next attempt, in the process where it was raised.

The node may be another process and sees data only: `End.final` and `End.again_in`. It counts attempts, and
`core.jobs.retry.settle` has the last word.
"""

from math import isfinite

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind, GiveUp, RetryAfter, Snooze, error_names_of, is_last, refusal
from shiftwork.core.options.retry_rules import RetryRule
from shiftwork.core.words import seconds_in
from shiftwork.errors import StepError
from shiftwork.runtime.context.current_run import CurrentRun, WhatFollows
from shiftwork.runtime.context.store_calls import Suspended
from shiftwork.runtime.error_text import describe, one_line


def chosen(run: CurrentRun, end: End, error: BaseException) -> End:
    """Return the end of a run that raised this, with what follows from the exception."""
    try:
        return _chosen(run, end, error)
    except BaseException as problem:  # noqa: BLE001 - a user's function, or a class with code of its own
        return _undecided(run, end, describe(problem, run.discreet))


def what_follows(run: CurrentRun, error: BaseException) -> WhatFollows:
    """Return what becomes of the job if its run raises this."""
    end = chosen(run, End(EndKind.RAISED), error)
    if end.kind is EndKind.SNOOZED:
        return "pause"
    return "dead" if is_last(end, run.job.attempt, run.config) else "retry"


def _chosen(run: CurrentRun, end: End, error: BaseException) -> End:
    single = _single(error)
    if isinstance(single, Suspended):
        return single.end()
    if isinstance(single, Snooze):
        return End(EndKind.SNOOZED, again_in=float(single.seconds))
    if isinstance(single, GiveUp | StepError):
        return replace(end, final=True, on_request=isinstance(single, GiveUp))
    if isinstance(single, RetryAfter):
        return replace(end, again_in=float(single.seconds), on_request=True)
    if run.retry_rule is not None:
        return _ruled(run, end, run.retry_rule, error)
    names = error_names_of(error) if single is error else [*error_names_of(single), *error_names_of(error)]
    refused = refusal(run.config.retry, names)
    return end if refused is None else _final(end, refused)


def _single(error: BaseException) -> BaseException:
    """Return the exception in groups of one, as a task group raises them when one of its tasks fails."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _ruled(run: CurrentRun, end: End, rule: RetryRule, error: BaseException) -> End:
    choice = rule(run.job.attempt, error)  # type: ignore[arg-type]  # nearly always an Exception
    if choice is None:
        return _final(end, "not retried: its retry function returned None")
    seconds = seconds_in(choice)
    if seconds is None or not isfinite(seconds) or seconds < 0:
        return _undecided(run, end, f"it returned {choice!r}")
    return replace(end, again_in=seconds)


def _final(end: End, why: str) -> End:
    return replace(end, error=f"{end.error}; {why}", final=True)


def _undecided(run: CurrentRun, end: End, what: str) -> End:
    """Return the end as the default policy takes it, with what is wrong with the user's own one."""
    return replace(end, error=one_line(f"{end.error}; its retry function failed: {what}", run.discreet))
