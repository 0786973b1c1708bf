"""The options that a job has of its own: how they are kept.

Bytes that cannot be decoded change nothing here.
"""

from msgspec import MsgspecError, msgpack

from shiftwork.core.job_parts import OwnOptions

_NONE = OwnOptions()
_decoder = msgpack.Decoder(OwnOptions)


def pack(options: OwnOptions) -> bytes | None:
    """The options as stores keep them; None if there are none."""
    return None if options == _NONE else msgpack.encode(options)


def unpack(kept: bytes | None) -> OwnOptions:
    """The options that a job has of its own."""
    if kept is None:
        return _NONE
    try:
        return _decoder.decode(kept)
    except MsgspecError:
        return _NONE
