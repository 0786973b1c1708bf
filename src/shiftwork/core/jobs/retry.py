"""What becomes of a job when a run of it has ended.

    returned     completed
    raised       failed, and due again after a back-off; dead once the retries are used up, or if the policy or the
                 function itself rules out another attempt
    timed_out    like raised
    snoozed      scheduled for when the function asked for, or until its signal comes, the attempt uncounted
    crashed      failed, and due again soon, then in its old place, the attempt uncounted; dead at the third crash, or
                 at the tenth if its process was killed from outside (SIGKILL, and not for lack of memory)
    lost         queued again in its old place, the attempt uncounted; dead at the tenth loss
    drained      queued again in its old place, the attempt uncounted; dead at the eleventh time within a minute if
                 nothing had asked its runs to stop
    cancelled    cancelled
    expired      cancelled, the attempt uncounted: it was claimed too late to be started
    undecodable  dead, unless a node of another version of the app may try it: `core.jobs.undecodable` decides that
    unencodable  dead: the work is done and only its result cannot be kept, so doing it again would not help

A run that was only interrupted (crashed, lost, drained, undecodable for this version) costs its job neither an attempt
nor its place in the queue: the job keeps its rank. Only after a failed attempt, or when the function asked for a later
time, is the rank that of a job which is new at its next `run_at`. An interrupted job is due again from now on, or from
the end of its pause: the time that its run took does not count as waiting time.

Consecutive failures of a worker count jobs, not attempts: only the attempt that makes a job dead is a failure of its
worker. Nothing here writes: the outcome is a value, and `core.jobs.transitions` says where the store takes the job with
it.

A function decides on its own next attempt, instead of leaving that to its worker's policy, by what it raises. These are
requests and not errors of shiftwork, so they are outside the tree of `shiftwork.errors`:

    raise GiveUp("the customer is gone")     dead at once, whatever retries are left
    raise RetryAfter(30)                     failed, and due again in 30 seconds; the attempt counts
    raise Snooze(30)                         handed back for 30 seconds; the attempt does not count
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from shiftwork.core.jobs.run_options import policy
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Wait
from shiftwork.core.model.jobs import SECONDS_A_DAY, Attempt, Claimed, JobStatus, LogLine
from shiftwork.core.model.workers import Retry, WorkerConfig
from shiftwork.core.observing.run_histograms import marked, timed
from shiftwork.core.words import Duration, seconds_of
from shiftwork.errors import ConfigurationError

# ── how a run ended ──────────────────────────────────────────────────────────────────────────────────────────────────

CRASH_LIMIT: Final = 3
"""How many crashes make a job dead."""
LOSS_LIMIT: Final = 10
"""How many losses make a job dead: it may be what takes the nodes down."""
HAND_BACK_LIMIT: Final = 10
HAND_BACK_SECONDS: Final = 60.0
"""A job that is handed back more often than this within this time, though nothing asked its runs to stop, is dead: it
would start for ever. A node that stops, a lost lease and a neighbour's crash are reasons, however often they occur."""
TIMEOUT: Final = ("TimeoutError", "OSError", "Exception", "BaseException")
"""A run that took too long counts as one that raised this exception; with its base classes."""
CRASH_RETRY: Final = Retry(base_seconds=1.0, factor=4.0, max_seconds=60.0, jitter=0.1)


class EndKind(StrEnum):
    """How a run ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    """Its process died while it ran."""
    LOST = "lost"
    """The whole node vanished with everything it ran; as far as is known, the job is not to blame."""
    DRAINED = "drained"
    """An instance that stops or steps down handed it back."""
    SNOOZED = "snoozed"
    """The function handed it back until a later time."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It was claimed when its time to start was over, and was not started."""
    UNDECODABLE = "undecodable"
    """The payload does not fit the function."""
    UNENCODABLE = "unencodable"
    """The result has no encoding."""


