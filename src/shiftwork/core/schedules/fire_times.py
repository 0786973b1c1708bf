"""When does a worker run next, and which of the fire times that have passed become jobs?

This module owns intervals, catch-up and overlap; `core.schedules.cron` has the fire times of cron expressions. It reads
no clock: `now` is an argument.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct, field

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.schedules.cron import CronTimes, cron_words, last_fired, upcoming_fires
from shiftwork.core.words import in_full
from shiftwork.sentences import sentence

CATCH_UP_LIMIT: Final = 100
"""How many missed fire times `catch_up="all"` still runs."""
GRACE_SECONDS: Final = 30.0
"""How late a fire time may become a job with `catch_up="none"`: a leader is never exactly on time."""
SHORTEST_PAUSE: Final = 0.001
"""The pause between the end of a run and the next due time at least: the same due time would be the same job id."""
INTERVAL_AHEAD_SECONDS: Final = 1.0
"""How far ahead of the clock the end of the last run may lie before the interval is counted from now instead. Clocks of
nodes differ by less, unless an answer of the store was late."""
CRON_AHEAD_SECONDS: Final = 60.0
"""How far ahead of the clock a cron cursor may lie before it is pulled back. Its fire times are minutes apart."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRE_ID: Final = re.compile(r".+@(first|\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)(~\d+)?", re.ASCII | re.DOTALL)


class Cursor(Struct, frozen=True):
    """How far a schedule has fired (doc kind "schedule"). A changed cron expression starts from now.

    A cron schedule always has one. An interval is counted from the end of the last run, `WorkerState.last_ended`, and
    needs a cursor only after the clock was set back: then runs may end at or before `last_ended`, which never moves
    back, and the same end would give the same fire time, and so the same job, for ever.
    """

    at: float
    """The last fire time of a cron expression; or when the last run ended, for an interval."""
    cron: str | None
    timezone: str
    over: float | None = None
    """The `last_ended` that `at` stands in for. Once that moves on, the interval is counted from it again."""
    moves: int = 0
    """How often the cursor of an interval was moved. Part of the job's id, so that no id comes twice."""

    def of(self, config: WorkerConfig, state: WorkerState) -> float | None:
        """Return the instant, if the cursor belongs to this schedule and still holds."""
        if (self.cron, self.timezone) != (config.cron, config.timezone):
            return None
        outdated = config.cron is None and (state.last_ended or 0.0) > (self.over or 0.0)
        return None if outdated else self.at


class Fire(Struct, kw_only=True):
    """Which runs of a schedule are due at one instant."""

    times: list[float] = field(default_factory=list)
    """The fire times that become jobs, oldest first."""
    ids: list[str] = field(default_factory=list)
    """The job id of each of `times`. The same fire time always has the same id."""
    skipped: list[float] = field(default_factory=list)
    """The fire times that are skipped, oldest first."""
    why: str | None = None
    """Why those are skipped."""
    cursor: float | None = None
    """How far the schedule has fired with this; store it after the jobs. None for an interval that needs no cursor."""
    pulled_back: float = 0.0
    """By how many seconds `cursor` was pulled back, because the clock was set back; 0 if it was not."""
    next_at: float | None = None
    """When to ask again; None means after the worker's next run has ended, or never."""


def fire(
    config: WorkerConfig,
    *,
    cursor: float | None,
    state: WorkerState,
    live: bool,
    now: float,
    moves: int = 0,
    grace_seconds: float = GRACE_SECONDS,
) -> Fire:
    """Return which runs of this worker are due now. `cursor` is `Cursor.of`, `moves` is `Cursor.moves`.

    An interval counts from the end of the last run, so nothing is due while a job of the worker is live; a worker of
    which no run has ended is due at once. A cron expression fires after the cursor; a worker without a cursor is new,
    and starts from now. A disabled worker fires nothing; when it is enabled again, `catch_up` decides about what it has
    missed. What lies ahead of the clock because that was set back is pulled back to now.
    """
    if config.execution_mode is WorkerExecutionMode.TRIGGERED or not state.enabled:
        return Fire(cursor=cursor)
    if config.cron is None:
        return Fire() if live else _fire_interval(config, state, cursor=cursor, moves=moves, now=now)
    cron = CronTimes(config.cron, config.timezone)
    if cursor is None:
        return Fire(cursor=now, next_at=cron.after(now))
    if cursor > now + CRON_AHEAD_SECONDS:
        return Fire(cursor=now, pulled_back=cursor - now, next_at=cron.after(now))
    due = cron.between(cursor, now)
    times, why = caught_up(config.catch_up, due, now - grace_seconds)
    if times and live and config.overlap == "skip":
        times, why = [], sentence("the previous run has not ended")
    return Fire(
        times=times,
        ids=[fire_id(config.name, at) for at in times],
        skipped=due[: len(due) - len(times)],
        why=why if len(times) < len(due) else None,
        cursor=due[-1] if due else cursor,
        next_at=cron.after(max(now, cursor)),
    )


