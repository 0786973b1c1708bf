"""The contract every store keeps. `shiftwork.testing.check_store` is its executable form.

Obligations that hold for every method:

* `now` is the caller's: a store never looks at a clock of its own, except in `server_time`.
* A call that returns has happened, durably as far as the store is durable. A call that raises `StoreError` may or may
  not have happened; calling it again with the same arguments must be harmless.
* Everything in one call happens at once, or not at all, as seen by every other caller, in this process or another.
* Calls may come from any thread that runs an event loop, and from several at a time. Calls made one after the other
  without waiting in between, from one event loop, take effect in that order.
* Writing rings the topics it concerns, in every process that listens, within 20 ms and without busy polling.
* Corrupt bytes in one record never make a call fail: the record is put into the dead-letter queue, with the reason.
* No policy: rules about when, whether and how often are in `shiftwork.core`. Where a store cannot call them, it keeps
  them to the letter, and the same suite proves it.

Topics: `pool:NAME` (a job of the pool may be claimable: one became ready, or something opened that ready ones wait
for), `leader` (a schedule's job ended, something is due sooner than before, an instance left, a worker was enabled or
disabled, or a doc changed), `ended` (some job ended for good), `orders` (an instance has orders to fetch by beating),
`state` (a worker was enabled or disabled, or a doc changed). A ring too many is allowed, a missing one is not.

A lease, a place or a `keep_until` until an instant has ended at that instant.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, cast

from msgspec import Struct

from shiftwork.core.admission import Facts
from shiftwork.core.health import Finding
from shiftwork.core.model import (
    Added,
    Amended,
    Beat,
    Change,
    Claimed,
    DeadJob,
    Doc,
    Event,
    Finished,
    InstanceRecord,
    JobFilter,
    JobRecord,
    NewJob,
    Orders,
    Outcome,
    PoolStats,
    ProgressNote,
    Stats,
    WorkerState,
)
from shiftwork.errors import ConfigurationError


class Claims(Struct, frozen=True):
    """What a claim brought."""

    jobs: list[Claimed]
    next_at: float | None = None
    """When a job that time alone holds back (rate limit, breaker) may start: ask again then."""


class Promoted(Struct, frozen=True):
    """What a promotion did, and when the next one is worth it."""

    moved: int
    next_at: float | None = None


class Transaction(Protocol):
    """A transaction of the database that the store lives in, with a job's end in it."""

    connection: Any
    """The connection, of the store's own driver."""

    async def finish(self, outcome: Outcome, now: float) -> bool:
        """Write the outcome as `Store.finish` does. False if it is refused: then nothing must be committed."""


