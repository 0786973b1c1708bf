"""When does a worker run next, and which of the times that have passed shall become jobs?

Owns intervals, cron, catch-up and overlap. It never looks at a clock: `now` is an argument. The only place that knows
cronsim, which is used as a calendar without time zones; what a zone's clock does to it is decided here.

**Cron and daylight saving.** Where the hour field names hours (`30 2 * * *`, `0 */2 * * *`), every time on the clock's
face fires once: one that is skipped fires at the moment the clock jumps (several skipped ones are one fire), and of one
that happens twice the first counts. Where the hour field covers the whole day (`*/30 * * * *`, `15 * * * *`), the
worker wants to run all the time and does: at every real minute that matches, so also in both passes of a doubled hour,
and nothing is made up for a skipped one.

Vixie cron draws the line elsewhere: there any `*` at the start of the minute or hour field makes a worker of the second
kind, so `*/30 2 * * *` is lost in spring and runs four times in autumn.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from math import floor
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from msgspec import Struct, field

from shiftwork.core.model import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.errors import nearest

CATCH_UP_LIMIT: Final = 100
"""How many missed fire times `catch_up="all"` makes up for."""
LOOK_BACK_LIMIT: Final = 1000
"""How many missed fire times are looked at, newest first. What lies beyond is passed over without being listed."""
SHORTEST_PAUSE: Final = 0.001
"""Between the end of a run and the next due time, so that no two runs have the same due time, hence the same id."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the face of a clock, in whatever zone
_SECOND: Final = timedelta(seconds=1)
_NEAR: Final = 26 * 3600
"""A change of the clock farther away than this (Samoa once skipped a day) cannot reorder the times on its face."""
_FIELDS: Final = 5
_HOURS: Final = 24


class Cursor(Struct, frozen=True):
    """Up to when a cron schedule has been dealt with (doc kind "schedule"). Another expression begins anew."""

    at: float
    cron: str | None
    timezone: str

    def of(self, config: WorkerConfig) -> float | None:
        """The cursor, if it is this schedule's."""
        return self.at if (self.cron, self.timezone) == (config.cron, config.timezone) else None


class Fire(Struct, kw_only=True):
    """What a schedule wants at one moment."""

    times: list[float] = field(default_factory=list)
    """Fire times to make jobs for, oldest first."""
    ids: list[str] = field(default_factory=list)
    """The job id of each of `times`: whoever asks, however often, the same fire time has the same id."""
    skipped: list[float] = field(default_factory=list)
    """Fire times passed over, oldest first."""
    why: str | None = None
    """Why they were."""
    cursor: float | None = None
    """For cron: everything up to here has been dealt with; store it together with the jobs. None for intervals."""
    next_at: float | None = None
    """When to ask again; None is after the worker's next end (or never)."""


def fire(
    config: WorkerConfig,
    *,
    cursor: float | None,
    state: WorkerState,
    live: bool,
    now: float,
    grace_seconds: float = 30.0,
) -> Fire:
    """Which runs of this worker are due now.

    An interval counts from the end of the last run, so nothing is due while a job of the worker is live; one that has
    never ended is due at once. A cron expression fires after the cursor; a worker that has none yet is seen for the
    first time, and starts from now. A disabled worker fires nothing; once it is enabled, `catch_up` decides about what
    it has missed.
    """
    if config.execution_mode is WorkerExecutionMode.TRIGGERED or not state.enabled:
        return Fire(cursor=cursor)
    if config.cron is None:
        return _fire_interval(config, state, live=live, now=now)
    cron = _Cron(config.cron, config.timezone)
    if cursor is None:
        return Fire(cursor=now, next_at=cron.after(now))
    due = cron.between(cursor, now)
    times, why = _caught_up(config, due, now - grace_seconds)
    if times and live and config.overlap == "skip":
        times, why = [], "the run before is still going"
    return Fire(
        times=times,
        ids=[fire_id(config.name, at) for at in times],
        skipped=due[: len(due) - len(times)],
        why=why if len(times) < len(due) else None,
        cursor=due[-1] if due else cursor,
        next_at=cron.after(max(now, cursor)),
    )


def fire_id(worker: str, at: float) -> str:
    """The id of the job for one fire time: `nightly-report@2026-11-15T03:00:00Z`."""
    moment = _EPOCH + timedelta(microseconds=round(at * 1_000_000))
    return f"{worker}@{moment.replace(tzinfo=None).isoformat()}Z"


def upcoming(config: WorkerConfig, after: float, n: int) -> list[float]:
    """The next `n` fire times of a worker with a cron expression; empty for others."""
    times: list[float] = []
    if config.cron is None:
        return times
    cron = _Cron(config.cron, config.timezone)
    at = cron.after(after)
    while at is not None and len(times) < n:
        times.append(at)
        at = cron.after(at)
    return times


def describe(config: WorkerConfig) -> str:
    """The schedule in plain words."""
    if config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return "on demand"
    if config.cron is not None:
        words = CronSim(config.cron, _NAIVE_EPOCH).explain()
        return f"{words[:1].lower()}{words[1:]}, {config.timezone}"
    if config.execution_mode is WorkerExecutionMode.SCHEDULED:
        return f"every {duration(config.interval_seconds, each=True)}, counted from the end of the last run"
    if config.interval_seconds <= SHORTEST_PAUSE:
        return "in a loop, without a pause"
    return f"in a loop, with a pause of {duration(config.interval_seconds)}"


