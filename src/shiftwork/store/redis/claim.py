"""Jobs as a claim hands them out, from the reply of the script."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.model.jobs import Claimed
from shiftwork.store.redis.lua import STATE
from shiftwork.store.redis.rows import own_values

_decode: Final = msgpack.Decoder().decode


def claimed(flat: Sequence[Any], broken: dict[str, str]) -> list[Claimed]:
    """Return the jobs of a reply of `claim`. Unreadable ones are added to `broken`, with the reason."""
    jobs: list[Claimed] = []
    for id, state, never_changes, payload in zip(flat[::4], flat[1::4], flat[2::4], flat[3::4], strict=True):
        _, flags, _, attempt, crashes, fence, run_at, _, _, _ = STATE.unpack_from(state)
        try:
            worker, pool, _, _, _, cause, _, _, _, trace, *own = _decode(never_changes)
        except (MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
            broken[id.decode()] = f"unreadable: {error}"
            continue
        name = id.decode()
        job = Claimed(name, worker, pool, payload, int(fence), attempt, crashes, run_at, cause, trace or None)
        jobs.append(job if not own else replace(job, **own_values(own, flags)))
    return jobs
