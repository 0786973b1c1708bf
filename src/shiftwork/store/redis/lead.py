"""What the leader does for all, from the replies of the scripts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from shiftwork.core.model.jobs import JobRecord
from shiftwork.store.protocol import Promoted
from shiftwork.store.redis.find import FoundJobs, decoded
from shiftwork.store.redis.rows import fields


def promoted(moved: int, late: Sequence[bytes], *next_at: bytes) -> Promoted:
    """Return what `promote` has moved, and when the next job is due or expires."""
    expired = dict(Counter(worker.decode() for worker in late))
    return Promoted(moved, min((float(at) for at in next_at if at), default=None), expired)


def reaped(taken: Sequence[Any]) -> tuple[list[JobRecord], FoundJobs]:
    """Return the jobs that `reap` has taken, each with the instance that lost it, and what was found of them."""
    found = FoundJobs((id.decode(), fields(flat)) for _, id, flat in taken)
    records = decoded(found, whole=True)
    lost_by = {id.decode(): name.decode() for name, id, _ in taken}
    return [replace(record, instance=lost_by[record.id]) for record in records if record.id not in found.broken], found
