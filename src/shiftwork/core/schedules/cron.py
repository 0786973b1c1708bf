"""A cron expression in a time zone: the instants at which it fires, what is wrong with it, and what it says in words.

This is the only module that uses cronsim, as a calendar without time zones; what a zone's clock does to the calendar is
decided here.

**Daylight saving.** If the hour field names hours (`30 2 * * *`, `0 */2 * * *`), every matching time on the clock's
face fires once: a skipped one fires at the moment the clock jumps (several skipped ones are one fire), and of two equal
ones the first fires. If the hour field covers the whole day (`*/30 * * * *`, `15 * * * *`), the worker fires at every
real minute that matches: in both passes of a doubled hour, and not at all for a skipped one.

Vixie cron draws the line elsewhere: there any `*` at the start of the minute or hour field makes a worker of the second
kind, so `*/30 2 * * *` is lost in spring and runs four times in autumn.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Final

from shiftwork.core.schedules.cron_sentences import explained
from shiftwork.core.schedules.timing import zone_named
from shiftwork.core.words import in_full
from shiftwork.sentences import sentence

if TYPE_CHECKING:
    from cronsim import CronSim


# ── fire times ───────────────────────────────────────────────────────────────────────────────────────────────────────

LOOK_BACK_LIMIT: Final = 1000
"""How many missed fire times are looked at, newest first. Older ones are skipped without being listed."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the face of a clock, in whatever zone
_SECOND: Final = timedelta(seconds=1)
_NEAR: Final = 26 * 3600
"""A change of the clock that is farther away (Samoa once skipped a day) cannot reorder the times on its face."""
_HOURS: Final = 24


def upcoming_fires(expression: str, timezone: str, after: float, n: int) -> list[float]:
    """Return the next `n` fire times of a cron expression."""
    times = _upcoming(expression, timezone, floor(after / 60) * 60.0, n + 1)
    return [at for at in times if at > after][:n]  # in old zones, clocks were moved within a minute


@lru_cache(maxsize=1024)
def _upcoming(expression: str, timezone: str, minute: float, n: int) -> tuple[float, ...]:
    cron = CronTimes(expression, timezone)
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
    return CronTimes(expression, timezone).before(minute)


def next_fired(expression: str, timezone: str, at: float) -> float | None:
    """Return the first fire time of a cron expression after this instant; None if it never fires again."""
    return next(iter(upcoming_fires(expression, timezone, at, 1)), None)


class CronTimes:
    """The instants at which a cron expression fires in a zone."""

    def __init__(self, expression: str, timezone: str) -> None:
        self.expression = expression
        self.zone: Final = zone_named(timezone)
        self.all_day: bool = len(_calendar(expression, _NAIVE_EPOCH).hours) == _HOURS

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


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_FIELDS: Final = 5
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_NUMBERS: Final = {
    name: str(n) for names, first in ((_WEEKDAYS, 0), (_MONTHS, 1)) for n, name in enumerate(names, first)
}
_LAST_WEEKDAY: Final = re.compile(rf"\b([0-7]|{'|'.join(_WEEKDAYS)})#L\b", re.IGNORECASE)
_STEPS: Final = re.compile(r"(?<![^\s,])(\w+)-(\w+)/0*[1-9][0-9]*(?![^\s,])")


def five_fields(expression: str) -> str:
    """Return a cron expression as cronsim reads it: with "@daily" written out, "FRI#L" as "5L", and "9-9/5" as "9".

    cronsim knows no "FRI#L", and takes a step through a range of one value for one that runs to the end of the field.
    """
    written_out = _NICKNAMES.get(expression.strip().lower(), expression)
    return _STEPS.sub(_steps, _LAST_WEEKDAY.sub(lambda found: f"{_number(found[1])}L", written_out))


def _steps(found: re.Match[str]) -> str:
    first, last = _number(found[1]), _number(found[2])
    return first if first == last else found[0]


def _number(text: str) -> str:
    return _NUMBERS.get(text.upper(), text.lstrip("0") or "0")


_BAD_FIELDS: Final = {
    "bad minute": sentence("bad minute"),
    "bad hour": sentence("bad hour"),
    "bad day-of-month": sentence("bad day-of-month"),
    "bad month": sentence("bad month"),
    "bad day-of-week": sentence("bad day-of-week"),
}


