"""Moving everything in a namespace from one store to another, of any kind.

Copying is comparing: a page of jobs is read from both sides, and what differs is written. So a move that was killed is
finished by starting it again, and nothing is copied twice. Only a page of jobs is in memory at any time.

Both stores record the move, in docs that do not move themselves: `Departure` in the source, `Arrival` in the
destination. While they are there, no node starts on either side and no job can be changed; jobs may still be added to
the source, and are carried too. The source keeps its content.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.model.doc_types import Arrival, Departure
from shiftwork.core.model.job_changes import JobFilter, Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.errors import MoveError
from shiftwork.history.opening import open_store
from shiftwork.store.abilities import key_ids
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import agree_on_keys, find_keys, keys_in_use, refuse_missing_keys
from shiftwork.transfer.carried_records import CarriedRecords, carry
from shiftwork.transfer.late import carry_late
from shiftwork.transfer.move_record import arrival_in, departure_from, reset_damaged, write
from shiftwork.transfer.tally import Tally, canonical

MOVED_AT_A_TIME: Final = 200
"""How many jobs are in memory at a time; each may have a megabyte of payload."""
PASSES: Final = 5
"""How often differences are copied before giving up: by then something keeps changing the source."""
ROUNDS: Final = 10
"""How often new jobs are looked for before the source is closed; after that they are looked for once more."""
MOST_SKEW_SECONDS: Final = 10.0
"""How much the clocks of processes that add jobs may differ: they follow the store's clock."""
MOVE_LEASE: Final = "move"
"""The name of the lease that one move at a time holds."""
LEASE_SECONDS: Final = 10.0

Report = Callable[[str, int, int], None]
"""Called with the current step, how many jobs it has handled, and how many there are (0 if that is not known)."""


class Moved(Struct, frozen=True, kw_only=True):
    """What a move did."""

    source: str
    destination: str
    copied: int
    """How many jobs were written this time, without those of an earlier, interrupted move."""
    handed_back: int
    """How many jobs ran in a process that vanished: they are queued again, and that run does not count."""
    late: bool = False
    """Whether this only carried jobs that were added to the source after the move."""
    counted: Tally = field(default_factory=Tally)
    """The jobs in the source."""
    arrived: Tally = field(default_factory=Tally)
    """The jobs in the destination."""
    records: CarriedRecords = CarriedRecords()


# ── for other modules ────────────────────────────────────────────────────────────────────────────────────────────────


async def move(source: str, destination: str, *, namespace: str = "default", report: Report) -> Moved:
    """Move the content of the store at one URL to another."""
    async with _opened(source, namespace) as out, _opened(destination, namespace) as into:
        return await Move(out, into, report).run()


async def abandon(source: str, *, namespace: str = "default") -> str | None:
    """Cancel an unfinished move, so that nodes can use the source again; return where it was going, if anywhere."""
    async with _opened(source, namespace) as store:
        reset = await reset_damaged(store)
        if reset is not None:
            return reset.to
        doc, departure = await departure_from(store)
        if departure is None or departure.state == "abandoned":
            return None
        if departure.state == "moved":
            raise MoveError(f"{store.url} has moved to {departure.to}: a finished move cannot be abandoned")
        await write(store, doc, replace(departure, state="abandoned"))
        return departure.to


@asynccontextmanager
async def _opened(url: str, namespace: str) -> AsyncIterator[Store]:
    store = open_store(url, namespace=namespace, keys=find_keys(None))
    try:
        await store.open()
        yield store
    finally:
        await store.close()


# ── the move itself ──────────────────────────────────────────────────────────────────────────────────────────────────