class End(Struct, frozen=True, gc=False):
    """How one run ended, and with what."""

    kind: EndKind
    result: bytes | None = None
    error: str | None = None
    traceback: str | None = None
    from_outside: bool = False
    """Whether its process was killed from outside: the job itself may be innocent."""
    log: tuple[LogLine, ...] = ()
    """The lines it logged."""
    begun: bool = True
    """Whether a drained run had begun. If not, its job has waited all the time."""
    unasked: bool = False
    """Whether a drained run was handed back although nothing had asked it to stop."""
    final: bool = False
    """Whether no other attempt can help: the function ruled it out, or no version of the app could begin."""
    again_in: float | None = None
    """After how many seconds the run asks for the next attempt; None leaves that to the policy."""
    wait: Wait | None = None
    """The signal that a snoozed job waits for."""
    on_request: bool = False
    """Whether the function asked for what follows, with `GiveUp` or `RetryAfter`: no mistake needs to be found."""


# ── requests of a function ───────────────────────────────────────────────────────────────────────────────────────────


class GiveUp(Exception):  # noqa: N818 - a request, not an error
    """Make the job dead at once: another attempt would not help."""


class RetryAfter(Exception):  # noqa: N818 - as above
    """Fail this attempt, and try again after this time, if the worker has retries left."""

    def __init__(self, seconds: Duration, reason: str = "") -> None:
        super().__init__(seconds, reason)
        self.seconds: float = seconds_of("RetryAfter", seconds)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or f"again in {self.seconds:g} s"


class Snooze(Exception):  # noqa: N818 - as above
    """Hand the job back until this time has passed, without counting the attempt."""

    def __init__(self, seconds: Duration) -> None:
        super().__init__(seconds)
        self.seconds: float = seconds_of("Snooze", seconds)
        if self.seconds == 0:
            raise ConfigurationError("Snooze needs a time above 0: the job would start again and again without a pause")

    def __str__(self) -> str:
        return f"for {self.seconds:g} s"


# ── what becomes of the job ──────────────────────────────────────────────────────────────────────────────────────────


def settle(
    job: Claimed,
    end: End,
    config: WorkerConfig | None,
    *,
    started_at: float,
    now: float,
    rand: float,
    instance: str | None = None,
    losses: int = 0,
    hand_backs: int = 0,
) -> Outcome:
    """Return the outcome for the job. `rand` is in [0, 1); `losses` is how often the job was lost before.

    `hand_backs` is how often it was handed back within `HAND_BACK_SECONDS` with no reason, this end included.
    Without a `config` the worker is unknown to this process, and defaults apply; what the job has of its own applies
    anyway.
    """
    if end.kind is EndKind.RETURNED:
        return _completed(job, end, config, started_at, now)
    run = _EndedRun(job=job, end=end, config=config, started_at=started_at, now=now, rand=rand, instance=instance)
    match end.kind:
        case EndKind.RAISED | EndKind.TIMED_OUT:
            return _failed(run)
        case EndKind.CRASHED:
            return _crashed(run)
        case EndKind.LOST:
            return _lost(run, losses + 1)
        case EndKind.DRAINED | EndKind.SNOOZED:
            return _handed_back(run, hand_backs)
        case EndKind.CANCELLED | EndKind.EXPIRED:
            return _cancelled(run)
        case EndKind.UNDECODABLE:
            return run.dead(end.error or "the payload cannot be decoded", blamed=False)
        case EndKind.UNENCODABLE:
            return run.dead(end.error or "the result cannot be encoded")