def cron_problem(expression: str) -> str | None:
    return _form_problem(expression) or _character_problem(expression) or _value_problem(expression)


def _form_problem(expression: str) -> str | None:
    what, fields = f"{expression!r}", len(expression.split())
    if expression.strip().lower() == "@reboot":
        return sentence(
            "{what} is not a time: use @app.lifespan for what each process does when it starts, or @app.on_deploy for "
            "what a deployment does once",
            what=what,
        )
    if expression.strip().startswith("@"):
        known = ", ".join(_NICKNAMES)
        return sentence("{what} is not a nickname: write five fields, or one of {names}", what=what, names=known)
    if fields == _FIELDS + 1:
        return sentence(
            "{what} has six fields, not five fields: there is none for seconds; remove the first", what=what
        )
    if fields == _FIELDS + 2:
        return sentence(
            "{what} has seven fields, not five fields: there are none for seconds and years; remove the first and the "
            "last",
            what=what,
        )
    if fields != _FIELDS:
        return sentence(
            "{what} does not have five fields: minute, hour, day of month, month, day of week; for example "
            "'0 3 * * *', every day at 03:00",
            what=what,
        )
    return None


_STRANGE: Final = re.compile(r"[^0-9A-Za-z*,/#\- \t]")
_NEAREST: Final = re.compile(r"(?<!l)w(?!ed)", re.IGNORECASE)


def _character_problem(expression: str) -> str | None:
    what, strange = f"{expression!r}", _STRANGE.search(expression.strip())
    if strange is None:
        if _NEAREST.search(expression.split()[2]) is None:
            return None
        return sentence(
            "{what} has a W, which is known only in LW, the last weekday of a month; for the weekday nearest to a day, "
            "name the days around it, and check the date in the function",
            what=what,
        )
    if strange[0] == "?":
        return sentence("{what} has a question mark: write * instead", what=what)
    if strange[0] == "+":
        return sentence(
            "{what} has a plus sign, which is not supported: name the days of the month, and check the weekday in the "
            "function",
            what=what,
        )
    return sentence("{what} contains {character}, which no field can have", what=what, character=f"{strange[0]!r}")


def _value_problem(expression: str) -> str | None:
    what, problem = f"{expression!r}", _unreadable(expression)
    if problem == _NEVER:
        return sentence("{what} never fires", what=what)
    if problem == "bad day-of-month" and _unreadable(_in_any_month(expression)) is None:
        return sentence(
            "{what} never fires: its months have no such day; write L for the last day of a month", what=what
        )
    if problem is None:
        return None
    return sentence("{what} cannot be read: {why}", what=what, why=_BAD_FIELDS.get(problem, problem))


_NEVER: Final = "never"


def _unreadable(expression: str) -> str | None:
    """Return what cronsim says is wrong with an expression."""
    from cronsim import CronSimError  # noqa: PLC0415 - see `_calendar`

    try:
        next(_calendar(expression, _NAIVE_EPOCH))
    except (CronSimError, ValueError) as error:
        return str(error).lower()
    except StopIteration:
        return _NEVER
    return None


def _in_any_month(expression: str) -> str:
    minute, hour, day, _, weekday = expression.split()
    return f"{minute} {hour} {day} * {weekday}"


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_MINUTES: Final = 60
_STEP: Final = re.compile(r"\*/([1-9]\d*)")


def cron_words(expression: str, timezone: str) -> str:
    return sentence("{words}, {zone}", words=_cron_words(expression), zone=timezone)


def _cron_words(expression: str) -> str:
    minute, hour, *days = [*expression.split(), "", ""]
    if days == ["*", "*", "*", "", ""]:
        minutes, hours = (_STEP.fullmatch(part) for part in (minute, hour))
        if minutes and hour == "*" and _MINUTES % int(minutes[1]) == 0:
            return sentence("every {time}", time=in_full(60 * int(minutes[1]), each=True))
        if minute.isdecimal() and hours and _HOURS % int(hours[1]) == 0:
            time = in_full(3600 * int(hours[1]), each=True)
            if int(minute) == 0:
                return sentence("every {time}", time=time)
            return sentence("every {time}, at minute {n}", time=time, n=int(minute))
    words = _calendar(expression, _NAIVE_EPOCH).explain()
    return explained(f"{words[:1].lower()}{words[1:]}")
