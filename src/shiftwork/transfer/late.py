"""Jobs that were added to a store after its content had moved, by processes that had it open before."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from shiftwork.core.model.doc_types import Departure
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord, NewJob
from shiftwork.store.protocol import Store
from shiftwork.transfer.move_record import departure_from, write

LATE_BATCH: Final = 200


class Left(Struct, frozen=True):
    """A store whose content has moved."""

    to: str
    late: int
    """How many jobs were added since then."""


async def left_behind(store: Store) -> Left | None:
    """Return where the content of the store has moved, and how many jobs have not; None if nothing has moved."""
    _, departure = await departure_from(store)
    if departure is None or departure.state != "moved":
        return None
    return Left(departure.to, len(await _late(store, departure)))


async def carry_late(source: Store, destination: Store, departure: Departure) -> int:
    """Add the late jobs to the destination, where nodes may run by now; return how many there were."""
    late = await _late(source, departure)
    for batch in _batches(late):
        records = [record for record in await source.get(batch) if record is not None]
        await destination.add([_new(record) for record in records], await destination.server_time())
        departure = replace(departure, carried=(*departure.carried, *batch))
        doc, _ = await departure_from(source)
        await write(source, doc, departure)
    return len(late)


async def _late(store: Store, departure: Departure) -> list[JobRecord]:
    """Return the jobs that have not moved."""
    carried = set(departure.carried)
    late: list[JobRecord] = []
    after: str | None = None
    while page := await store.find(JobFilter(created_after=departure.horizon, after=after, limit=LATE_BATCH)):
        late += [record for record in page if record.id not in carried]
        after = page[-1].id
    return late


def _batches(late: list[JobRecord]) -> Iterator[list[str]]:
    """Yield the ids of the jobs in batches that split no flow: a job is added together with those it needs."""
    batch: list[str] = []
    for _, together in groupby(sorted(late, key=_flow_or_itself), key=_flow_or_itself):
        batch += [record.id for record in together]
        if len(batch) >= LATE_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _flow_or_itself(record: JobRecord) -> tuple[bool, str]:
    return record.flow is None, record.flow or record.id


def _new(record: JobRecord) -> NewJob:
    fields = asdict(record) | {"needs": record.unmet, "parent": None}
    return NewJob(**{name: fields[name] for name in NewJob.__struct_fields__})