class _EndedRun(Struct, frozen=True, kw_only=True):
    """One ended run, with everything known about it."""

    job: Claimed
    end: End
    config: WorkerConfig | None
    started_at: float
    now: float
    rand: float
    instance: str | None

    @property
    def policy(self) -> WorkerConfig:
        return policy(self.config or WorkerConfig(name=self.job.worker), self.job.options)

    def outcome(self, status: JobStatus, **changes: Any) -> Outcome:
        job = self.job
        kept: dict[str, Any] = {"run_at": job.run_at, "attempt": job.attempt, "crashes": job.crashes, **changes}
        waited = max(0.0, self.started_at - job.run_at)
        return Outcome(
            id=job.id,
            fence=job.fence,
            worker=job.worker,
            pool=job.pool,
            status=status,
            ended_at=self.now,
            cause=job.cause,
            waited=waited,
            marks=marked(status, self.end.kind, timed(job.worker, waited, self.now - self.started_at)),
            **kept,
        )

    def report(self, error: str) -> Attempt:
        return Attempt(
            number=self.job.attempt,
            started_at=self.started_at,
            ended_at=self.now,
            kind=self.end.kind,
            error=error,
            traceback=self.end.traceback,
            instance=self.instance,
            log=self.end.log,
            on_request=self.end.on_request,
        )

    def again(self, error: str, *, in_seconds: float, **changes: Any) -> Outcome:
        run_at = self.now + in_seconds
        return self.outcome(JobStatus.FAILED, run_at=run_at, error=error, report=self.report(error), **changes)

    def dead(self, error: str, *, blamed: bool = True, **changes: Any) -> Outcome:
        # A process that does not know the worker must not disable it by a limit that is not the worker's own.
        disable_after = self.config.max_consecutive_failures if self.config and blamed else None
        return self.outcome(
            JobStatus.DEAD,
            verdict="failure" if blamed else "neutral",
            disable_after=disable_after,
            error=error,
            report=self.report(error),
            **changes,
        )


def _completed(job: Claimed, end: End, config: WorkerConfig | None, started_at: float, now: float) -> Outcome:
    # Nearly every run ends here, so this takes the shortest way.
    waited = max(0.0, started_at - job.run_at)
    return Outcome(
        id=job.id,
        fence=job.fence,
        worker=job.worker,
        pool=job.pool,
        status=JobStatus.COMPLETED,
        ended_at=now,
        run_at=job.run_at,
        attempt=job.attempt,
        crashes=job.crashes,
        verdict="success",
        result=end.result,
        keep_until=now + (config.keep_completed_seconds if config else SECONDS_A_DAY),
        cause=job.cause,
        waited=waited,
        marks=timed(job.worker, waited, now - started_at),
    )


def _failed(run: _EndedRun) -> Outcome:
    error = run.end.error or _default_error(run)
    end, retry = run.end, run.policy.retry
    if is_last(end, run.job.attempt, run.policy):
        return run.dead(error)
    refused = refusal(retry, TIMEOUT) if end.kind is EndKind.TIMED_OUT else None
    if refused is not None:
        return run.dead(f"{error}; {refused}")
    in_seconds = backoff(retry, run.job.attempt, run.rand) if end.again_in is None else end.again_in
    return run.again(error, in_seconds=in_seconds, keeps_rank=False)


def _crashed(run: _EndedRun) -> Outcome:
    error = run.end.error or "its process died"
    crashes = run.job.crashes + 1
    attempt = _uncounted(run.job)
    if crashes >= (LOSS_LIMIT if run.end.from_outside else CRASH_LIMIT):
        return run.dead(f"crashed {crashes} times, the last time: {error}", attempt=attempt, crashes=crashes)
    in_seconds = backoff(CRASH_RETRY, crashes, run.rand)
    return run.again(error, in_seconds=in_seconds, attempt=attempt, crashes=crashes)


def _lost(run: _EndedRun, losses: int) -> Outcome:
    error = run.end.error or "its node vanished"
    attempt = _uncounted(run.job)
    if losses >= LOSS_LIMIT:
        return run.dead(f"lost {losses} times, the last time: {error}", attempt=attempt)
    return run.outcome(JobStatus.QUEUED, run_at=run.now, attempt=attempt, error=error, report=run.report(error))


