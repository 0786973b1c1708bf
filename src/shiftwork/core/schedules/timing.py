"""When something runs, as people can change it while everything runs: a cron expression in a zone, or an interval."""

from datetime import UTC, tzinfo
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import WorkerConfig

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
