"""Time zones by name. `zoneinfo` is imported for the first zone that is not UTC: most processes need no other."""

from datetime import UTC, tzinfo
from typing import Final

_OF_MACHINE: Final = ("localtime", "posixrules", "posix/", "right/")
"""How names begin that are files of one machine: its own zone, and copies of the database with other rules."""


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