def caught_up(catch_up: str, due: list[float], oldest: float) -> tuple[list[float], str]:
    """Return which of the due times fire, and why the earlier ones do not."""
    if catch_up == "latest":
        return due[-1:], sentence("missed, and only the latest one is caught up")
    if catch_up == "all":
        return due[-CATCH_UP_LIMIT:], sentence("missed, and only the newest {n} are caught up", n=CATCH_UP_LIMIT)
    return [at for at in due if at >= oldest], sentence("missed, and missed runs are not caught up")


def _fire_interval(config: WorkerConfig, state: WorkerState, *, cursor: float | None, moves: int, now: float) -> Fire:
    ended = state.last_ended if cursor is None else cursor
    if ended is None:
        # Two leaders may see it for the first time at different instants; it must be one job all the same.
        return Fire(times=[now], ids=[f"{config.name}@first"])
    if ended > now + INTERVAL_AHEAD_SECONDS:
        return Fire(cursor=now, pulled_back=ended - now, next_at=now + pause(config))
    due = ended + pause(config)
    if now < due:
        return Fire(cursor=cursor, next_at=due)
    suffix = "" if cursor is None else f"~{moves}"
    return Fire(times=[due], ids=[fire_id(config.name, due) + suffix], cursor=cursor)


def pause(config: WorkerConfig) -> float:
    """Return how long after the end of a run the next one is due, for a worker with an interval."""
    return max(config.interval_seconds, SHORTEST_PAUSE)


def past(ended_at: float | None, now: float) -> float:
    """Return what to count an interval from if the job of its fire time exists and has ended: the end of that job."""
    return now if ended_at is None else min(ended_at, now)


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def fire_id(worker: str, at: float) -> str:
    """Return the id of the job for one fire time: `nightly-report@2026-11-15T03:00:00Z`."""
    moment = _EPOCH + timedelta(microseconds=round(at * 1_000_000))
    return f"{worker}@{moment.replace(tzinfo=None).isoformat()}Z"


def is_fire_id(id: str) -> bool:
    """Return whether an id has the form of one for a fire time: a job of that id is taken for the run of a schedule."""
    return _FIRE_ID.fullmatch(id) is not None


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def upcoming(config: WorkerConfig, after: float, n: int) -> list[float]:
    """Return the next `n` fire times of a worker with a cron expression; none for other workers."""
    return [] if config.cron is None else upcoming_fires(config.cron, config.timezone, after, n)


def describe(config: WorkerConfig, *, alias_of: str | None = None) -> str:
    """Return the schedule in plain words. `alias_of`: the worker whose former name this is."""
    if alias_of is not None:
        return sentence("on demand, as an alias of {worker}", worker=alias_of)
    if config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return sentence("on demand")
    if config.cron is not None:
        return cron_words(config.cron, config.timezone)
    if config.execution_mode is WorkerExecutionMode.SCHEDULED:
        return sentence(
            "every {time}, counted from the end of the last run", time=in_full(config.interval_seconds, each=True)
        )
    if config.interval_seconds <= SHORTEST_PAUSE:
        return sentence("in a loop, without a pause")
    return sentence("in a loop, with a pause of {time}", time=in_full(config.interval_seconds))


def success_expected(config: WorkerConfig, now: float) -> float | None:
    """Return the time after which a run must have succeeded by now; None for a worker without a schedule.

    That is the last fire time from which on a run has had its whole timeout.
    """
    if config.execution_mode is not WorkerExecutionMode.SCHEDULED:
        return None
    ended = now - (config.timeout_seconds or 0.0)
    return ended - pause(config) if config.cron is None else last_fired(config.cron, config.timezone, ended)
