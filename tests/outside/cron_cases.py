"""What the Open Cron Pattern Specification asks for, rule by rule, as cases of our own, and where we differ on purpose.

The specification has no data file of vectors. Each case names the section that it is made from, in the version that
introduced the rule: 1.0 is final, 1.1 to 1.4 are drafts. All times are in UTC unless the case names a zone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from shiftwork.core.options.value_checks import cron
from shiftwork.core.schedules.cron import upcoming_fires
from shiftwork.errors import ConfigurationError

EDITION: Final = "1.0 (revision 2) and the drafts of 1.1 to 1.4 of 2025-07-03"


class CronCase(NamedTuple):
    """What one pattern must do."""

    rule: str
    pattern: str
    times: str | None
    """The first times after `after`, without what they share with the one before; None if it must be rejected."""
    after: str = "2026-01-01 00:00"
    zone: str = "UTC"

    @property
    def name(self) -> str:
        """Return how a report names the case."""
        return f"{self.rule}: {self.pattern!r}"


def wrong(case: CronCase) -> str | None:
    """Return what is wrong with what we make of a pattern; None if it is what the specification asks for."""
    try:
        expression = cron(case.pattern)
    except ConfigurationError as error:
        return None if case.times is None else f"rejected: {error}"
    if case.times is None:
        return f"accepted as {expression!r}"
    wanted = case.times.split(", ") if case.times else []
    fires = upcoming_fires(expression, case.zone, _instant(case.after), len(wanted) or 1)
    got = [f"{datetime.fromtimestamp(fire, UTC):%Y-%m-%d %H:%M}" for fire in fires]
    return None if got == list(_whole(wanted)) else f"fires at {', '.join(got)}"


def _instant(text: str) -> float:
    return datetime.strptime(f"{text} +0000", "%Y-%m-%d %H:%M %z").timestamp()


def _whole(times: list[str]) -> Iterator[str]:
    """Write times out: `2026-01-01 00:05, 10` stands for two."""
    last = ""
    for time in times:
        last = last[: len(last) - len(time)] + time
        yield last


def _rejected(rule: str, *patterns: str) -> list[CronCase]:
    return [CronCase(rule, pattern, None) for pattern in patterns]


_STRUCTURE: Final = "1.0 §4.1 structure"
_VALUES: Final = "1.0 §4.2 values"
_NAMES: Final = "1.0 §4.2 names"
_CHARACTERS: Final = "1.0 §4.3 characters"
_SPECIAL: Final = "1.0 §5 special characters"
_COMBINED: Final = "1.0 §5.1 combined"
_DAYS: Final = "1.0 §6.1 two kinds of days"
_RANGES: Final = "1.0 §6.2 ranges"
_STEPS: Final = "1.0 §6.2 steps"
_IMPOSSIBLE: Final = "1.0 §6.2 impossible dates"
_NICKNAMES: Final = "1.1 §4.1 nicknames"
_REBOOT: Final = "1.1 §4.2 @reboot"
_SECONDS: Final = "1.2 §4.1 seconds"
_YEARS: Final = "1.2 §4.2 years"
_LAST: Final = "1.3 §4.1 L"
_NTH: Final = "1.3 §4.2 #"
_NEAREST: Final = "1.3 §4.3 W"
_LETTERS: Final = "1.3 §4 letters"
_AND: Final = "1.4 §4.1 +"
_ANY: Final = "1.4 §4.2 ?"
_SUMMER: Final = "1.4 §4.3 spring"
_WINTER: Final = "1.4 §4.3 autumn"

CASES: Final = [
    *_rejected(_STRUCTURE, "", "  ", "* * * *", "*", "* * * * * * * *"),
    CronCase(_STRUCTURE, "  30\t12  * *\t\t*  ", "2026-01-01 12:30, 2026-01-02 12:30"),
    CronCase(_VALUES, "0 0 1 1 0", "2026-01-04 00:00, 2026-01-11 00:00"),
    CronCase(_VALUES, "59 23 31 12 *", "2026-12-31 23:59, 2027-12-31 23:59"),
    CronCase(_VALUES, "0 0 * * 0", "2026-01-04 00:00, 2026-01-11 00:00"),
    CronCase(_VALUES, "0 0 * * 7", "2026-01-04 00:00, 2026-01-11 00:00"),
    CronCase(_VALUES, "0 0 * * 6", "2026-01-03 00:00, 2026-01-10 00:00"),
    CronCase(_VALUES, "0 0 * * 5-7", "2026-01-02 00:00, 2026-01-03 00:00, 2026-01-04 00:00, 2026-01-09 00:00"),
    CronCase(_VALUES, "0 0 * * 0-7", "2026-01-02 00:00, 2026-01-03 00:00, 2026-01-04 00:00"),
    *_rejected(_VALUES, "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *"),
    *_rejected(_VALUES, "* * * * 8", "-1 * * * *", "0-60 * * * *", "* 20-24 * * *", "* * * * 5-8", "100 * * * *"),
    CronCase(_NAMES, "0 0 1 JAN,MAR,may,Jul,aUG,ocT,DEC *", "2026-03-01 00:00, 2026-05-01 00:00, 2026-07-01 00:00"),
    CronCase(_NAMES, "0 0 1 feb,apr,jun,sep,nov *", "2026-02-01 00:00, 2026-04-01 00:00, 2026-06-01 00:00"),
    CronCase(_NAMES, "0 0 1 SEP-NOV *", "2026-09-01 00:00, 2026-10-01 00:00, 2026-11-01 00:00, 2027-09-01 00:00"),
    CronCase(_NAMES, "0 0 * * SUN,tue,Thu,sAt", "2026-01-03 00:00, 2026-01-04 00:00, 2026-01-06 00:00, 08 00:00"),
    CronCase(_NAMES, "0 0 * * MON-WED,fri", "2026-01-02 00:00, 2026-01-05 00:00, 06 00:00, 07 00:00, 09 00:00"),
    *_rejected(_NAMES, "0 0 1 JANUARY *", "0 0 * * MONDAY", "0 0 * MON *", "0 0 * * JAN", "JAN * * * *", "* MON * * *"),
    *_rejected(_CHARACTERS, "0 12 * * MON!", "0 12 ~ * *", "0 12 $ * *", "0;30 * * * *", "0 12 * * <5", "H * * * *"),
    *_rejected(_CHARACTERS, "0\n12 * * *", "0\u200312 * * *", "٣ * * * *", "0 12 * * ſun", "1.5 * * * *"),  # noqa: RUF001
    CronCase(_SPECIAL, "* * * * *", "2026-01-01 00:01, 02, 03"),
    CronCase(_SPECIAL, "0,15,30,45 * * * *", "2026-01-01 00:15, 30, 45, 01:00"),
    CronCase(_SPECIAL, "45,15,15 * * * *", "2026-01-01 00:15, 45, 01:15"),
    CronCase(_SPECIAL, "0 9-11 * * *", "2026-01-01 09:00, 10:00, 11:00, 02 09:00"),
    CronCase(_SPECIAL, "7-7 * * * *", "2026-01-01 00:07, 01:07"),
    CronCase(_SPECIAL, "5-59/15 * * * *", "2026-01-01 00:05, 20, 35, 50, 01:05"),
    CronCase(_SPECIAL, "*/25 * * * *", "2026-01-01 00:25, 50, 01:00, 25"),
    CronCase(_SPECIAL, "0 */7 * * *", "2026-01-01 07:00, 14:00, 21:00, 02 00:00"),
    CronCase(_SPECIAL, "0 0 */10 * *", "2026-01-11 00:00, 21 00:00, 31 00:00, 02-01 00:00"),
    CronCase(_SPECIAL, "0 0 1 */5 *", "2026-06-01 00:00, 11-01 00:00, 2027-01-01 00:00"),
    CronCase(_SPECIAL, "0 0 * * */2", "2026-01-03 00:00, 04 00:00, 06 00:00, 08 00:00, 10 00:00"),
    CronCase(_SPECIAL, "0 0 * * 1-5/2", "2026-01-02 00:00, 05 00:00, 07 00:00, 09 00:00"),
    CronCase(_SPECIAL, "*/90 * * * *", "2026-01-01 01:00, 02:00"),
    CronCase(_COMBINED, "0-10/5,30,50-59/3 * * * *", "2026-01-01 00:05, 10, 30, 50, 53, 56, 59, 01:00"),
    CronCase(_COMBINED, "10-20/15 * * * *", "2026-01-01 00:10, 01:10"),
    CronCase(_COMBINED, "10-10/15,50-50/1 * * * *", "2026-01-01 00:10, 50, 01:10"),
    CronCase(_COMBINED, "0 0 * 3-Mar/2 fri-5/2", "2026-03-06 00:00, 13 00:00, 20 00:00, 27 00:00, 2027-03-05 00:00"),
    CronCase(_COMBINED, "0 8-10,20-22/2 * * *", "2026-01-01 08:00, 09:00, 10:00, 20:00, 22:00, 02 08:00"),
    CronCase(_COMBINED, "*/30,7 * * * *", "2026-01-01 00:07, 30, 01:00, 07"),
    *_rejected(_COMBINED, ",5 * * * *", "5, * * * *", "1,,2 * * * *", "5- * * * *", "1-5-9 * * * *", "1-* * * * *"),
    *_rejected(_COMBINED, "** * * * *", "*-5 * * * *", "*/2/3 * * * *", "1-9/2-3 * * * *", "5* * * * *"),
    CronCase(_DAYS, "0 12 1 * MON", "2026-01-01 12:00, 05 12:00, 12 12:00, 19 12:00, 26 12:00, 02-01 12:00"),
    CronCase(_DAYS, "0 0 13,14 * FRI", "2026-01-02 00:00, 09 00:00, 13 00:00, 14 00:00, 16 00:00"),
    CronCase(_DAYS, "0 0 13 * *", "2026-01-13 00:00, 02-13 00:00"),
    CronCase(_DAYS, "0 0 * * FRI", "2026-01-02 00:00, 09 00:00"),
    CronCase(_DAYS, "0 0 */10 * SUN", "2026-01-04 00:00, 11 00:00, 18 00:00, 21 00:00"),
    *_rejected(_RANGES, "30-10 * * * *", "* 22-4 * * *", "* * 31-1 * *", "* * * NOV-FEB *", "* * * * FRI-MON"),
    *_rejected(_STEPS, "*/0 * * * *", "1-5/0 * * * *", "/30 * * * *", "*/ * * * *", "*/-2 * * * *", "*/x * * * *"),
    *_rejected(_STEPS, "0/15 * * * *", "10/10 * * * *"),
    CronCase(_IMPOSSIBLE, "0 0 29 2 *", "2028-02-29 00:00, 2032-02-29 00:00"),
    CronCase(_IMPOSSIBLE, "0 0 29 2 *", "2104-02-29 00:00, 2108-02-29 00:00", after="2096-03-01 00:00"),
    CronCase(_IMPOSSIBLE, "0 0 31 * *", "2026-01-31 00:00, 03-31 00:00, 05-31 00:00, 07-31 00:00, 08-31 00:00"),
    CronCase(_IMPOSSIBLE, "0 0 31 2 MON", "2026-02-02 00:00, 09 00:00"),
    CronCase(_IMPOSSIBLE, "* * 31 2 *", ""),
    CronCase(_IMPOSSIBLE, "0 0 31 4,6,9,11 *", ""),
    CronCase(_NICKNAMES, "@yearly", "2027-01-01 00:00, 2028-01-01 00:00"),
    CronCase(_NICKNAMES, "@annually", "2027-01-01 00:00, 2028-01-01 00:00"),
    CronCase(_NICKNAMES, "@monthly", "2026-02-01 00:00, 03-01 00:00"),
    CronCase(_NICKNAMES, "@weekly", "2026-01-04 00:00, 11 00:00"),
    CronCase(_NICKNAMES, "@daily", "2026-01-02 00:00, 03 00:00"),
    CronCase(_NICKNAMES, "@midnight", "2026-01-02 00:00, 03 00:00"),
    CronCase(_NICKNAMES, "@hourly", "2026-01-01 01:00, 02:00"),
    *_rejected(_NICKNAMES, "@daily * * * * *", "* @daily * * *", "@fortnightly", "@", "daily", "@Daily"),
    CronCase(_REBOOT, "@reboot", ""),
    CronCase(_SECONDS, "* * * * * *", ""),
    CronCase(_SECONDS, "30 0 12 * * *", ""),
    CronCase(_YEARS, "0 15 10 * * * 2027", ""),
    CronCase(_YEARS, "0 0 0 1 1 * */2", ""),
    CronCase(_YEARS, "0 0 0 1 1 * 1971-2199/2", ""),
    CronCase(_LAST, "0 0 L * *", "2027-12-31 00:00, 2028-01-31 00:00, 2028-02-29 00:00", after="2027-12-01 00:00"),
    CronCase(_LAST, "0 0 15,L * *", "2026-01-15 00:00, 31 00:00, 02-15 00:00, 02-28 00:00"),
    CronCase(_LAST, "0 0 * * 5L", "2026-01-30 00:00, 02-27 00:00, 03-27 00:00, 04-24 00:00"),
    CronCase(_LAST, "0 0 * * 5#L", "2026-01-30 00:00, 02-27 00:00"),
    CronCase(_LAST, "0 0 * * FRI#L", "2026-01-30 00:00, 02-27 00:00"),
    CronCase(_LAST, "0 0 * * 0#L", "2026-01-25 00:00, 02-22 00:00"),
    CronCase(_LAST, "0 0 * * 7L", "2026-01-25 00:00, 02-22 00:00"),
    *_rejected(_LAST, "L * * * *", "* L * * *", "* * * L *", "0 0 5L * *", "0 0 * * 8L"),
    CronCase(_NTH, "0 0 * * 2#3", "2026-01-20 00:00, 02-17 00:00"),
    CronCase(_NTH, "0 0 * * MON#1", "2026-01-05 00:00, 02-02 00:00"),
    CronCase(_NTH, "0 0 * * 7#2", "2026-01-11 00:00, 02-08 00:00"),
    CronCase(_NTH, "0 0 * * 4#5", "2026-01-29 00:00, 04-30 00:00, 07-30 00:00"),
    CronCase(_NTH, "0 0 * * 1#1,3#2", "2026-01-05 00:00, 14 00:00, 02-02 00:00, 02-11 00:00"),
    CronCase(_NTH, "0 0 13 * 5#2", "2026-01-09 00:00, 13 00:00, 02-13 00:00, 03-13 00:00"),
    *_rejected(_NTH, "0 0 * * 1#0", "0 0 * * 1#6", "0 0 * * #2", "0 0 * * 1#", "0 0 1#1 * *", "0 0 * * 8#1"),
    CronCase(_NEAREST, "0 12 15W * *", "2026-01-15 12:00, 02-16 12:00, 03-16 12:00, 04-15 12:00, 05-15 12:00"),
    CronCase(_NEAREST, "0 12 1W * *", "2026-08-03 12:00, 09-01 12:00", after="2026-07-02 00:00"),
    *_rejected(_NEAREST, "0 0 1-15W * *", "0 0 1,15W * *", "0 0 W * *", "0 0 * * 5W", "0 0 32W * *"),
    *_rejected(_LETTERS, "0 0 l * *", "0 0 * * 5l"),
    CronCase(_AND, "0 12 1 * +MON", "2026-06-01 12:00, 2027-02-01 12:00"),
    *_rejected(_AND, "0 12 +1 * MON", "+0 12 1 * MON", "0 12 1 * MON+", "0 12 1 * MON,+TUE"),
    *_rejected(_ANY, "? * * * *", "* ? * * *", "* * * ? *", "0 0 ? * MON", "0 0 1 * ?"),
    CronCase(_SUMMER, "30 2 * * *", "2026-03-28 01:30, 30 00:30", after="2026-03-27 12:00", zone="Europe/Vienna"),
    CronCase(_WINTER, "30 2 * * *", "2026-10-25 00:30, 26 01:30", after="2026-10-24 12:00", zone="Europe/Vienna"),
    CronCase(_SUMMER, "0 3 * * *", "2026-03-28 02:00, 29 01:00", after="2026-03-27 12:00", zone="Europe/Vienna"),
]
"""Without times, a pattern is valid and never fires. `?` need not be supported, so its rejection is right."""

DIFFERS: Final = {
    (_DAYS, "0 0 */10 * SUN"): "a day that is `*/n` and a weekday must both match, as in Vixie cron",
    (_STEPS, "0/15 * * * *"): "a step after a number is accepted, and runs to the end: 0-59/15",
    (_STEPS, "10/10 * * * *"): "a step after a number is accepted, and runs to the end: 10-59/10",
    (_IMPOSSIBLE, "* * 31 2 *"): "an impossible date is rejected at once, not when it never comes",
    (_IMPOSSIBLE, "0 0 31 4,6,9,11 *"): "an impossible date is rejected at once, not when it never comes",
    (_NICKNAMES, "@Daily"): "nicknames are accepted in any case",
    (_REBOOT, "@reboot"): "rejected: it names no time, and a restart of one process of many is no event",
    (_SECONDS, "* * * * * *"): "five fields only; an interval can be shorter than a minute",
    (_SECONDS, "30 0 12 * * *"): "five fields only; an interval can be shorter than a minute",
    (_YEARS, "0 15 10 * * * 2027"): "five fields only",
    (_YEARS, "0 0 0 1 1 * */2"): "five fields only",
    (_YEARS, "0 0 0 1 1 * 1971-2199/2"): "five fields only",
    (_NEAREST, "0 12 15W * *"): "`W` is rejected, except in `LW`",
    (_NEAREST, "0 12 1W * *"): "`W` is rejected, except in `LW`",
    (_LETTERS, "0 0 l * *"): "letters are accepted in any case",
    (_LETTERS, "0 0 * * 5l"): "letters are accepted in any case",
    (_AND, "0 12 1 * +MON"): "`+` is rejected",
    (_SUMMER, "30 2 * * *"): "a time that the clock skips in spring fires when the clock jumps",
}
"""What is not as the specification has it, by decision: docs/schedules.md."""