def duration(seconds: float, *, each: bool = False) -> str:
    """A length of time in plain words; `each` leaves out a lone 1, as in "every hour"."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return _counted(seconds / size, unit, each=each)
    return _counted(seconds, "second", each=each)


def _counted(n: float, unit: str, *, each: bool) -> str:
    if n == 1:
        return unit if each else f"1 {unit}"
    return f"{n:,.6f}".rstrip("0").rstrip(".") + f" {unit}s"


def cron_problem(expression: str) -> str | None:
    """What is wrong with a cron expression, or None."""
    if len(expression.split()) != _FIELDS:
        return f"{expression!r} is not five fields: minute, hour, day of month, month, day of week"
    try:
        next(CronSim(expression, _NAIVE_EPOCH))
    except CronSimError as error:
        return f"{expression!r} cannot be read: {str(error).lower()}"
    except StopIteration:
        return f"{expression!r} never fires"
    return None


def zone_problem(name: str) -> str | None:
    """What is wrong with the name of a time zone, or None."""
    try:
        _zone(name)
    except (KeyError, ValueError, OSError):
        known = available_timezones()
        if not known:
            return f"{name!r} is unknown here, because this machine has no time zone database; pip install tzdata"
        return f"{name!r} is not a time zone; {nearest(name, known)}"
    return None


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fire_interval(config: WorkerConfig, state: WorkerState, *, live: bool, now: float) -> Fire:
    if live:
        return Fire()
    if state.last_ended is None:
        # Two leaders may see it for the first time at different moments; it is one job all the same.
        return Fire(times=[now], ids=[f"{config.name}@first"])
    due = state.last_ended + max(config.interval_seconds, SHORTEST_PAUSE)
    if now < due:
        return Fire(next_at=due)
    return Fire(times=[due], ids=[fire_id(config.name, due)])


# ── cron ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caught_up(config: WorkerConfig, due: list[float], oldest: float) -> tuple[list[float], str]:
    """Which of the due times still fire, and why the ones before them do not."""
    if config.catch_up == "latest":
        return due[-1:], "missed; only the latest is made up for"
    if config.catch_up == "all":
        return due[-CATCH_UP_LIMIT:], f"missed; only the newest {CATCH_UP_LIMIT} are made up for"
    return [at for at in due if at >= oldest], "missed, and missed times are not made up for"


class _Cron:
    """The instants at which a cron expression fires in a zone."""

    def __init__(self, expression: str, timezone: str) -> None:
        self.expression = expression
        self.zone = _zone(timezone)
        self.all_day = len(CronSim(expression, _NAIVE_EPOCH).hours) == _HOURS

    def after(self, at: float) -> float | None:
        """The first fire time behind this instant."""
        found: float | None = None
        start = self._face(at) - self._set_back_near(at)
        for face in CronSim(self.expression, start):
            moments = self._moments(face)
            # A face's first moment only grows from face to face, so what comes later cannot beat what is found.
            if found is not None and moments and moments[0] >= found:
                break
            later = [moment for moment in moments if moment > at]
            found = min([*later, found] if found is not None else later, default=None)
        return found

    def before(self, at: float) -> float | None:
        """The last fire time that is not behind this instant."""
        found: float | None = None
        start = self._face(at) + self._set_back_near(at) + _SECOND
        for face in CronSim(self.expression, start, reverse=True):
            moments = self._moments(face)
            if found is not None and moments and moments[-1] <= found:
                break
            earlier = [moment for moment in moments if moment <= at]
            found = max([*earlier, found] if found is not None else earlier, default=None)
        return found

    def between(self, after: float, until: float) -> list[float]:
        """The fire times behind `after` that are not behind `until`: the newest of them, oldest first."""
        times: list[float] = []
        at = self.before(until) if until > after else None
        while at is not None and at > after and len(times) < LOOK_BACK_LIMIT:
            times.append(at)
            at = self.before(at - 1)
        return times[::-1]

    def _moments(self, face: datetime) -> list[float]:
        """When the clock shows this and the expression fires: not at all, once, or twice."""
        first, second = (self._moment(face, fold) for fold in (0, 1))
        if first < second:
            return [first, second] if self.all_day else [first]
        if first > second:
            return [] if self.all_day else [self._jump(second, first)]
        return [first]

    def _moment(self, face: datetime, fold: int) -> float:
        return (face.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) - _EPOCH).total_seconds()

    def _face(self, at: float) -> datetime:
        return (_EPOCH + timedelta(seconds=floor(at))).astimezone(self.zone).replace(tzinfo=None)

    def _offset(self, at: float) -> timedelta:
        return self._face(at) - (_NAIVE_EPOCH + timedelta(seconds=floor(at)))

    def _set_back_near(self, at: float) -> timedelta:
        """By how much the clock is set back around this instant, so that it shows times again: zero on most days."""
        return max(timedelta(), self._offset(at - _NEAR) - self._offset(at + _NEAR))

    def _jump(self, low: float, high: float) -> float:
        """The instant, behind `low` and up to `high`, at which the clock is moved."""
        moved = self._offset(high)
        while high - low > 1:
            middle = floor((low + high) / 2)
            low, high = (low, middle) if self._offset(middle) == moved else (middle, high)
        return high


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)
