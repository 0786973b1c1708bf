"""When each call took effect, as far as a history shows it.

A call that was answered took effect between the line that asked and the line that answered. One without an answer may
have taken effect at any time since it was asked, or never. Where the store's own order is known (`Answered.order`), it
is exact. Both are put on one scale, the *position*: the clock of the lines, or the store's order where there is one.

Of two effects it is certain that one came before the other only if the latest position of the first lies before the
earliest of the second. No rule relies on anything less.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from math import inf

from msgspec import Struct


class Effect(Struct, gc=False):
    """When one call took effect. A call that certainly failed has none."""

    asked: int
    """The number of the line that asked (`Recorded.evidence`)."""
    asked_at: float
    now: float | None
    answered: int | None
    """The number of the line that answered; None if the call may have happened or not."""
    answered_at: float
    """When it was answered; infinite if it was not."""
    order: int | None = None
    since: float = 0.0
    """The earliest position of the effect."""
    until: float = 0.0
    """The latest position of the effect; infinite if it may not have happened yet."""

    @property
    def line(self) -> int:
        """Return the line that shows the effect best."""
        return self.asked if self.answered is None else self.answered

    def before(self, other: "Effect") -> bool:
        """Return whether this effect certainly came before another one, if both happened."""
        return self.until < other.since


class Positions:
    """The positions of a history: those of effects, and those of lines that are no calls."""

    def __init__(self, effects: Iterable[Effect]) -> None:
        """Give every effect its position."""
        every = list(effects)
        ordered = [effect for effect in every if effect.order is not None]
        self._is_order = bool(ordered)
        by_answer = sorted((effect.answered_at, effect.order or 0) for effect in ordered)
        by_question = sorted((effect.asked_at, effect.order or 0) for effect in ordered)
        self._answered = [at for at, _ in by_answer]
        self._highest = list(accumulate((order for _, order in by_answer), max))
        self._asked = [at for at, _ in by_question]
        self._lowest = list(accumulate((order for _, order in reversed(by_question)), min))[::-1]
        for effect in every:
            self._place(effect)

    def _place(self, effect: Effect) -> None:
        if effect.order is not None:
            effect.since = effect.until = float(effect.order)
        else:
            effect.since, effect.until = self.earliest(effect.asked_at), self.latest(effect.answered_at)

    def earliest(self, at: float) -> float:
        """Return the earliest position of what happened at or after this time."""
        if not self._is_order:
            return at
        known = bisect_left(self._answered, at)
        return self._highest[known - 1] + 0.25 if known else -inf

    def latest(self, at: float) -> float:
        """Return the latest position of what happened at or before this time."""
        if not self._is_order:
            return at
        following = bisect_right(self._asked, at)
        return self._lowest[following] - 0.25 if following < len(self._lowest) else inf
