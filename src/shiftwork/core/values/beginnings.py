"""Decodes the beginnings of values that are too large to show whole.

A store truncates the bytes, and this decodes them as far as they go: a text ends with an ellipsis, a list or a dict
ends early. A step and a signal end with their times, so a store returns their first and their last bytes.
"""

import struct
from typing import Any, Final

from msgspec import MsgspecError, msgpack

from shiftwork.core.model.job_parts import SeenSignal, SeenStep, Signal, Step
from shiftwork.core.values.job_limits import BEGINNING, DEEPEST

HEAD: Final = BEGINNING + 1_024
"""How many first bytes of a stored step or signal contain its name and the beginning of its value."""
TAIL: Final = 18
"""How many last bytes of a stored step are its two times. The time of a signal takes half of them."""
_TIMES: Final = struct.Struct(">xdxd")
"""The two times of a step; of a signal, the last bytes of its value and its time."""

_FIXED: Final = dict(
    zip(
        (0xC0, 0xC2, 0xC3, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, *range(0xD0, 0xD9)),
        (0, 0, 0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17),
        strict=True,
    )
)
"""How many bytes of a value follow this first byte."""
_SIZED: Final = {
    0xC4: ("bytes", 1),
    0xC5: ("bytes", 2),
    0xC6: ("bytes", 4),
    0xD9: ("text", 1),
    0xDA: ("text", 2),
    0xDB: ("text", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("dict", 2),
    0xDF: ("dict", 4),
}
"""What a value with this first byte is, and in how many bytes its length follows."""
_ONE_BYTE: Final = range(0x80)
_NEGATIVE: Final = range(0xE0, 0x100)
_SHORT_ONES: Final = range(0x80, 0xC0)
_SHORT: Final = (("dict", 0x0F), ("list", 0x0F), ("text", 0x1F), ("text", 0x1F))
"""What a value is whose length is in its first byte, from 0x80 in steps of 16, and the bits that are the length."""
_NOTHING: Final = object()


class _CutValue:
    """Reads truncated MessagePack from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.lacks: int | None = None
        """How many bytes are missing of the value in which the bytes end; None if they do not end too early."""

    def value(self, depth: int = 0) -> Any:
        """Return the next value, or what there is of it."""
        first = self._take(1)
        if self._is_over() or depth > DEEPEST + 1:  # one level more than is shown, so that it is noticed
            return self._nothing()
        kind, size = self._kind(first[0])
        if self._is_over():
            return _NOTHING
        if kind in {"list", "dict"}:
            return self._list(size, depth) if kind == "list" else self._dict(size, depth)
        body = self._take(size)
        if kind == "bytes":
            return body
        if kind == "text":
            return body.decode(errors="ignore") + "…" if self._is_over() else body.decode()
        return _NOTHING if self._is_over() else msgpack.decode(first + body)

    def _kind(self, first: int) -> tuple[str, int]:
        """Return what a value with this first byte is, and how long it is."""
        if first in _ONE_BYTE or first in _NEGATIVE:
            return "number", 0
        if first in _SHORT_ONES:
            kind, mask = _SHORT[(first - 0x80) // 0x10]
            return kind, first & mask
        if first in _SIZED:
            kind, length = _SIZED[first]
            return kind, int.from_bytes(self._take(length), "big")
        if first not in _FIXED:  # extensions of any length, which shiftwork does not write
            self._nothing()
        return "number", _FIXED.get(first, 0)

    def _list(self, size: int, depth: int) -> list[Any]:
        values: list[Any] = []
        while len(values) < size and (part := self.value(depth + 1)) is not _NOTHING:
            values.append(part)
            if self._is_over():
                break
        return values

    def _dict(self, size: int, depth: int) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        for _ in range(size):
            name = self.value(depth + 1)
            part = _NOTHING if self._is_over() else self.value(depth + 1)
            if part is not _NOTHING:
                values[name] = part
            if self._is_over():
                break
        return values

    def _is_over(self) -> bool:
        return self.lacks is not None

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        if len(taken) < size:
            self.lacks = size - len(taken)
        return taken

    def _nothing(self) -> object:
        self.lacks = self.lacks or 0
        return _NOTHING


def beginning(data: bytes) -> Any:
    """Decode a truncated value as far as it goes; None if nothing of it can be decoded."""
    try:
        value = _CutValue(data).value()
    except (MsgspecError, UnicodeDecodeError, TypeError):
        return None
    return None if value is _NOTHING else value


def read_step(body: bytes) -> Step:
    """Decode a stored step. Damaged bytes become a step that says so; no function can continue from it."""
    try:
        return msgpack.decode(body, type=Step)
    except (MsgspecError, UnicodeDecodeError) as error:
        return Step(0, f"a step that cannot be read: {error}", b"", 0.0, 0.0)


def read_signal(body: bytes) -> Signal:
    """Decode a stored signal. Damaged bytes become a signal that says so."""
    try:
        return msgpack.decode(body, type=Signal)
    except (MsgspecError, UnicodeDecodeError) as error:
        return Signal(f"a signal that cannot be read: {error}", b"", 0.0)


def seen_step(head: bytes, tail: bytes | None) -> SeenStep:
    """Return a stored step as people see it: from the whole of it, or from its first and its last bytes."""
    try:
        return _seen_step(head, tail)
    except (MsgspecError, UnicodeDecodeError, struct.error, TypeError, ValueError) as error:
        name = f"a step that cannot be read: {error}"
        return SeenStep(number=0, name=name, result=b"", size=0, started_at=0.0, ended_at=0.0)


def seen_signal(head: bytes, tail: bytes | None) -> SeenSignal:
    """Return a stored signal as people see it: from the whole of it, or from its first and its last bytes."""
    try:
        return _seen_signal(head, tail)
    except (MsgspecError, UnicodeDecodeError, struct.error, TypeError, ValueError) as error:
        return SeenSignal(name=f"a signal that cannot be read: {error}", value=b"", size=0, at=0.0)


def _seen_step(head: bytes, tail: bytes | None) -> SeenStep:
    if tail is None:
        step = msgpack.decode(head, type=Step)
        result, size, started_at, ended_at = step.result, len(step.result), step.started_at, step.ended_at
        number, name = step.number, step.name
    else:
        (number, name, result), size = _cut(head)
        started_at, ended_at = _TIMES.unpack(tail)
    return SeenStep(
        number=number, name=name, result=result[:BEGINNING], size=size, started_at=started_at, ended_at=ended_at
    )


def _seen_signal(head: bytes, tail: bytes | None) -> SeenSignal:
    if tail is None:
        signal = msgpack.decode(head, type=Signal)
        return SeenSignal(name=signal.name, value=signal.value[:BEGINNING], size=len(signal.value), at=signal.at)
    (name, value), size = _cut(head)
    return SeenSignal(name=name, value=value[:BEGINNING], size=size, at=_TIMES.unpack(tail)[1])


def _cut(head: bytes) -> tuple[list[Any], int]:
    """Return the first fields of a step or signal, up to the beginning of its value, and the size of that value."""
    reader = _CutValue(head)
    fields = reader.value()
    return fields, len(fields[-1]) + (reader.lacks or 0)
