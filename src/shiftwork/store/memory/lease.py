"""The instances and places of a memory store: names held until a time.

A lease that lasts until an instant has ended at that instant.
"""

from collections import defaultdict
from collections.abc import Iterable

from shiftwork.core.observing.beats import Beat, InstanceRecord


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
        """The last beat of each instance whose lease has not ended."""
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
