"""Expectations whose failure names what differs.

They do not use `assert`, because a store's author may run the suite without pytest, and `assert` then shows no values.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

T = TypeVar("T")
PATIENCE: Final = 30.0
"""How many seconds to wait for something before it counts as not happening."""


def equal(got: object, wanted: object, about: str = "it") -> None:
    """Require both to be equal."""
    if got != wanted:
        raise AssertionError(f"{about}: {_difference(got, wanted)}")


def holds(truth: object, about: str) -> None:
    """Require something to be true."""
    if not truth:
        raise AssertionError(about)


def there(value: T | None, about: str = "it") -> T:
    """Require a value that is not None, and return it."""
    if value is None:
        raise AssertionError(f"{about}: there is none")
    return value


async def soon(waited_for: Awaitable[T], about: str) -> T:
    """Require something to happen before patience ends, and return its result."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await waited_for
    except TimeoutError:
        raise AssertionError(f"{about}: it did not happen within {PATIENCE:g} s") from None


def _difference(got: object, wanted: object) -> str:
    if isinstance(got, Struct) and isinstance(wanted, Struct) and type(got) is type(wanted):
        pairs: list[tuple[str, Any, Any]] = [(name, value, asdict(wanted)[name]) for name, value in asdict(got).items()]
        return ", ".join(f"{name} is {is_!r}, wanted {want!r}" for name, is_, want in pairs if is_ != want)
    return f"got {got!r}, wanted {wanted!r}"
