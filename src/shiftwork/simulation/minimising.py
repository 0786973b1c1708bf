"""Shrinks what makes something fail to a part of it that still does: delta debugging, by Zeller and Hildebrandt."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def minimised(whole: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Return a part of what fails that still fails, and stops failing if any single thing is left out.

    `fails` is asked for parts of the whole; the whole itself is known to fail.
    """
    left, parts = list(whole), 2
    if left and fails([]):
        return []
    while len(left) > 1:
        size = -(-len(left) // parts)
        without = [left[:at] + left[at + size :] for at in range(0, len(left), size)]
        smaller = next((part for part in without if fails(part)), None)
        if smaller is not None:
            left, parts = smaller, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(2 * parts, len(left))
    return left
