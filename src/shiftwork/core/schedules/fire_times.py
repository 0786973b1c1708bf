"""When does a worker run next, and which of the fire times that have passed become jobs?

This module owns intervals, cron, catch-up and overlap. It reads no clock: `now` is an argument. It is the only module
that uses cronsim, as a calendar without time zones; what a zone's clock does to the calendar is decided here.

**Cron and daylight saving.** If the hour field names hours (`30 2 * * *`, `0 */2 * * *`), every matching time on the
clock's face fires once: a skipped one fires at the moment the clock jumps (several skipped ones are one fire), and of
two equal ones the first fires. If the hour field covers the whole day (`*/30 * * * *`, `15 * * * *`), the worker fires
at every real minute that matches: in both passes of a doubled hour, and not at all for a skipped one.

Vixie cron draws the line elsewhere: there any `*` at the start of the minute or hour field makes a worker of the second
kind, so `*/30 2 * * *` is lost in spring and runs four times in autumn.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.schedules.timing import is_of_machine, known_zones, zone_named
from shiftwork.errors import nearest

if TYPE_CHECKING:
    from cronsim import CronSim

CATCH_UP_LIMIT: Final = 100
"""How many missed fire times `catch_up="all"` still runs."""
LOOK_BACK_LIMIT: Final = 1000
"""How many missed fire times are looked at, newest first. Older ones are skipped without being listed."""
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
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the face of a clock, in whatever zone
_SECOND: Final = timedelta(seconds=1)
_NEAR: Final = 26 * 3600
"""A change of the clock that is farther away (Samoa once skipped a day) cannot reorder the times on its face."""
_FIELDS: Final = 5
_HOURS: Final = 24
_MINUTES: Final = 60
_STEP: Final = re.compile(r"\*/([1-9]\d*)")
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WRITE_A_NAME: Final = "write an IANA name, for example Europe/Vienna or UTC"
_FIRE_ID: Final = re.compile(r".+@(first|\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)(~\d+)?", re.ASCII | re.DOTALL)
_ABBREVIATIONS: Final = {
    **dict.fromkeys(("PST", "PDT", "PT"), "America/Los_Angeles"),
    **dict.fromkeys(("MDT", "MT"), "America/Denver"),
    **dict.fromkeys(("CST", "CDT", "CT"), "America/Chicago"),
    **dict.fromkeys(("EDT", "ET"), "America/New_York"),
    **dict.fromkeys(("CEST", "MEZ", "MESZ"), "Europe/Vienna"),
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    "BST": "Europe/London",
    "EEST": "Europe/Helsinki",
    "MSK": "Europe/Moscow",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
    "BRT": "America/Sao_Paulo",
    "NZST": "Pacific/Auckland",
    "Z": "UTC",
}
"""Abbreviations that are not in the time zone database, each with a zone that uses it."""


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
    cron = _Cron(config.cron, config.timezone)
    if cursor is None:
        return Fire(cursor=now, next_at=cron.after(now))
    if cursor > now + CRON_AHEAD_SECONDS:
        return Fire(cursor=now, pulled_back=cursor - now, next_at=cron.after(now))
    due = cron.between(cursor, now)
    times, why = caught_up(config.catch_up, due, now - grace_seconds)
    if times and live and config.overlap == "skip":
        times, why = [], "the previous run has not ended"
    return Fire(
        times=times,
        ids=[fire_id(config.name, at) for at in times],
        skipped=due[: len(due) - len(times)],
        why=why if len(times) < len(due) else None,
        cursor=due[-1] if due else cursor,
        next_at=cron.after(max(now, cursor)),
    )


def fire_id(worker: str, at: float) -> str:
    """Return the id of the job for one fire time: `nightly-report@2026-11-15T03:00:00Z`."""
    moment = _EPOCH + timedelta(microseconds=round(at * 1_000_000))
    return f"{worker}@{moment.replace(tzinfo=None).isoformat()}Z"


def is_fire_id(id: str) -> bool:
    """Return whether an id has the form of one for a fire time: a job of that id is taken for the run of a schedule."""
    return _FIRE_ID.fullmatch(id) is not None


def upcoming(config: WorkerConfig, after: float, n: int) -> list[float]:
    """Return the next `n` fire times of a worker with a cron expression; none for other workers."""
    return [] if config.cron is None else upcoming_fires(config.cron, config.timezone, after, n)


def upcoming_fires(expression: str, timezone: str, after: float, n: int) -> list[float]:
    """Return the next `n` fire times of a cron expression."""
    times = _upcoming(expression, timezone, floor(after / 60) * 60.0, n + 1)
    return [at for at in times if at > after][:n]  # in old zones, clocks were moved within a minute


@lru_cache(maxsize=1024)
def _upcoming(expression: str, timezone: str, minute: float, n: int) -> tuple[float, ...]:
    cron = _Cron(expression, timezone)
    times: list[float] = []
    at = cron.after(minute)
    while at is not None and len(times) < n:
        times.append(at)
        at = cron.after(at)
    return tuple(times)


def last_fired(expression: str, timezone: str, at: float) -> float | None:
    """Return the last fire time of a cron expression that is not after this instant; None if it has never fired."""
    return _last_fired(expression, timezone, floor(at / 60) * 60.0)


@lru_cache(maxsize=1024)
def _last_fired(expression: str, timezone: str, minute: float) -> float | None:
    return _Cron(expression, timezone).before(minute)


def next_fired(expression: str, timezone: str, at: float) -> float | None:
    """Return the first fire time of a cron expression after this instant; None if it never fires again."""
    return next(iter(upcoming_fires(expression, timezone, at, 1)), None)


def describe(config: WorkerConfig, *, alias_of: str | None = None) -> str:
    """Return the schedule in plain words. `alias_of`: the worker whose former name this is."""
    if alias_of is not None:
        return f"on demand, as an alias of {alias_of}"
    if config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return "on demand"
    if config.cron is not None:
        return cron_words(config.cron, config.timezone)
    if config.execution_mode is WorkerExecutionMode.SCHEDULED:
        return f"every {duration(config.interval_seconds, each=True)}, counted from the end of the last run"
    if config.interval_seconds <= SHORTEST_PAUSE:
        return "in a loop, without a pause"
    return f"in a loop, with a pause of {duration(config.interval_seconds)}"


def cron_words(expression: str, timezone: str) -> str:
    """Return a cron expression and its zone in plain words."""
    return f"{_cron_words(expression)}, {timezone}"


def _cron_words(expression: str) -> str:
    minute, hour, *days = [*expression.split(), "", ""]
    if days == ["*", "*", "*", "", ""]:
        minutes, hours = (_STEP.fullmatch(part) for part in (minute, hour))
        if minutes and hour == "*" and _MINUTES % int(minutes[1]) == 0:
            return f"every {duration(60 * int(minutes[1]), each=True)}"
        if minute.isdecimal() and hours and _HOURS % int(hours[1]) == 0:
            at = "" if int(minute) == 0 else f", at minute {int(minute)}"
            return f"every {duration(3600 * int(hours[1]), each=True)}{at}"
    words = _calendar(expression, _NAIVE_EPOCH).explain()
    return f"{words[:1].lower()}{words[1:]}"


def duration(seconds: float, *, each: bool = False) -> str:
    """Return a duration in plain words; `each` leaves out a lone 1, as in "every hour"."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return _counted(seconds / size, unit, each=each)
    return _counted(seconds, "second", each=each)


