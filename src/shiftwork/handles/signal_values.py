"""The values of signals, which are sent to running jobs."""

from typing import Any

import msgspec

from shiftwork.core.payload_limits import DEEPEST, MAX_PAYLOAD_BYTES, is_too_deep
from shiftwork.core.waits import wrong_name
from shiftwork.errors import PayloadEncodingError, PayloadTooLargeError, PayloadTypeError
from shiftwork.handles.plain_values import to_plain


def encode_signal(name: object, value: Any) -> bytes:
    """Return the value of a signal as its job keeps it. Raises a `PayloadError` if one of the two cannot be kept."""
    wrong = wrong_name("a signal", name)
    if wrong is not None:
        raise PayloadTypeError(wrong)
    try:
        encoded = msgspec.msgpack.encode(value, enc_hook=to_plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"the value of signal {name!r} cannot be encoded: {error}; send numbers, text, lists or dicts"
        raise PayloadEncodingError(message) from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        message = (
            f"the value of signal {name!r} has {len(encoded):,} bytes; {MAX_PAYLOAD_BYTES:,} are allowed: "
            "store the data elsewhere and send a reference to it"
        )
        raise PayloadTooLargeError(message)
    if is_too_deep(encoded):
        message = f"the value of signal {name!r} is nested more than {DEEPEST} levels deep: send a flatter value"
        raise PayloadEncodingError(message)
    return encoded
