"""Takes the walks of a model with the real code, and compares the two after every step.

The real code has a method for each step: "node: gives 2" is `node_gives(2)`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

S = TypeVar("S")


class Real(Protocol):
    """The real code, with a method for each step of the model, and what can be seen of it."""

    def seen(self) -> Any:
        """Return what can be compared with the model."""

    def close(self) -> None:
        """Release everything."""


def play(real: Real, step: str) -> None:
    """Take one step."""
    words = re.findall(r"\w+", step.lower())
    name = "_".join(word for word in words if not word.isdigit())
    getattr(real, name)(*(int(word) for word in words if word.isdigit()))


def replay(walks: Iterable[list[tuple[str, S]]], make: Callable[[], Real], seen: Callable[[S], Any]) -> int:
    """Take all walks, each from the beginning; returns how many steps that were. `seen`: what the model expects."""
    taken = 0
    for walk in walks:
        real = make()
        try:
            for number, (step, state) in enumerate(walk, 1):
                play(real, step)
                found, expected = real.seen(), seen(state)
                if found != expected:
                    story = [step for step, _ in walk[:number]]
                    raise AssertionError("\n".join([f"{found} is not", f"{expected}", *story]))
            taken += len(walk)
        finally:
            real.close()
    return taken