class Move:
    """One move, from one open store to another."""

    def __init__(self, source: Store, destination: Store, report: Report) -> None:
        self._source = source
        self._destination = destination
        self._report = report
        self._holder = f"move/{secrets.token_hex(6)}"
        self._checked_at = float("-inf")
        self._copied = 0
        self._handed_back = 0

    async def run(self) -> Moved:
        """Move everything, and return what was moved. After an interruption, it continues."""
        if await self._is_same():
            raise MoveError(f"{self._source.url} cannot move to itself")
        await self._refuse_missing_keys()
        await self._take_lease()
        try:
            departure = await self._begin()
            if key_ids(self._destination):
                await agree_on_keys(self._destination, await keys_in_use(self._destination))
            _, arrival = await arrival_in(self._destination)
            if arrival is not None and arrival.done:
                late = await carry_late(self._source, self._destination, departure)
                return self._moved(copied=late, late=True)
            await self._refuse_live_nodes()
            await self._hand_back()
            counted, arrived, horizon = await self._copy_until_alike()
            return await self._end(departure, counted, arrived, horizon)
        finally:
            await self._source.drop(MOVE_LEASE, self._holder)

    # ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _refuse_missing_keys(self) -> None:
        """Raise if some keys are here, and others are missing: no node could then run what arrives.

        Without any keys, encrypted values are carried as they are.
        """
        for store in (self._source, self._destination):
            if key_ids(store):
                refuse_missing_keys(store, await keys_in_use(store))

    async def _is_same(self) -> bool:
        """Return whether both URLs lead to one store: then a lease held in one cannot be held in the other."""
        now = await self._source.server_time()
        await self._source.hold(self._holder, "source", 1, LEASE_SECONDS, now)
        free = await self._destination.hold(self._holder, "destination", 1, LEASE_SECONDS, now)
        await self._source.drop(self._holder, "source")
        await self._destination.drop(self._holder, "destination")
        return not free

    async def _take_lease(self) -> None:
        """Wait for the lease: one move at a time. A move that was killed holds it until it ends."""
        deadline = time.monotonic() + LEASE_SECONDS + 1
        while not await self._hold():
            if time.monotonic() > deadline:
                raise MoveError(f"another `shiftwork move` of {self._source.url} is running: let it finish")
            await asyncio.sleep(0.1)

    async def _hold(self) -> bool:
        now = await self._source.server_time()
        return await self._source.hold(MOVE_LEASE, self._holder, 1, LEASE_SECONDS, now)

    async def _begin(self) -> Departure:
        """Record the move in both stores, after checking that it may start."""
        doc, departure = await departure_from(self._source)
        arriving, arrival = await arrival_in(self._destination)
        ours = departure is not None and arrival is not None and departure.token == arrival.token
        if departure is not None and departure.state == "moved" and not ours:
            raise MoveError(f"{self._source.url} has already moved to {departure.to}")
        if departure is not None and ours and departure.state != "abandoned":
            return departure
        if arrival is not None and not arrival.done:
            raise MoveError(
                f"{self._destination.url} holds part of another move, from {arrival.source}: choose another database "
                "or namespace, or empty it"
            )
        await self._refuse_occupied()
        await self._refuse_live_nodes()
        departure = Departure(token=secrets.token_hex(8), to=self._destination.url, at=await self._source.server_time())
        await write(self._source, doc, departure)
        await write(self._destination, arriving, Arrival(token=departure.token, source=self._source.url))
        return departure

    async def _refuse_occupied(self) -> None:
        """Raise if the destination is not empty: its content would mix with what is moved."""
        there = self._destination
        found = {
            "jobs": await there.find(JobFilter(limit=1)),
            "jobs it has counted": (await there.stats(0.0)).pools,
            "workers or pools": await there.docs(),
            "workers": (await there.survey(None, 0.0)).lanes,
            "events": await there.events(0, 1),
        }
        for what, some in found.items():
            if some:
                raise MoveError(
                    f"{there.url} is not empty: it holds {what} that are not part of this move. Choose another "
                    "database or namespace, or empty it"
                )

    async def _refuse_live_nodes(self) -> None:
        """Raise if nodes run on either side."""
        for store in (self._source, self._destination):
            now = await store.server_time()
            live = [known.beat for known in await store.instances() if known.expires_at > now]
            if live:
                names = ", ".join(sorted({f"{beat.instance} on {beat.node}" for beat in live}))
                raise MoveError(f"nodes run on {store.url}: {names}. Stop them, then run this again")

    async def _check_lease(self) -> None:
        """Check now and then that the lease is still ours and no node has started."""
        if time.monotonic() - self._checked_at < LEASE_SECONDS / 4:
            return
        self._checked_at = time.monotonic()
        _, arrival = await arrival_in(self._destination)
        if not await self._hold() or arrival is None or arrival.done:
            raise MoveError(f"another `shiftwork move` of {self._source.url} has taken over from this one")
        await self._refuse_live_nodes()

    async def _hand_back(self) -> None:
        """Queue jobs whose process has vanished, as if that run had never started."""
        while True:
            now = await self._source.server_time()
            orphans = await self._source.reap(self._holder, MOVED_AT_A_TIME, now)
            if not orphans:
                return
            await self._source.finish([_handed_back(record, now) for record in orphans], now)
            self._handed_back += len(orphans)

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _copy_until_alike(self) -> tuple[Tally, Tally, float]:
        """Copy what differs until nothing does. Return both sides, and the creation time of the newest job."""
        total = await self._count()
        counted = arrived = Tally()
        for attempt in range(PASSES):
            newest = await self._copy(total)
            if attempt:
                await self._refuse_strays()
            counted = await self._sum(self._source, "checking the source", total, newest)
            arrived = await self._sum(self._destination, "checking the destination", counted.jobs, None)
            if counted == arrived:
                return counted, arrived, newest[0] if newest else 0.0
        raise MoveError(
            f"{self._source.url} and {self._destination.url} differ after {PASSES} passes: {counted.counts} with "
            f"checksum {counted.checksum}, {arrived.counts} with {arrived.checksum}. Something is changing the source; "
            "stop it, then run this again"
        )

    async def _count(self) -> int:
        total = 0
        async for page in self._pages(self._source):
            total += len(page)
            self._report("counting", total, 0)
        return total

    async def _copy(self, total: int) -> tuple[float, str] | None:
        """Write the jobs that are missing or different in the destination. Return the place of the newest job."""
        newest: tuple[float, str] | None = None
        done = 0
        async for page in self._pages(self._source):
            newest = newest or _place(page[0])
            records = await _whole(self._source, page)
            await self._write_missing(records)
            done += len(page)
            self._report("copying", done, max(done, total))
        return newest

    async def _write_missing(self, records: Sequence[JobRecord]) -> list[tuple[JobRecord, JobRecord | None]]:
        """Write the jobs that are missing or different. Return those written, each with what was there before."""
        running = [record for record in records if record.status is JobStatus.PROCESSING]
        if running:
            raise MoveError(
                f"job {running[0].id} was started by {running[0].instance} on {self._source.url}: stop that "
                "instance, then run this again"
            )
        there = await self._destination.get([record.id for record in records], whole=True)
        missing = [
            (record, other)
            for record, other in zip(records, there, strict=True)
            if other is None or canonical(other) != canonical(record)
        ]
        if missing:
            await self._check_lease()
            now = await self._destination.server_time()
            await self._destination.restore([record for record, _ in missing], now)
        self._copied += len(missing)
        return missing

    async def _refuse_strays(self) -> None:
        """Raise if a job is only in the destination: it was added there in the meantime and must not be deleted."""
        async for page in self._pages(self._destination):
            ids = [record.id for record in page]
            for id, record in zip(ids, await self._source.get(ids), strict=True):
                if record is None:
                    raise MoveError(
                        f"{self._destination.url} holds job {id}, which {self._source.url} does not: it was added "
                        "there in the meantime, or deleted here. Discard it if it is not needed, then run this again"
                    )

    async def _sum(self, store: Store, what: str, total: int, newest: tuple[float, str] | None) -> Tally:
        """Return the tally of a store, up to the newest job that counts."""
        tally = Tally()
        done = 0
        async for page in self._pages(store):
            counted = [record for record in page if newest is None or _place(record) <= newest]
            for record in await _whole(store, counted):
                tally.add(record)
            done += len(counted)
            self._report(what, done, max(done, total))
        return tally

    async def _catch_up(self, horizon: float, counted: Tally, arrived: Tally) -> float | None:
        """Carry the jobs that were added since. Return when the newest of them was created, if there are any."""
        newest: float | None = None
        async for page in self._pages(self._source, horizon - MOST_SKEW_SECONDS):
            missing = await self._write_missing(await _whole(self._source, page))
            for record, other in missing:
                newest = max(newest or 0.0, record.created_at)
                counted.add(record)
                if other is not None:
                    counted.add(other, -1)
                    arrived.add(other, -1)
            for record in await _whole(self._destination, [record for record, _ in missing]):
                arrived.add(record)
        return newest

    async def _pages(self, store: Store, since: float | None = None) -> AsyncIterator[list[JobRecord]]:
        """Yield all jobs, newest first: jobs added in the meantime come before the first page."""
        after: str | None = None
        while True:
            await self._check_lease()
            page = await store.find(JobFilter(after=after, limit=MOVED_AT_A_TIME, created_after=since))
            if page:
                yield page
            if len(page) < MOVED_AT_A_TIME:
                return
            after = page[-1].id

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _end(self, departure: Departure, counted: Tally, arrived: Tally, horizon: float) -> Moved:
        """Carry the jobs added in the meantime, close the source, carry what was added until then, and all the rest."""
        for _ in range(ROUNDS):
            newest = await self._catch_up(horizon, counted, arrived)
            if newest is None:
                break
            horizon = max(horizon, newest)
        await self._close_source(departure, horizon)
        await self._catch_up(horizon, counted, arrived)
        records = await carry(self._source, self._destination)
        if counted != arrived:
            raise MoveError(
                f"{self._destination.url} and {self._source.url} differ: {counted.counts} became {arrived.counts}. "
                "Run this again"
            )
        await self._refuse_live_nodes()
        await self._close_source(departure, horizon)
        doc, _ = await arrival_in(self._destination)
        await write(self._destination, doc, Arrival(token=departure.token, source=self._source.url, done=True))
        return self._moved(copied=self._copied, counted=counted, arrived=arrived, records=records)

    def _moved(self, **what: Any) -> Moved:
        return Moved(source=self._source.url, destination=self._destination.url, handed_back=self._handed_back, **what)

    async def _close_source(self, departure: Departure, horizon: float) -> None:
        """Record in the source that its content has moved, and which of its newest jobs were carried."""
        edge = horizon - MOST_SKEW_SECONDS
        carried = tuple([one.id async for page in self._pages(self._destination, edge) for one in page])
        doc, _ = await departure_from(self._source)
        now = await self._source.server_time()
        await write(self._source, doc, replace(departure, state="moved", at=now, horizon=edge, carried=carried))


# ── small parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _place(record: JobRecord) -> tuple[float, str]:
    return record.created_at, record.id


async def _whole(store: Store, records: Sequence[JobRecord]) -> list[JobRecord]:
    """Return the same jobs with their attempts, without those that are gone."""
    found = await store.get([record.id for record in records], whole=True) if records else []
    return [record for record in found if record is not None]


def _handed_back(record: JobRecord, now: float) -> Outcome:
    return Outcome(
        id=record.id,
        fence=record.fence,
        worker=record.worker,
        pool=record.pool,
        status=JobStatus.QUEUED,
        ended_at=now,
        run_at=record.run_at,
        attempt=max(0, record.attempt - 1),
        crashes=record.crashes,
        result=record.result,
        error=record.error,
        cause=record.cause,
    )
