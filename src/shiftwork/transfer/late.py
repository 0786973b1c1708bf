"""Jobs that were added to a store after its content had moved, by processes that had it open before."""

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from shiftwork.core.model import JobFilter, JobRecord, NewJob
from shiftwork.core.move import Departure
from shiftwork.store.protocol import Store
from shiftwork.transfer.move_record import departure_from, write

BATCH: Final = 200


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
    ids = await _late(source, departure)
    for at in range(0, len(ids), BATCH):
        batch = ids[at : at + BATCH]
        records = [record for record in await source.get(batch) if record is not None]
        await destination.add([_new(record) for record in records], await destination.server_time())
        departure = replace(departure, carried=(*departure.carried, *batch))
        doc, _ = await departure_from(source)
        await write(source, doc, departure)
    return len(ids)


async def _late(store: Store, departure: Departure) -> list[str]:
    """Return the ids of the jobs that have not moved."""
    carried = set(departure.carried)
    late: list[str] = []
    after: str | None = None
    while page := await store.find(JobFilter(created_after=departure.horizon, after=after, limit=BATCH)):
        late += [record.id for record in page if record.id not in carried]
        after = page[-1].id
    return late


def _new(record: JobRecord) -> NewJob:
    fields = asdict(record)
    return NewJob(**{name: fields[name] for name in NewJob.__struct_fields__})