def _counted(n: float, unit: str, *, each: bool) -> str:
    if n == 1:
        return unit if each else f"1 {unit}"
    return f"{n:,.6f}".rstrip("0").rstrip(".") + f" {unit}s"


def five_fields(expression: str) -> str:
    """Return a cron expression with a nickname such as "@daily" written out."""
    return _NICKNAMES.get(expression.strip().lower(), expression)


def cron_problem(expression: str) -> str | None:
    """Return what is wrong with a cron expression, or None."""
    fields = len(expression.split())
    if expression.startswith("@"):
        known = ", ".join(_NICKNAMES)
        return f"{expression!r} is not a nickname: write five fields, or one of {known}"
    if fields == _FIELDS + 1:
        return f"{expression!r} has six fields, not five fields: there is none for seconds; remove the first"
    if fields != _FIELDS:
        return (
            f"{expression!r} does not have five fields: minute, hour, day of month, month, day of week; "
            "for example '0 3 * * *', every day at 03:00"
        )
    from cronsim import CronSimError  # noqa: PLC0415 - see `_calendar`

    try:
        next(_calendar(expression, _NAIVE_EPOCH))
    except (CronSimError, ValueError) as error:
        return f"{expression!r} cannot be read: {str(error).lower()}"
    except StopIteration:
        return f"{expression!r} never fires"
    return None


def zone_problem(name: str) -> str | None:
    """Return what is wrong with the name of a time zone, or None."""
    if is_of_machine(name):
        return f"{name!r} depends on the machine, and nodes would differ; {_WRITE_A_NAME}"
    try:
        zone_named(name)
    except (KeyError, ValueError, OSError):
        known = known_zones()
        if not known:
            return f"{name!r} is unknown, because this machine has no time zone database; pip install tzdata"
        return f"{name!r} is not a time zone; {_zone_hint(name, known)}"
    return None


