"""A schedule as a value that people can change while everything runs: a cron expression in a zone, or an interval.

`fire_times` decides when it fires next.

The rules about time zones are here, too: which names are allowed, and what to write instead of another.
"""

from datetime import UTC, tzinfo
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import WorkerConfig
from shiftwork.errors import nearest
from shiftwork.sentences import sentence, series


class Timing(Struct, frozen=True):
    """A cron expression in a time zone, or an interval."""

    cron: str | None = None
    interval_seconds: float | None = None
    timezone: str = "UTC"


class Rescheduled(Struct, frozen=True):
    """What a person changed about a worker's schedule at run time (doc kind "rescheduled")."""

    timing: Timing | None = None
    """The schedule that wins over the one in the code; None once it was reset."""
    at: float | None = None
    """When it was changed."""
    by: str | None = None
    """Who changed it."""


def rescheduled(config: WorkerConfig, change: Rescheduled | None) -> WorkerConfig:
    """Return the worker with the schedule that holds: the one that a person set, or the one in the code."""
    timing = None if change is None else change.timing
    if timing is None:
        return config
    if timing.cron is not None:
        return replace(config, cron=timing.cron, timezone=timing.timezone)
    interval = config.interval_seconds if timing.interval_seconds is None else timing.interval_seconds
    return replace(config, cron=None, interval_seconds=interval)


# ── time zones ───────────────────────────────────────────────────────────────────────────────────────────────────────

_OF_MACHINE: Final = ("localtime", "posixrules", "posix/", "right/")
"""How names begin that are files of one machine: its own zone, and copies of the database with other rules."""
_WRITE_A_NAME: Final = sentence("write an IANA name, for example Europe/Vienna or UTC")
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


def is_of_machine(name: str) -> bool:
    """Return whether a name does not stand for the same zone on every machine."""
    return name.lower().startswith(_OF_MACHINE)


def zone_named(name: str) -> tzinfo:
    """Return a time zone. Raises `KeyError`, `ValueError` or `OSError` if this machine does not know it."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - it takes a quarter of a megabyte

    return ZoneInfo(name)


def known_zones() -> set[str]:
    """Return the names of all time zones that this machine knows."""
    from zoneinfo import available_timezones  # noqa: PLC0415 - see above

    return {name for name in available_timezones() if not is_of_machine(name)}


def zone_problem(name: str) -> str | None:
    if is_of_machine(name):
        why = sentence("{what} depends on the machine, and nodes would differ", what=f"{name!r}")
        return series("; ", [why, _WRITE_A_NAME])
    try:
        zone_named(name)
    except (KeyError, ValueError, OSError):
        known = known_zones()
        if not known:
            return sentence(
                "{what} is unknown, because this machine has no time zone database; pip install tzdata",
                what=f"{name!r}",
            )
        return series("; ", [sentence("{what} is not a time zone", what=f"{name!r}"), _zone_hint(name, known)])
    return None


def _zone_hint(name: str, known: set[str]) -> str:
    example = _ABBREVIATIONS.get(name.upper())
    if example is not None:
        return sentence("write an IANA name, for example {zone}", zone=example)
    city = name.strip().replace(" ", "_").lower()
    places = sorted(zone for zone in known if zone.rpartition("/")[2].lower() == city)
    hint = sentence("did you mean {names}?", names=f"{places[0]!r}") if places else nearest(name, known)
    return hint if hint.startswith("did you mean") else _WRITE_A_NAME
