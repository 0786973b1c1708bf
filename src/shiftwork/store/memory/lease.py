"""Names held until a time: the leases of instances, with their orders, and the places that `hold` takes.

A lease that lasts until an instant has ended at that instant.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders

if TYPE_CHECKING:
    from shiftwork.store.memory.all_tables import Tables


class Instances:
    """The instances that have beaten, and those that have lost their jobs for good."""

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self._records: dict[str, InstanceRecord] = {}

    def renew(self, beat: Beat, ttl: float, now: float) -> bool:
        """Renew or create the lease. False if the instance is lost."""
        if beat.instance in self.lost:
            return False
        self._records[beat.instance] = InstanceRecord(beat, expires_at=now + ttl, last_beat_at=now)
        return True

    def live(self, now: float) -> dict[str, Beat]:
        """Return the last beat of each instance whose lease has not ended."""
        return {name: record.beat for name, record in self._records.items() if record.expires_at > now}

    def forget(self, names: Iterable[str]) -> bool:
        """Forget these instances. True if any of them was known."""
        gone = [self._records.pop(name) for name in names if name in self._records]
        return bool(gone)

    def all(self) -> list[InstanceRecord]:
        return [record for _, record in sorted(self._records.items())]


class Places:
    """The holders of each name, and until when."""

    def __init__(self) -> None:
        self._holders: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def hold(self, name: str, holder: str, *, limit: int, until: float, now: float) -> bool:
        holders = self._holders[name] = {who: end for who, end in self._holders[name].items() if end > now}
        if holder not in holders and len(holders) >= limit:
            return False
        holders[holder] = until
        return True

    def drop(self, name: str, holder: str) -> None:
        self._holders[name].pop(holder, None)


def beat(tables: "Tables", beats: Sequence[Beat], *, ttl: float, now: float) -> Orders:
    """Renew these leases, except those that are lost, and return the orders of their instances."""
    orders = Orders([], [])
    for each in beats:
        if not tables.instances.renew(each, ttl, now):
            orders.lost.append(each.instance)
            continue
        held = (tables.jobs.by_id[id] for id in sorted(tables.jobs.held.get(each.instance, ())))
        orders.cancel.extend((job.id, job.fence) for job in held if job.cancelling)
    return orders


def leave(tables: "Tables", names: Sequence[str]) -> None:
    """Forget these instances, which are gone. What they hold can be reaped at once."""
    tables.ring("leader")
    forget(tables, names)


def forget(tables: "Tables", names: Iterable[str]) -> None:
    """Forget these instances, and wake others that may have given way to jobs that only these would have run."""
    if tables.instances.forget(names):
        tables.jobs.wake_all()
