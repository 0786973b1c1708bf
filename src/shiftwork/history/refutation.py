"""What a rule finds: a promise that was broken, in one sentence, and the lines that show it."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import Evidence, RecordedHistory


class Refutation(Struct, frozen=True):
    """A broken promise."""

    rule: str
    sentence: str
    lines: tuple[Evidence, ...]
    """The fewest lines that show it, in the order of the story."""


Rule = Callable[[RecordedHistory], Iterator[Refutation]]
"""Yields what a history refutes; nothing if it is legal, or does not show enough. Its docstring says what it proves."""


def refutation(history: RecordedHistory, rule: str, sentence: str, *shown: Effect | int | None) -> Refutation:
    """Return a refutation, shown by these calls and lines."""
    lines = [one.line if isinstance(one, Effect) else one for one in shown if one is not None]
    return Refutation(rule, sentence, tuple(history.evidence(line) for line in dict.fromkeys(lines)))
