"""The steps that are not the user's results: what a durable function notes when it sleeps, waits or fails.

    :sleep        until when it sleeps
    :wait NAME    until when it waits for the signal
    :got NAME     whether the signal came in time, and its value
    :failed NAME  what a step has raised, if the function has caught it and gone on

A user's step cannot have a name that begins with a colon.
"""

from typing import Final

from shiftwork.core.printable import wrong_id

SLEEP: Final = ":sleep"
MARK: Final = ":"
LONGEST_NAME: Final = 200
"""How many characters the name of a step or a signal may have."""


def wrong_name(what: str, name: object) -> str | None:
    """Return why a step or a signal cannot have this name; None if it can."""
    if isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME:
        wrong = wrong_id(name)
        return None if wrong is None else f"the name of {what} {wrong}"
    return f"the name of {what} is a text of 1 to {LONGEST_NAME} characters, not {name!r}"


def waiting(signal: str) -> str:
    """The name of the step in which a function begins to wait for a signal."""
    return f":wait {signal}"


def got(signal: str) -> str:
    """The name of the step in which a wait for a signal has ended."""
    return f":got {signal}"


def failed(step: str) -> str:
    """The name of a step that has failed."""
    return f":failed {step}"


def in_words(name: str) -> str:
    """The name of a step as people read it."""
    if name.startswith(":failed "):
        return name.removeprefix(":failed ")
    if name.startswith(":wait "):
        return f"wait for {name.removeprefix(':wait ')}"
    return name.removeprefix(MARK)
