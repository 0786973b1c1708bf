"""Which signals the waits of an older version have taken, from their steps alone."""

import pytest
from msgspec import msgpack

from shiftwork.core.jobs.durable_functions import got, taken
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.values.envelopes import sealed_value


def sealed(value: bytes) -> bytes:
    return sealed_value("00000000", b"n" * 16, b"t" * 16 + value)


def came(name: str, value: object = None, *, hide: bool = False) -> Step:
    """The step of a wait that a signal has ended."""
    return _end(name, msgpack.encode((True, value)), hide=hide)


def late(name: str, *, hide: bool = False) -> Step:
    """The step of a wait that timed out."""
    return _end(name, msgpack.encode((False, None)), hide=hide)


def _end(name: str, result: bytes, *, hide: bool) -> Step:
    return Step(1, got(name), sealed(result) if hide else result, 10.0, 10.0)


def sent(name: str, value: object = None, *, at: float = 5.0, hide: bool = False) -> Signal:
    coded = msgpack.encode(value)
    return Signal(name, sealed(coded) if hide else coded, at)


@pytest.mark.parametrize(
    ("steps", "signals", "places"),
    [
        ([], [], set()),
        ([], [sent("a")], set()),
        ([came("a", 1)], [sent("a", 1), sent("a", 2)], {0}),
        ([came("a", 1), came("a", 2)], [sent("a", 1), sent("b"), sent("a", 2)], {0, 2}),
        ([late("a")], [sent("a", 1)], set()),
        ([late("a"), came("a", 1)], [sent("a", 1), sent("a", 2)], {0}),
        ([came("b", 1), Step(2, "got a", b"\x92\xc3\x01", 0.0, 0.0)], [sent("a", 1), sent("b", 1)], {1}),
        ([came("a", 1)], [], set()),
        ([came("a", "long", hide=True)], [sent("a", "long", hide=True)], {0}),
        ([came("a", None, hide=True)], [sent("a", None, hide=True)], {0}),
        ([late("a", hide=True)], [sent("a", "long", hide=True)], set()),
        ([late("a", hide=True)], [sent("a", None, at=11.0, hide=True)], set()),
        ([came("a", None)], [sent("a", None)], {0}),
    ],
)
def test_which_signals_were_taken(steps: list[Step], signals: list[Signal], places: set[int]) -> None:
    assert taken(steps, signals) == places
