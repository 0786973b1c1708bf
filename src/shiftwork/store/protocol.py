"""The contract every store keeps. `tests/store/conformance` is its executable form; `abilities` has what is optional.

Obligations that hold for every method:

* `now` is the caller's: a store never reads a clock of its own, except to return it.
* A call that returns has happened, as durably as the store is durable. A call that raises `StoreError` may or may not
  have happened; repeating it with the same arguments must be harmless.
* Every other caller, in this process or another, sees everything in one call happen at once, or not at all.
* Calls may come from any thread that runs an event loop, and from several at a time. Calls that one event loop makes in
  a row, without awaiting in between, take effect in that order; but jobs that are added, and outcomes, may overtake a
  claim, and a claim may overtake outcomes.
* Writing rings the topics it concerns, in every process that listens, within 20 ms and without busy polling.
* Corrupt bytes in one record never make a call fail: the record goes to the dead-letter queue, with the reason.
* A store has no policy: the rules about when, whether and how often are in `shiftwork.core`. Where a store cannot call
  a rule it repeats it exactly, and the suite compares the copy with the original.

Topics: `pool:NAME` (a job of the pool may be claimable: one became ready, or something opened that ready jobs wait
for), `leader` (a schedule's job ended, something is due sooner than before, an instance left, a worker was enabled or
disabled, or a doc changed), `ended` (some job ended for good), `orders` (an instance has orders to fetch by beating),
`state` (a worker was enabled or disabled, or a doc changed). A spurious ring is allowed, a missing one is not.

A lease, a place or a `keep_until` that lasts until an instant has ended at that instant.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from shiftwork.core.health.position import Ahead, QueuePlace
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Change, Finished, JobFilter, Outcome
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, Claimed, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.core.observing.pool_stats import PoolStats, Stats
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS
from shiftwork.core.workers.admission import Facts

if TYPE_CHECKING:
    from shiftwork.core.health.health_values import Finding


class Claims(Struct, frozen=True):
    """The jobs that `claim` handed out."""

    jobs: list[Claimed]
    next_at: float | None = None
    """When the first job that only time holds back (rate limit, breaker) may start: claim again then."""
    stale: bool = False
    """Whether the store has lost the definitions that the claim relies on: publish them again, then claim."""


class Promoted(Struct, frozen=True):
    """How many jobs `promote` moved, and when the next one is due."""

    moved: int
    next_at: float | None = None
    expired: dict[str, int] = {}
    """How many of them had expired, by worker."""


class Bell(Protocol):
    """Rings when a topic is written to. A ring between two waits is not lost: the next wait returns at once."""

    @property
    def closed(self) -> bool:
        """Whether it will never ring again because it was closed, or its store was."""

    async def wait(self) -> None:
        """Return once it has rung since the last wait returned (or since it was made), or at once if it is closed."""

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
        """Get ready for calls: connect, and create or migrate what is missing. Opening twice is opening once.

        Raises `StoreUnavailableError`, `SchemaVersionError` or `CorruptStoreError` with the remedy in the message.
        """

    async def close(self) -> None:
        """Finish the calls in progress and release everything. It is safe to call twice, and before `open`."""

    async def server_time(self) -> float:
        """Return the store's own clock, which all processes follow."""

    # ── hot path: one round trip each, whatever the batch ────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Keep these jobs, and return what became of each, in order. Then they survive the death of any process.

        A job whose id exists changes nothing and returns `created=False`. So does a job whose `unique_key` a live job
        of the same worker has, with that job's id. A job with `run_at <= now` is queued, a later one is scheduled. A
        job with a `key` is parked as `core.jobs.parked_jobs` says. A job with a need that is not met is waiting
        (`core.jobs.needs`); it may need jobs that follow it in the same call. What waits for a job's `parent`
        waits for the job too, under the same condition.
        """

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        """Hand up to `n` queued jobs of pool and workers to an instance, by rank (then id), as `core.workers.admission`
        admits.

        Each becomes processing, held by the instance, under a fence higher than every fence the store handed out
        before, with `attempt` one higher, `started_at` now, `ended_at`, `progress`, `expires_at` and `wait` None; the
        claimed job has its `expires_at` as it was before. The worker's `last_started`
        becomes `now`, and a rate limit moves on. A claim never returns more jobs than asked for, nor a job that another
        instance holds; it returns none while the pool is paused, and none to an instance that is lost. A doc that
        cannot be decoded counts as its kind says (`Kind.effective`): a pool is paused, all else is absent. If an
        `edition` is given and the record of that kind does not hold it, the definitions are gone
        (`core.workers.edition`): the claim changes nothing and returns `stale`. The cost does not depend
        on how many jobs are parked, gated, scheduled, dead or completed, nor on how many of the workers have no job:
        an instance claims with the same very many names again and again.
        """

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        """Write what became of claimed jobs. An outcome whose job is not processing under its fence is rejected.

        A rejected outcome has no effect. An accepted one takes its job where `core.jobs.transitions` says, appends its
        `report`, and releases the job's key (unparking the next); `instance`, `started_at` and `fence` keep describing
        the last run. A job that runs again keeps its rank if the outcome says so, also through `promote`, `restore` and
        further claims: once it is due, it is claimed before every job that was added after it. A job that ends for good
        (completed, dead, cancelled) frees its `unique_key`, and meets the needs of other jobs as `core.jobs.needs`
        says, however it ends: here, by `amend`, by `promote` or as a corrupt record. The worker's state changes in the
        same step as `core.workers.state` says, so that the failure that reaches `disable_after` disables the worker at
        once. Outcomes of one batch count in their order.
        """

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        """Renew the leases of these instances until `now + ttl`, creating those that are new, and return their orders.

        An instance whose jobs were reaped is `lost` for good: its lease is not renewed under that id. An instance whose
        lease ran out but that was not reaped is renewed and keeps its jobs. Orders are repeated until they are obeyed,
        and carry the store's own clock.
        """

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        """Keep the progress of running jobs. Notes under an old fence are dropped silently."""

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        """Return the results of these jobs, in order; None where a job has none."""

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        """Append a step to a job. False, without effect, unless the job is processing under this fence.

        The step is appended if its number is the next one; a step that the job has already is not kept again. In the
        same transaction, the first of the job's signals with the name `taking` is deleted. Raises `StepsFullError`,
        without effect, if the job has no room for the step (`core.values.job_limits`).
        """

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        """Return the next steps of a job, behind the one with this number; None unless it runs under this fence.

        A page ends at about `core.values.job_limits.PAGE_BYTES`: without its last step it has no more than that.
        """

    async def signal(self, id: str, name: str) -> Signal | None:
        """Return the first signal with this name that the job has not taken; None if there is none."""

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        """Return what people see of a job, as `core.jobs.durable_functions.seen_parts` says; nothing of an unknown job.

        Returns the newest `steps` steps and the first `signals` signals, and transfers no more than that.
        """

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        """Add jobs whose parent is this running job, as `add` does. The fence is checked in the same transaction.

        None, without effect, unless the parent is processing under this fence and was not asked to stop.
        """

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        """Append a signal to a live job, which is due at once if it waits for it (`core.jobs.durable_functions`).

        Returns the job's status before, None if there is no such job. A job that has ended takes no signal. Raises
        `SignalsFullError`, without effect, if a live job has no room for the signal (`core.values.job_limits`).
        """

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        """Return the flows that have jobs, newest first (by created_at, then id), behind a place in that order.

        A flow was created when the first of its jobs was. `worker` and `tags` are those of the last job of the call
        that began it, even if that job is gone. Of restored jobs that were created at the same time, it is the first.
        """

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        """Return the jobs of a flow, newest first (by created_at, then id), behind a place in that order.

        It reads no payloads and no results, so that a large flow can be shown again and again.
        """

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        """Queue up to `n` due jobs, scheduled or failed, by `run_at` (then id), and cancel up to `n` that have expired.

        A job that has expired and is live but not processing is cancelled as by `amend`, with the reason of
        `core.jobs.transitions`. Returns how many jobs it moved, when the next one is due or expires, and how many had
        expired.
        """

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        """Take up to `n` jobs from instances whose lease has ended (or that left), for `holder`, a live instance.

        They stay processing, under new fences: the caller decides what becomes of them, and finishes them. A late
        result from the old holder is rejected. A holder that dies in between is reaped in its turn. Each record's
        `instance` names the one that lost it, its `fence` is the new one, and everything else is as `get` returns it.
        An instance whose lease has ended and that holds nothing is forgotten: it has lost nothing, and may beat again.
        """

    async def prune(self, n: int, now: float) -> int:
        """Delete up to `n` jobs whose `keep_until` has passed, without a trace, and old events. Returns the number.

        A job that its flow still needs is put off, not deleted (`core.jobs.needs`), and counts like the rest.

        The newest `EVENTS_KEPT` of the events that people caused (`Event.by_person`) are kept, and as many of all
        others, so that neither crowds out the other. Up to `n` of each kind go at a time, oldest first; so if the
        result is less than `n`, nothing is left to prune.
        """

    async def leave(self, instances: Sequence[str], now: float) -> None:
        """Forget these instances, which are gone. Jobs they still hold can be reaped at once."""

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        """Take or renew one of `limit` places under this name until `now + ttl`. False if all are taken."""

    async def drop(self, name: str, holder: str) -> None:
        """Give the place back, if the holder has it."""

    # ── docs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        """Return all docs of these kinds, or of every kind if none is named, by kind and name."""

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        """Write these docs, each by itself, and return which of them were written, in order; no doc is given twice.

        A doc is written as version `doc.version + 1` if the stored version is `doc.version` (0: none).
        """

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        """Delete these docs, each by itself, and return which of them were deleted, in order; no doc is given twice.

        A doc is deleted if the stored version is `doc.version`; its body does not matter. Claims act as if it had never
        existed, and it can be made again as version 1.
        """

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        """Enable a worker, or disable it with a reason, as `core.workers.state` says. Returns its state."""

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:
        """Keep these jobs as they are, in place of any with their ids. None is processing, and no id occurs twice.

        Everything in a record stays, unmet needs included, except for `parked`, which the key's other jobs decide.
        Restored jobs do not count as added. A live job whose `unique_key` another live job has is left out.
        """

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        """Continue where another store ended, with these workers' states and the totals of these pools.

        Only the totals that grow are set. Returns a fence that is higher than every fence handed out here and than
        `fence`; those of later claims are higher still.
        """

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        """Return what `claim` looks at for these workers and their neighbours.

        None stands for all workers that have a state, gates or jobs.
        """

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        """Return how many jobs are ahead of each of these places in the queue of a pool, in order.

        Ahead of a place are the jobs of a lower rank, or of the same and a lower id; parked jobs do not count. Of jobs
        of a place's own worker up to `core.health.position.COUNTED_OWN` are counted, of each other worker's up to
        `COUNTED`, and of no more than `LANES` workers; beyond that it is `core.health.position.about`. A store that
        need not count is exact. The cost does not depend on how many jobs are parked, scheduled or have ended; many
        places in one queue cost little more than the last of them.
        """

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        """Return these jobs, with their attempts and unmet needs, in order; None where there is none.

        Steps and signals are read only if the jobs are to be `whole`.
        """

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        """Return the jobs that match, newest first (by created_at, then id, both descending), or in the reverse order.

        They come without their attempts, steps and signals, with no needs but the broken ones, and with no more than
        the first `core.values.job_limits.BEGINNING` bytes of their payloads and results, unless these are wanted
        `whole`. No more than that is transferred.

        `created_after` and `created_before` exclude the instant itself; `error` is case-sensitive. Paging after a
        deleted id returns nothing.
        """

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        """Return dead jobs in the order of `find`, each with little more than its error, so that many can be grouped.

        `behind` is a place in that order (`created_at`, `id`), whether or not a job is still there.
        """

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        """Apply one change to many jobs, and return what became of each, in order.

        `core.jobs.transitions` says which statuses allow the change, and what it makes of a job. A requeue is also
        rejected while another live job has the same `unique_key`, a discard while another job waits
        for this one. A job that is cancelled for good counts as an end of its worker (`core.workers.state.after_end`).
        """

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        """Store the same content in other bytes, and return for each job whether all of it was written, in order.

        Payload, result, error, progress, each attempt, step and signal become those of `after`, each only where it is
        still that of `before`; a missing value stays missing. Nothing else changes, whatever the job's status: not its
        fence, not its counts, and no topic rings.
        """

    async def stats(self, now: float) -> Stats:
        """Return the numbers, without scanning ended jobs.

        `queued` includes parked jobs; the head of the queue is the first job by rank that is not parked. `failed`
        counts accepted outcomes that say failed or dead; `run_seconds` sums `ended_at - started_at` over these and the
        completed ones, `wait_seconds` sums their `waited`. `marks` counts the marks of every accepted outcome for
        its pool, and those that name a worker for that as well (`Stats.count_marks`).
        """

    async def instances(self) -> list[InstanceRecord]:
        """Return all instances that have beaten and neither left nor were reaped."""

    async def record(self, events: Sequence[Event]) -> None:
        """Keep events, numbered upwards in one sequence for all of them."""

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """Return the newest `limit` events with a number above `after` (and below `before`), oldest first."""

    def listen(self, topics: Collection[str]) -> Bell:
        """Return a bell for these topics. Call it from the event loop that will wait."""

    async def check(self) -> "dict[str, Finding]":
        """Return what `shiftwork doctor` reports, by name: version, durability in plain words, integrity.

        A finding that can cost a job has a severity and a remedy. "integrity" is "ok", or says what is wrong and names
        the docs that cannot be decoded. "schema version" is a number, where the store has one.
        """