def _cancelled(run: _EndedRun) -> Outcome:
    keep_until = run.now + SECONDS_A_DAY
    if run.end.kind is EndKind.EXPIRED:
        return run.outcome(JobStatus.CANCELLED, error=EXPIRED, attempt=_uncounted(run.job), keep_until=keep_until)
    error = run.end.error or "cancelled"
    return run.outcome(JobStatus.CANCELLED, error=error, report=run.report(error), keep_until=keep_until)


def _handed_back(run: _EndedRun, hand_backs: int) -> Outcome:
    attempt = _uncounted(run.job)
    if run.end.kind is EndKind.SNOOZED:
        run_at = run.now + (run.end.again_in or 0.0)
        return run.outcome(JobStatus.QUEUED, run_at=run_at, attempt=attempt, wait=run.end.wait, keeps_rank=False)
    if hand_backs <= HAND_BACK_LIMIT:
        return run.outcome(JobStatus.QUEUED, run_at=run.now if run.end.begun else run.job.run_at, attempt=attempt)
    error = (
        f"stopped: it started {hand_backs} times within a minute and was handed back each time, without using up an "
        "attempt. Look for the reason in the log of the node that ran it, then retry the job"
    )
    return run.dead(error, blamed=False, attempt=attempt)


def _default_error(run: _EndedRun) -> str:
    if run.end.kind is EndKind.RAISED:
        return "failed without a message"
    seconds = run.policy.timeout_seconds
    return f"timed out after {run.now - run.started_at if seconds is None else seconds:g} s"


def _uncounted(job: Claimed) -> int:
    return max(0, job.attempt - 1)


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def is_refused(outcome: Outcome) -> bool:
    """Return whether the job would be dead because its payload did not fit the function."""
    report = outcome.report
    return outcome.status is JobStatus.DEAD and report is not None and report.kind == EndKind.UNDECODABLE


def is_last(end: End, attempt: int, policy: WorkerConfig) -> bool:
    """Return whether a run that raised or took too long was the last one of its job."""
    return end.final or attempt > policy.max_retries


def backoff(retry: Retry, attempt: int, rand: float) -> float:
    """Return how many seconds to wait after this attempt (from 1) has failed, plus or minus the jitter."""
    retries = max(0, attempt - 1)
    delay = retry.delays[min(retries, len(retry.delays) - 1)] if retry.delays else _growing(retry, retries)
    return max(0.0, delay * (1 + retry.jitter * (2 * rand - 1)))


def _growing(retry: Retry, retries: int) -> float:
    if retry.base_seconds <= 0:
        return 0.0
    try:
        delay = retry.base_seconds * float(retry.factor) ** retries
    except OverflowError:
        return retry.max_seconds
    return min(delay, retry.max_seconds)


def error_name(kind: type) -> str:
    """Return the name by which a policy knows an exception: with its module, unless it is built in."""
    # Not `kind.__qualname__`, which a metaclass may define.
    module, name = (type.__dict__[part].__get__(kind) for part in ("__module__", "__qualname__"))
    return f"{name}" if module == "builtins" else f"{module}.{name}"


def error_names_of(error: BaseException) -> Iterator[str]:
    """Yield the names of an exception's class and of its bases, the class itself first."""
    return map(error_name, type.__dict__["__mro__"].__get__(type(error)))


def refusal(retry: Retry, names: Iterable[str]) -> str | None:
    """Return why the policy rules out another attempt after this exception; None if it does not.

    `names` are those of the exception's class and of its bases, the class itself first.
    """
    if retry.on is None and not retry.never_on:
        return None
    of_class = tuple(names)
    never = next((name for name in of_class if name in retry.never_on), None)
    if never is not None:
        return f"not retried: never_on has {never}"
    if retry.on is not None and not any(name in retry.on for name in of_class):
        return f"not retried: on has only {', '.join(retry.on)}"
    return None