class Transactional(Protocol):
    """What a store may offer besides: that jobs begin or end within transactions of the same database.

    `add_with` and `add_with_blocking` keep jobs as `Store.add` does, once the transaction commits that the user's
    connection is in, and ring then. If it is rolled back, they never existed.
    """

    async def add_with(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """On an asynchronous connection."""

    def add_with_blocking(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """On a blocking connection. The store is open."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin one. It commits when the block is left, is undone when it raises, and then rings what it concerns."""


def transactional(store: "Store", what: str) -> Transactional:
    """The store, if it offers this; an error that says what to do, if it does not."""
    if not hasattr(store, "add_with"):
        raise ConfigurationError(
            f"{what} needs a store that shares a database with your own tables: postgresql://. This one is {store.url}"
        )
    return cast("Transactional", store)


class SchemaStep(Struct, frozen=True):
    """One phase of one change of the schema, and whether it has been done."""

    number: int
    name: str
    phase: Literal["before", "after"]
    """What is `before` may be done while processes of the version before still run; `after` only when none is left."""
    done: bool


class Migratable(Protocol):
    """What a store may offer besides: that its schema is looked at and changed by hand. None of this opens the store.

    All of it raises `SchemaVersionError` if a newer shiftwork has finished changing the schema.
    """

    async def schema_steps(self) -> list[SchemaStep]:
        """Every step there is, known here or only to the database. Only reads."""

    async def upgrade_schema(self, *, after: bool) -> list[SchemaStep]:
        """Do what has not been done, all at once or not at all; answers with what it did. Safe when several do it."""

    async def schema_sql(self, *, pending: bool, after: bool, grant_to: str | None) -> str:
        """SQL for an administrator: for an empty database, or (`pending`) for what this one lacks."""


def migratable(store: "Store") -> Migratable | None:
    """The store, if it offers this."""
    return cast("Migratable", store) if hasattr(store, "schema_steps") else None


class Bell(Protocol):
    """Rings when a topic is written to. A ring between two waits is not lost: the next wait returns at once."""

    @property
    def closed(self) -> bool:
        """Whether it will never ring again: it was closed, or its store was."""

    async def wait(self) -> None:
        """Return once it has rung since the last wait returned (or since it was made); at once if it is closed."""

    def ring(self) -> None:
        """Ring it from here. Safe from any thread."""

    def close(self) -> None:
        """Stop listening. A wait in progress returns."""


class Store(Protocol):
    """Where all state lives."""

    url: str
    """How to open the same store from another process, without its password."""

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Be ready for calls: connect, create or migrate what is missing. Opening twice is opening once.

        Raises `StoreUnavailableError`, `SchemaVersionError`, `CorruptStoreError` with the remedy in the message.
        """

    async def close(self) -> None:
        """Finish what was called, release everything. Safe to call twice, and before `open`."""

    async def server_time(self) -> float:
        """The store's own clock, which all processes follow."""

    # ── hot path: one round trip each, whatever the batch ────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Keep these jobs, answering each in order. When this returns they survive the death of any process.

        A job whose id exists already changes nothing and is answered with `created=False`; so is one whose `unique_key`
        a live job of the same worker has, with that job's id. `run_at <= now` is queued, later is scheduled. A job with
        a `key` is parked while `key_limit` jobs of its worker and key are queued unparked or processing; of those that
        wait, the one with the lowest rank (then id) is unparked first (one that arrives later but ranks ahead takes the
        place of one that has not started), and none before one that ranks ahead of it, even if its limit is higher.
        """

    async def claim(self, instance: str, pool: str, n: int, now: float, workers: Collection[str]) -> Claims:
        """Hand up to `n` queued jobs of pool and workers to an instance, by rank (then id), as `core.admission` admits.

        Each becomes processing, held by the instance, under a fence higher than every one handed out before it in the
        store, with `attempt` one more than counted so far, `started_at` now, `ended_at` and `progress` None. The
        state's `last_started` becomes `now`, and a rate limit moves on. Never more than asked for; never one that
        another holds; none while the pool is paused, and none to an instance that is lost. A doc that cannot be decoded
        counts as absent. The cost does not depend on how many jobs are parked, gated, scheduled, dead or completed.
        """

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        """Write what became of claimed jobs. One whose job is not processing under its fence is refused without effect.

        An accepted one sets status, run_at, attempt, crashes, result, error, ended_at, appends `report`, and releases
        the job's key (unparking the next); `instance`, `started_at` and `fence` go on telling of the last run. failed
        and queued jobs with `run_at <= now` are queued at once, queued ones with a later one are scheduled; a cancel
        that was asked for turns `failed` and `queued` into `cancelled`, kept for a day from now, and has then been
        answered, as by any other end. A job that ended for good (completed, dead, cancelled) sets the worker's
        `last_ended` (to the outcome's `ended_at`), and frees its `unique_key`. A success sets `last_success`
        (likewise), `failures` to 0 and `last_error` to None; a failure adds 1 to `failures` and sets `last_error`; when
        the sum reaches `disable_after` the worker is disabled in the same step, with a reason that names the count and
        the error (all as `core.standing` has it). Outcomes of one batch count in their order.
        """

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        """Renew the leases of these instances until `now + ttl`, making those that are new; answer with their orders.

        An instance whose jobs were reaped is `lost` for ever: its lease is not renewed under that id. An instance whose
        lease ran out but that nobody reaped is renewed and keeps its jobs. Orders are repeated until they are obeyed.
        """

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        """Keep the progress of running jobs; those under an old fence are dropped silently."""

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        """Queue up to `n` scheduled or failed jobs that are due, by `run_at` (then id). `next_at` is the next one's."""

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        """Take up to `n` jobs from instances whose lease has ended (or that left), for `holder`, a live instance.

        They stay processing, under new fences: the caller settles and finishes them. Whatever the old holder still
        writes is refused. A holder that dies in between is reaped in its turn. Each record's `instance` names the one
        that lost it; its `fence` is the new one; all else stays. An instance whose lease has ended and that holds
        nothing is forgotten: it has lost nothing, and may beat again.
        """

    async def prune(self, n: int, now: float) -> int:
        """Delete up to `n` jobs whose `keep_until` has passed, without a trace, and old events; answer how many in all.

        Of the events that people caused (`Event.by_person`) the newest `EVENTS_KEPT` are kept, and of all others as
        many: neither pushes out the other. Up to `n` of each kind go at a time, oldest first; so if the answer is less
        than `n`, nothing is left to prune.
        """

    async def leave(self, instances: Sequence[str], now: float) -> None:
        """These instances are gone: forget them. Jobs they still hold can be reaped at once."""

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        """Hold (or go on holding) one of `limit` places under this name until `now + ttl`. False if all are taken."""

    async def drop(self, name: str, holder: str) -> None:
        """Give the place back, if it is held."""

    # ── small versioned records ──────────────────────────────────────────────────────────────────────────────────

    async def docs(self, kind: str | None = None) -> list[Doc]:
        """All records of a kind, by name; or of every kind, by kind and name."""

    async def put(self, doc: Doc) -> bool:
        """Write it as version `doc.version + 1` if the stored one is `doc.version` (0: none). False if it is not."""

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        """Enable a worker (resetting its failures) or disable it with a reason; answer with its state."""

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:
        """Keep these jobs as they are, whatever is here under their ids. None is processing, and no id comes twice.

        Everything in a record stays, but for `parked`, which the key's other jobs decide. They are not counted as
        added. A live one whose `unique_key` another live job has is left out.
        """

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        """Go on where another store ended: with these workers' states, and with the totals of these pools.

        Of the totals what only grows is set. Answers with a fence, higher than every one handed out here and than
        `fence`; those of later claims are higher still.
        """

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        """What `claim` looks at for these workers and their neighbours, or for all that have a state, gates or jobs."""

    async def get(self, ids: Sequence[str]) -> list[JobRecord | None]:
        """These jobs, whole, with every attempt, in order."""

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        """Jobs that match, newest first (by created_at, then id, both falling), without their attempts.

        `created_after` and `created_before` exclude the instant itself; `error` minds the case; `after` an id that is
        gone there is nothing.
        """

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        """Dead jobs in the order of `find`, for who sums up very many: cheap, with little more than why they are dead.

        `behind` is a place in that order (`created_at`, `id`), whether or not a job is there any more.
        """

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        """Apply one change to many jobs, each answered in order. `core.model` says which statuses allow it.

        Cancelling for good sets `ended_at` and the worker's `last_ended` to `now`, `error` to the reason, and the job's
        `keep_until` to a day later. Requeueing clears `ended_at`, `result` and `progress`, keeps the last error and the
        attempts, schedules what is due later, and is refused while another live job has the same `unique_key`.
        """

    async def stats(self, now: float) -> Stats:
        """The numbers, without a scan of ended jobs.

        `queued` includes parked jobs; the head of the queue is the first by rank that is not parked. `failed` counts
        accepted outcomes that say failed or dead; `run_seconds` sums up `ended_at - started_at` of these and of
        completed, `wait_seconds` their `waited`. `marks` counts those of every accepted outcome.
        """

    async def instances(self) -> list[InstanceRecord]:
        """All instances that have beaten and neither left nor were reaped."""

    async def record(self, events: Sequence[Event]) -> None:
        """Keep events, numbered upwards in one sequence, whoever caused them."""

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """The newest `limit` events with a higher number than `after` (and a lower one than `before`), oldest first."""

    def listen(self, topics: Collection[str]) -> Bell:
        """A bell for these topics. Call it from the event loop that will wait."""

    async def check(self) -> dict[str, Finding]:
        """What `shiftwork doctor` should know, by name: version, durability in plain words, integrity.

        What can cost somebody a job has a severity and a remedy. "integrity" is "ok", or says what is wrong; docs that
        `claim` cannot decode are named in it. "schema version" is a number, where there is one.
        """
