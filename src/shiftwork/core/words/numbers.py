"""Measured numbers in words, as reasons show them: "4.2", "3 a minute", "50 ms"."""

from typing import Final


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun, in the plural unless there is exactly one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or noun + 's'}"


_EXACT_BELOW: Final = 10.0
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def number(n: float) -> str:
    """Return a number with two digits that matter: `0.04`, `4.2`, `12`, `1,950`."""
    if n >= _EXACT_BELOW:
        return f"{n:,.0f}"
    digits = next((digits for digits in (1, 2) if float(f"{n:.{digits}f}") > 0), 3)
    return f"{n:.{digits}f}".rstrip("0").rstrip(".")


def rate(per_second: float) -> str:
    """Return a rate in the unit that suits it: `12 a second`, `3 a minute`, `0.5 an hour`."""
    if per_second >= 1:
        return f"{number(per_second)} a second"
    if per_second * _MINUTE >= 1:
        return f"{number(per_second * _MINUTE)} a minute"
    return f"{number(per_second * _HOUR)} an hour"


def seconds(n: float) -> str:
    """Return a duration in the unit that suits it: `50 ms`, `4.2 s`, `3 min`, `2.5 h`. Minutes begin at two."""
    if n < 1:
        return f"{number(n * 1000)} ms"
    if n < 2 * _MINUTE:
        return f"{number(n)} s"
    return f"{number(n / _MINUTE)} min" if n < 2 * _HOUR else f"{number(n / _HOUR)} h"
