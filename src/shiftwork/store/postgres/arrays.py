"""Lists as PostgreSQL array literals: one text for a whole column of a batch.

The driver would inspect the type of every element, and a batch of a hundred jobs has fifteen hundred.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.json import Encoder

T = TypeVar("T")

_encode: Final = Encoder().encode


def collapsed(values: Sequence[T]) -> Sequence[T]:
    """Return a single element if all elements are equal, otherwise the values."""
    return values[:1] if values.count(values[0]) == len(values) else values


def texts(values: Sequence[str | None]) -> str | None:
    """Return a text[] literal; None if every element is None."""
    missing = values.count(None)
    if not missing:
        return _quoted(values)  # type: ignore[arg-type]
    if missing == len(values):
        return None
    return "{" + ",".join("NULL" if value is None else _element(value) for value in values) + "}"


def _quoted(values: Sequence[str]) -> str:
    if not values:
        return "{}"
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join(_escaped(value) for value in values)
    return '{"' + joined + '"}'


def _element(value: str) -> str:
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def numbers(values: Sequence[float | None]) -> str:
    """Return a literal for an array of any numeric type. Finite numbers look the same in JSON and in PostgreSQL."""
    return "{" + _encode(values)[1:-1].decode() + "}"


def optional_numbers(values: Sequence[float | None]) -> str | None:
    """Return an array literal of numbers; None if every element is None."""
    return None if values.count(None) == len(values) else numbers(values)


def blobs(values: Sequence[bytes | None]) -> str | None:
    """Return a bytea[] literal; None if every element is None."""
    missing = values.count(None)
    if not missing:
        return '{"\\\\x' + '","\\\\x'.join([value.hex() for value in values if value is not None]) + '"}'
    if missing == len(values):
        return None
    return "{" + ",".join("NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values) + "}"


def booleans(values: Sequence[bool]) -> str | None:
    """Return a boolean[] literal; None if no element is true."""
    return "{" + ",".join("t" if value else "f" for value in values) + "}" if any(values) else None
