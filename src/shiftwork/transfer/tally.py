"""The count and the checksum of a store's jobs. Pure. `moving` compares those of two stores."""

from hashlib import blake2b

from msgspec import Struct, field, msgpack
from msgspec.structs import replace

from shiftwork.core.model.jobs import JobRecord


def canonical(record: JobRecord) -> bytes:
    """Return what must be the same on both sides: everything but `parked`, which depends on other jobs."""
    return msgpack.encode(replace(record, parked=False, error=storable(record.error)))


def storable(text: str | None) -> str | None:
    """Return a text as every store can keep it: PostgreSQL has no NUL."""
    return text.replace("\x00", "\\x00") if text is not None and "\x00" in text else text


class Tally(Struct):
    """Jobs by status, and a sum over their bytes that does not depend on their order."""

    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0

    def add(self, record: JobRecord, by: int = 1) -> None:
        """Count a job `by` more times."""
        status = record.status.value
        self.counts[status] = self.counts.get(status, 0) + by
        if not self.counts[status]:
            del self.counts[status]
        self.total = (self.total + by * _number(record)) % (1 << 128)

    @property
    def checksum(self) -> str:
        """The sum as hexadecimal digits."""
        return f"{self.total:032x}"

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return sum(self.counts.values())


def _number(record: JobRecord) -> int:
    return int.from_bytes(blake2b(canonical(record), digest_size=16).digest(), "big")
