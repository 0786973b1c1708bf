"""Time zones by name. `zoneinfo` is imported for the first zone that is not UTC: most processes need no other."""

from datetime import UTC, tzinfo


def zone_named(name: str) -> tzinfo:
    """Return a time zone. Raises `KeyError`, `ValueError` or `OSError` if this machine does not know it."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - it takes a quarter of a megabyte

    return ZoneInfo(name)


def known_zones() -> set[str]:
    """Return the names of all time zones that this machine knows."""
    from zoneinfo import available_timezones  # noqa: PLC0415 - see above

    return available_timezones()
