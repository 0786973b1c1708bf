"""The values of signals, which are sent to running jobs."""

from typing import Any

import msgspec

from shiftwork.core.jobs.durable import wrong_name
from shiftwork.core.values.limits import DEEPEST, is_too_deep
from shiftwork.errors import PayloadEncodingError, PayloadTooLargeError, PayloadTypeError
from shiftwork.handles.plain_values import to_plain


def encode_signal(name: object, value: Any) -> bytes:
    """Return the value of a signal as its job keeps it. Raises a `PayloadError` if one of the two cannot be kept.

    `check_signal_size` says whether it is small enough for its job.
    """
    wrong = wrong_name("a signal", name)
    if wrong is not None:
        raise PayloadTypeError(wrong)
    try:
        encoded = msgspec.msgpack.encode(value, enc_hook=to_plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"the value of signal {name!r} cannot be encoded: {error}; send numbers, text, lists or dicts"
        raise PayloadEncodingError(message) from None
    if is_too_deep(encoded):
        message = f"the value of signal {name!r} is nested more than {DEEPEST} levels deep: send a flatter value"
        raise PayloadEncodingError(message)
    return encoded


def check_signal_size(name: str, encoded: bytes, max_bytes: int) -> None:
    """Raise `PayloadTooLargeError` if the value of a signal is larger than a payload of its worker may be."""
    if len(encoded) > max_bytes:
        message = (
            f"the value of signal {name!r} has {len(encoded):,} bytes; {max_bytes:,} are allowed: "
            "store the data elsewhere and send a reference to it, or raise max_payload_bytes"
        )
        raise PayloadTooLargeError(message)
