"""What is read from the beginning of a cut value, wherever it was cut."""

from typing import Any

import pytest
from msgspec import msgpack

from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.values.beginnings import HEAD, TAIL, beginning, seen_signal, seen_step
from shiftwork.core.values.job_limits import (
    BEGINNING,
    DEEPEST,
    FIRST_ATTEMPTS,
    MOST_ATTEMPTS,
    Limit,
    is_deep,
    kept_attempts,
)

VALUE: Any = {
    "path": "a.png",
    "sizes": [1, -5, 70_000, 1.5, None, True, {"x": "é" * 40}],
    "data": b"12" * 300,
    "z": 2**40,
}


def is_beginning_of(part: Any, whole: Any) -> bool:
    if isinstance(whole, dict):
        return all(name in whole and is_beginning_of(value, whole[name]) for name, value in part.items())
    if isinstance(whole, list):
        return all(is_beginning_of(one, other) for one, other in zip(part, whole, strict=False))
    if isinstance(whole, str):
        return bool(whole.startswith(part.removesuffix("…")))
    return bool(whole.startswith(part) if isinstance(whole, bytes) else part == whole)


def test_a_value_that_is_cut_anywhere_says_what_it_says_so_far() -> None:
    encoded = msgpack.encode(VALUE)
    assert beginning(encoded) == VALUE
    for size in range(1, len(encoded)):
        assert is_beginning_of(beginning(encoded[:size]), VALUE), size
    assert beginning(msgpack.encode({"text": "x" * 100})[:20]) == {"text": "x" * 12 + "…"}
    assert beginning(b"") is None


@pytest.mark.parametrize("damaged", [b"\xc1", b"\xc7\x05\x01", b"\xa3\xff\xff\xff", b"\x81\x81\x01\x01\x01"])
def test_damaged_bytes_say_nothing_and_raise_nothing(damaged: bytes) -> None:
    assert beginning(damaged) in (None, {})


def test_a_value_that_is_too_deep_is_noticed() -> None:
    assert is_deep(beginning(b"\x91" * 1_000))
    assert not is_deep(beginning(b"\x91" * (DEEPEST - 1) + b"\x90"))


@pytest.mark.parametrize("size", [0, BEGINNING, BEGINNING + 1, 3 * BEGINNING, 70_000])
def test_a_cut_step_and_a_cut_signal_have_all_but_the_end_of_their_values(size: int) -> None:
    step, signal = Step(9_999, "☃" * 200, b"r" * size, 1.5, 2.5), Signal("☃" * 200, b"v" * size, 3.5)
    seen, heard = (_cut(msgpack.encode(one)) for one in (step, signal))
    one, other = seen_step(*seen), seen_signal(*heard)
    assert (one.number, one.name, one.started_at, one.ended_at, one.size) == (9_999, step.name, 1.5, 2.5, size)
    assert (other.name, other.at, other.size) == (signal.name, 3.5, size)
    assert (one.result, other.value) == (step.result[:BEGINNING], signal.value[:BEGINNING])


def _cut(body: bytes) -> tuple[bytes, bytes | None]:
    return (body[:HEAD], body[-TAIL:]) if len(body) > HEAD + TAIL else (body, None)


def test_a_damaged_step_or_signal_says_so() -> None:
    assert "cannot be read" in seen_step(b"\xc1", None).name
    assert "cannot be read" in seen_step(b"\x95\x01", b"short").name
    assert "cannot be read" in seen_signal(b"\xc1", None).name


def test_a_limit_allows_up_to_its_number_and_its_bytes() -> None:
    limit = Limit(2, 10)
    assert limit.allows(1, 4, 6)
    assert not limit.allows(1, 4, 7)
    assert not limit.allows(2, 0, 0)


def test_the_first_and_the_last_attempts_are_kept() -> None:
    kept: tuple[int, ...] = ()
    for n in range(1_000):
        kept = kept_attempts(kept, n)
    assert kept == (*range(FIRST_ATTEMPTS), *range(1_000 - MOST_ATTEMPTS + FIRST_ATTEMPTS, 1_000))
