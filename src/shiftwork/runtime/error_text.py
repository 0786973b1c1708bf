"""Exceptions as text that a store can keep: short, without secrets, valid UTF-8.

Nothing here raises, whatever the exception's own code does: a run whose end cannot be described has ended all the same.
"""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from shiftwork.core.values.job_limits import LONGEST_ERROR, LONGEST_TRACEBACK

LONGEST_SEARCHED: Final = 10_000_000
"""How much of a text is searched for secrets. It is far more than is kept, so half a secret is never kept."""
_OURS: Final = str(Path(__file__).parent) + os.sep
INDESCRIBABLE: Final = "an exception that cannot be described"
_NO_WORDS: Final = "(its message cannot be shown)"
_NO_TRACEBACK: Final = "(the traceback cannot be shown)"


def _unchanged(text: str) -> str:
    return text


_INSTANTS: Final = {"last_run", "last_success"}
_INSTANTS_HINT: Final = (
    "ctx.last_run and ctx.last_success are epoch seconds: write time.time() - ctx.last_run, or "
    "datetime.fromtimestamp(ctx.last_run)"
)


def describe(error: BaseException, discreet: Callable[[str], str] = _unchanged) -> str:
    """Return an exception in one line."""
    try:
        # Not `type(error).__qualname__`, which a metaclass may define.
        name = exact(type.__dict__["__qualname__"].__get__(type(error)))
        words = _words(error)
        words += _hint(error, words)
        return one_line(f"{name}: {words}" if words else name, discreet, f"{name} {_NO_WORDS}")
    except BaseException:  # noqa: BLE001 - a user's code
        return INDESCRIBABLE


def trace_of(error: BaseException, discreet: Callable[[str], str] = _unchanged) -> str:
    """Return the traceback, from the user's function on."""
    try:
        return shortened(discreet(_formatted(error)[-LONGEST_SEARCHED:]))
    except BaseException:  # noqa: BLE001 - a user's code
        return _NO_TRACEBACK


def one_line(text: str, discreet: Callable[[str], str] = _unchanged, instead: str = _NO_WORDS) -> str:
    """Return a text of the user's, cut to what is kept; another text instead if its secrets cannot be hidden."""
    # Before it is cut short: half a secret would not be recognised.
    try:
        text = discreet(exact(text)[:LONGEST_SEARCHED])
    except BaseException:  # noqa: BLE001 - a user's types take part in reading the payload
        text = instead
    return storable(text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…")


def shortened(text: str) -> str:
    """Return the end of a traceback, which names the error; a long beginning is left out."""
    return storable(text if len(text) <= LONGEST_TRACEBACK else "…\n" + text[-LONGEST_TRACEBACK:])


def storable(text: str) -> str:
    """Return text that UTF-8 can encode. File names may hold bytes that it cannot, and turn up in errors."""
    return text.encode("utf-8", "backslashreplace").decode()


def exact(text: str) -> str:
    """Return the text of a `str` whose class may have methods of its own."""
    return str.__str__(text)


def _words(error: BaseException) -> str:
    try:
        return exact(str(error))
    except BaseException:  # noqa: BLE001 - a user's code
        return _NO_WORDS


def _hint(error: BaseException, words: str) -> str:
    """Return what to write instead, where a function treats an instant of its context as a datetime."""
    trace = error.__traceback__
    if type(error) not in {TypeError, AttributeError} or trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    mixed = "'float'" in words and ("'datetime." in words or "has no attribute" in words)
    return f" ({_INSTANTS_HINT})" if mixed and not _INSTANTS.isdisjoint(trace.tb_frame.f_code.co_names) else ""


def _formatted(error: BaseException) -> str:
    raised = BaseException.__dict__["__traceback__"].__get__(error)
    behind_us = raised.tb_next if raised else None
    while behind_us is not None and behind_us.tb_frame.f_code.co_filename.startswith(_OURS):
        behind_us = behind_us.tb_next  # what an app puts around its jobs is called by frames of ours
    try:
        return "".join(traceback.format_exception(type(error), error, behind_us))
    except BaseException:  # noqa: BLE001 - notes, causes and groups are the user's code, too; the frames are not
        return "".join([*traceback.format_tb(behind_us), describe(error)])
