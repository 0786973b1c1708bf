"""The options that a job has of its own: how they are kept, and how they change its worker's policy.

Bytes that cannot be decoded change nothing here. The instance that claims such a job ends it (`is_damaged`).
"""

from functools import lru_cache

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.model.job_parts import OwnOptions
from shiftwork.core.model.workers import WorkerConfig

_NONE = OwnOptions()
_decoder = msgpack.Decoder(OwnOptions)


def pack(options: OwnOptions) -> bytes | None:
    """The options as stores keep them; None if there are none."""
    return None if options == _NONE else msgpack.encode(options)


def unpack(kept: bytes | None) -> OwnOptions:
    """The options that a job has of its own."""
    return _NONE if kept is None else _decoded(kept) or _NONE


def is_damaged(kept: bytes | None) -> bool:
    """Whether a job has options that cannot be decoded."""
    return kept is not None and _decoded(kept) is None


def policy(config: WorkerConfig, kept: bytes | None) -> WorkerConfig:
    """The policy for one job: its worker's, with what the job has of its own."""
    if kept is None:
        return config
    own = unpack(kept)
    if own.max_retries is None and own.timeout_seconds is None:
        return config
    changes = {"max_retries": own.max_retries, "timeout_seconds": own.timeout_seconds}
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(config, **given)


@lru_cache(maxsize=1_000)  # each start of a job asks several times
def _decoded(kept: bytes) -> OwnOptions | None:
    """The options; None if they cannot be decoded."""
    try:
        return _decoder.decode(kept)
    except MsgspecError:
        return None
