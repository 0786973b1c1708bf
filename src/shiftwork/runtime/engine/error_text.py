"""Exceptions as text that a store can keep: short, without secrets, valid UTF-8."""

import traceback
from collections.abc import Callable
from typing import Final

LONGEST_ERROR: Final = 1_000
LONGEST_TRACEBACK: Final = 20_000


def _unchanged(text: str) -> str:
    return text


def describe(error: BaseException, discreet: Callable[[str], str] = _unchanged) -> str:
    """An exception in one line."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - a user's code
        words = "(it cannot be shown)"
    # Before it is cut short: half a secret would not be recognised.
    text = discreet(f"{type(error).__qualname__}: {words}" if words else type(error).__qualname__)
    return storable(text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…")


def trace_of(error: BaseException, discreet: Callable[[str], str] = _unchanged) -> str:
    """The traceback, from the user's function on."""
    behind_us = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, behind_us))
    return shortened(discreet(text))


def shortened(text: str) -> str:
    """The end of a traceback, which names the error; a long beginning is left out."""
    return storable(text if len(text) <= LONGEST_TRACEBACK else "…\n" + text[-LONGEST_TRACEBACK:])


def storable(text: str) -> str:
    """Text that UTF-8 can encode. File names may hold bytes that it cannot, and turn up in errors."""
    return text.encode("utf-8", "backslashreplace").decode()
