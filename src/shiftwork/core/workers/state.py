"""The state of a worker: what a run's end, a cancelled job and a person's switch make of it, and what it permits.

* A job that ends for good (completed, dead, cancelled) moves `last_ended`; a success moves `last_success`. Neither ever
  moves back: ends may be written in another order than they happened.
* A success clears the consecutive failures, a failure adds one; a neutral outcome does neither.
* A failure sets the last error and its time, and so does an attempt that fails and is retried. A success does not clear
  them: that a worker fails now shows in `last_error_at > last_success`. They do not move back either.
* The failure that makes `disable_after` in a row disables the worker, once, with a reason that names count and error.
* Enabling a worker clears its consecutive failures.

The memory and SQLite stores call these functions. Redis (worker_state.lua, finish_fast.lua for successes,
amend.lua) and PostgreSQL (`apply_verdicts` and `switch`) repeat them; `tests.store.conformance.checks.core_rules`
compares every store with them.
"""

from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

from shiftwork.core.jobs.transitions import ENDED
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.sentences import plain, sentence

# ── why a worker is disabled, where no person has written the reason ─────────────────────────────────────────────────


def failed_in_a_row(failures: object, error: object) -> str:
    """Return why failures disable a worker."""
    return sentence("{n} runs in a row failed, the last one with {error}", n=failures, error=error)


BY_HAND: Final = sentence("disabled by hand")
DISABLED_BY_HAND: Final = plain(BY_HAND)
"""The reason if the person who disabled it gave none."""
AT_REGISTRATION: Final = sentence("registered with enabled=False")
REGISTERED_DISABLED: Final = plain(AT_REGISTRATION)
"""The reason of a worker that was registered so."""
FAILED_IN_A_ROW: Final = plain(failed_in_a_row("%s", "%s"))
"""The text that a server fills in when it disables a worker itself: the number of failures, and the last error."""


def reason_of(state: WorkerState) -> str | None:
    """Return why a worker is disabled. Stores keep the text alone; a reason of ours becomes a sentence again."""
    ours = (BY_HAND, AT_REGISTRATION, failed_in_a_row(state.failures, state.last_error))
    return next((known for known in ours if known == state.reason), state.reason)


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def after_run(state: WorkerState, outcome: Outcome, status: JobStatus) -> bool:
    """Change the state for an accepted outcome whose job landed in `status`. True if that disabled the worker."""
    if status in ENDED:
        after_end(state, outcome.ended_at)
    if outcome.verdict == "failure" or outcome.status is JobStatus.FAILED:
        _note_error(state, outcome)
    if outcome.verdict == "success":
        if state.last_success is None or outcome.ended_at > state.last_success:
            state.last_success = outcome.ended_at
        state.failures = 0
    elif outcome.verdict == "failure":
        state.failures += 1
        return _disabled(state, outcome)
    return False


def after_end(state: WorkerState, ended_at: float) -> None:
    """Change the state for a job that ended for good, by a run or by a person."""
    if state.last_ended is None or ended_at > state.last_ended:
        state.last_ended = ended_at


def switch(state: WorkerState, *, enabled: bool, reason: str | None, now: float) -> None:
    """Enable the worker, or disable it with a reason."""
    state.enabled, state.changed_at = enabled, now
    state.reason = None if enabled else reason
    if enabled:
        state.failures = 0


def _note_error(state: WorkerState, outcome: Outcome) -> None:
    if outcome.ended_at >= (state.last_error_at or 0.0):
        state.last_error, state.last_error_at = outcome.error, outcome.ended_at


def _disabled(state: WorkerState, outcome: Outcome) -> bool:
    limit = outcome.disable_after
    if limit is None or state.failures < limit or not state.enabled:
        return False
    state.enabled = False
    state.reason = plain(failed_in_a_row(state.failures, outcome.error))
    state.changed_at = outcome.ended_at
    return True


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_failing(state: WorkerState) -> bool:
    """Return whether the last attempt of the worker that succeeded or failed is one that failed."""
    return state.last_error_at is not None and state.last_error_at > (state.last_success or 0.0)


def runs_beside_itself(config: WorkerConfig, payload: Mapping[str, Any]) -> bool:
    """Return whether a run with this payload is work of its own, next to others of the same worker.

    A TRIGGERED worker does other work for each payload. Any other run would repeat the one that is running.
    """
    return config.execution_mode is WorkerExecutionMode.TRIGGERED and bool(payload)


def first_run_ended(job: JobRecord) -> bool:
    """Return whether a run of the job that counts has ended, well or not. One that was handed back does not count."""
    return not job.status.live or job.attempt > 1 or (job.attempt == 1 and job.status is not JobStatus.PROCESSING)


def trigger_refusal(
    config: WorkerConfig, state: WorkerState, payload: Mapping[str, Any], *, running: int
) -> str | None:
    """Return why a worker in this state, with this number of running jobs, may not be triggered now; None if it may."""
    name = config.name
    if not state.enabled:
        return sentence(
            "worker {worker} is disabled: {reason}; enable it first: shiftwork enable {name}",
            worker=name,
            reason=state.reason,
            name=quote(name),
        )
    if running and not runs_beside_itself(config, payload):
        return sentence(
            "worker {worker} is already running; see: shiftwork jobs --worker {name} --status processing",
            worker=name,
            name=quote(name),
        )
    return None