def _zone_hint(name: str, known: set[str]) -> str:
    example = _ABBREVIATIONS.get(name.upper())
    if example is not None:
        return f"write an IANA name, for example {example}"
    city = name.strip().replace(" ", "_").lower()
    places = sorted(zone for zone in known if zone.rpartition("/")[2].lower() == city)
    hint = f"did you mean {places[0]!r}?" if places else nearest(name, known)
    return hint if hint.startswith("did you mean") else _WRITE_A_NAME


def success_expected(config: WorkerConfig, now: float) -> float | None:
    """Return the time after which a run must have succeeded by now; None for a worker without a schedule.

    That is the last fire time from which on a run has had its whole timeout.
    """
    if config.execution_mode is not WorkerExecutionMode.SCHEDULED:
        return None
    ended = now - (config.timeout_seconds or 0.0)
    return ended - pause(config) if config.cron is None else last_fired(config.cron, config.timezone, ended)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def pause(config: WorkerConfig) -> float:
    """Return how long after the end of a run the next one is due, for a worker with an interval."""
    return max(config.interval_seconds, SHORTEST_PAUSE)


def past(ended_at: float | None, now: float) -> float:
    """Return what to count an interval from if the job of its fire time exists and has ended: the end of that job."""
    return now if ended_at is None else min(ended_at, now)


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


# ── cron ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def caught_up(catch_up: str, due: list[float], oldest: float) -> tuple[list[float], str]:
    """Return which of the due times fire, and why the earlier ones do not."""
    if catch_up == "latest":
        return due[-1:], "missed, and only the latest one is caught up"
    if catch_up == "all":
        return due[-CATCH_UP_LIMIT:], f"missed, and only the newest {CATCH_UP_LIMIT} are caught up"
    return [at for at in due if at >= oldest], "missed, and missed runs are not caught up"


class _Cron:
    """The instants at which a cron expression fires in a zone."""

    def __init__(self, expression: str, timezone: str) -> None:
        self.expression = expression
        self.zone = zone_named(timezone)
        self.all_day = len(_calendar(expression, _NAIVE_EPOCH).hours) == _HOURS

    def after(self, at: float) -> float | None:
        """Return the first fire time after this instant."""
        found: float | None = None
        start = self._face(at) - self._set_back_near(at)
        for face in _calendar(self.expression, start):
            moments = self._moments(face)
            # A face's first moment only grows from face to face, so what comes later cannot beat what is found.
            if found is not None and moments and moments[0] >= found:
                break
            later = [moment for moment in moments if moment > at]
            found = min([*later, found] if found is not None else later, default=None)
        return found

    def before(self, at: float) -> float | None:
        """Return the last fire time that is not after this instant."""
        found: float | None = None
        start = self._face(at) + self._set_back_near(at) + _SECOND
        for face in _calendar(self.expression, start, reverse=True):
            moments = self._moments(face)
            if found is not None and moments and moments[-1] <= found:
                break
            earlier = [moment for moment in moments if moment <= at]
            found = max([*earlier, found] if found is not None else earlier, default=None)
        return found

    def between(self, after: float, until: float) -> list[float]:
        """Return the fire times after `after` and not after `until`: the newest of them, oldest first."""
        times: list[float] = []
        at = self.before(until) if until > after else None
        while at is not None and at > after and len(times) < LOOK_BACK_LIMIT:
            times.append(at)
            at = self.before(at - 1)
        return times[::-1]

    def _moments(self, face: datetime) -> list[float]:
        """Return when the expression fires for this time on the clock's face: not at all, once, or twice."""
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
        """Return by how much the clock is set back around this instant, showing times again: zero on most days."""
        return max(timedelta(), self._offset(at - _NEAR) - self._offset(at + _NEAR))

    def _jump(self, low: float, high: float) -> float:
        """Return the instant, after `low` and not after `high`, at which the clock is moved."""
        moved = self._offset(high)
        while high - low > 1:
            middle = floor((low + high) / 2)
            low, high = (low, middle) if self._offset(middle) == moved else (middle, high)
        return high


def _calendar(expression: str, start: datetime, *, reverse: bool = False) -> "CronSim":
    from cronsim import CronSim  # noqa: PLC0415 - a fifth of a megabyte, and many apps have no cron expression

    return CronSim(expression, start, reverse=reverse)
