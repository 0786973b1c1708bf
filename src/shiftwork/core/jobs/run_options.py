"""The options that only a job's run reads: how they are kept, and how they change its worker's policy.

`JobOptions` are what people write when they add a job. Most of them, such as the priority, become fields of the job;
what only its run reads becomes `RunOptions`, which stores keep as bytes.

Bytes that cannot be decoded change nothing here. The instance that claims such a job ends it (`is_damaged`).
"""

from functools import lru_cache

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.model.job_parts import RunOptions
from shiftwork.core.model.workers import WorkerConfig

_NONE = RunOptions()
_decoder = msgpack.Decoder(RunOptions)


def run_options_of(kept: bytes | None) -> RunOptions:
    """Return the options of a job's run; those that cannot be decoded are none."""
    return _NONE if kept is None else _decoded(kept) or _NONE


def is_damaged(kept: bytes | None) -> bool:
    """Return whether a job has options that cannot be decoded."""
    return kept is not None and _decoded(kept) is None


def policy(config: WorkerConfig, kept: bytes | None) -> WorkerConfig:
    """Return the policy for one job: its worker's, with what the options of its run change."""
    if kept is None:
        return config
    options = run_options_of(kept)
    if options.max_retries is None and options.timeout_seconds is None:
        return config
    changes = {"max_retries": options.max_retries, "timeout_seconds": options.timeout_seconds}
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(config, **given)


@lru_cache(maxsize=1_000)  # each start of a job asks several times
def _decoded(kept: bytes) -> RunOptions | None:
    """Return the options; None if they cannot be decoded."""
    try:
        return _decoder.decode(kept)
    except MsgspecError:
        return None
