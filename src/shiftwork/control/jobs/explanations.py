"""Why a job is not running: the questions to the store. The words are in `views.explanation`."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.estimates import Estimates, QueueFacts, hosts
from shiftwork.core.health.position import position
from shiftwork.core.health.start_estimate import along
from shiftwork.core.jobs.needs import lost_jobs, stranding_jobs
from shiftwork.core.jobs.run_options import policy
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.observing.beats import Beat
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Facts, Head, Lane, Obstacle, explain
from shiftwork.core.workers.state import reason_of
from shiftwork.errors import UnknownWorkerError
from shiftwork.handles.job import Unfinished
from shiftwork.sentences import sentence, series
from shiftwork.store.flow_failures import jobs_before
from shiftwork.views.explanation import (
    Estimate,
    Explanation,
    explanation_of,
    is_suspended,
    need_wait,
    no_estimate,
    suspension,
    unfinished_text,
)
from shiftwork.views.formats import clock_time

MOST_PLACED: Final = 500
"""How many jobs of a list get a position."""
MOST_ESTIMATED: Final = 10
"""How many workers of a list get estimates of when their jobs start: those with the most jobs in it."""
MOST_NEEDS_READ: Final = 1_000
"""How many of the jobs that a job waits for are looked at."""


class Explanations(CommandFamily):
    """Explains where jobs are, and whether they could run at all."""

    def __init__(self, services: ControlServices) -> None:
        super().__init__(services)
        self._estimates = Estimates(services)

    async def of(self, record: JobRecord) -> Explanation:
        """Return why the job is not running and when it will start, or how it ended."""
        waits, estimate = await self._waits_and_estimate(record)
        return explanation_of(record, waits, estimate, self._now())

    async def listed(self, records: Sequence[JobRecord]) -> dict[str, Estimate]:
        """Return where the queued jobs of a list are, by id, and when they start, about.

        A position is that of the job's explanation. In the queue of one worker only the first and the last job of the
        list are estimated, and those between them by their positions. Nothing is said of a job that waits for others
        with its concurrency key, nor of more jobs than `MOST_PLACED`: each would cost a search of its own.
        """
        queued = [job for job in records if job.status is JobStatus.QUEUED and not job.parked][:MOST_PLACED]
        if not queued:
            return {}
        lines: dict[tuple[str, str], list[tuple[JobRecord, QueueFacts]]] = {}
        for record, seen in zip(queued, await self._estimates.look(queued), strict=True):
            lines.setdefault((record.pool, record.worker), []).append((record, seen))
        longest = sorted(lines.values(), key=lambda line: -len(line))
        found: dict[str, Estimate] = {}
        for n, line in enumerate(longest):
            found |= await self._along(line, estimated=n < MOST_ESTIMATED)
        return found

    async def _along(self, line: list[tuple[JobRecord, QueueFacts]], *, estimated: bool) -> dict[str, Estimate]:
        """Return where jobs of one worker in one pool are, and when they start if that is to be estimated."""
        line.sort(key=lambda one: (one[0].rank, one[0].id))
        places = [position(seen.ahead, seen.stats, record.pool) for record, seen in line]
        ends = [line[0], line[-1]] if len(line) > 1 else line
        known = [(await self._queued_waits(*one))[1].estimate for one in ends] if estimated else [None]
        seconds = along([place.n for place in places], known[0], known[-1])
        return {
            record.id: Estimate(position=place.n, position_exact=place.exact, estimate=at)
            for (record, _), place, at in zip(line, places, seconds, strict=True)
        }

    async def unfinished(self, record: JobRecord) -> Unfinished:
        """Return what a job that has not ended is doing, for the error of a caller that waits for its result."""
        waits, estimate = await self._waits_and_estimate(record)
        config = await self._config(record.worker)
        most = None if config is None else policy(config, record.options).max_retries + 1
        text = unfinished_text(record, waits, estimate, attempts=most, now=self._now())
        return Unfinished(text, unserved=any(wait.code == "unserved" for wait in waits))

    async def _config(self, worker: str) -> WorkerConfig | None:
        here = self._registry.workers.get(worker)
        if here is not None:
            return here.config
        try:
            return (await self._definitions.worker(worker)).config
        except UnknownWorkerError:
            return None

    async def is_served(self, worker: str, pool: str) -> bool:
        """Return whether a live instance of this pool knows this worker."""
        return any(beat.pool == pool and worker in beat.workers for beat in await self._beats())

    async def _beats(self) -> list[Beat]:
        store, now = await self._access.open(), self._now()
        return [known.beat for known in await store.instances() if known.expires_at > now]

    async def blocked_for_good(self, worker: str) -> str | None:
        """Return why a run would wait for something that does not happen by itself; None if it would not."""
        store, now = await self._access.open(), self._now()
        facts = await store.survey([worker], now)
        for wait in explain(worker, Head(0.0, "", now), facts, now):
            if wait.code == "paused":
                return series("; ", [wait.why, sentence("resume it first")])
            if wait.code == "dependency":
                why = await self._why_idle(wait.by, facts)
                if why is not None:
                    return sentence("{why}, and {because}", why=wait.why, because=why)
        return None

    async def _why_idle(self, dependency: str, facts: Facts) -> str | None:
        """Return why a dependency will not run by itself; None if it runs, or will."""
        lane = facts.lanes.get(dependency) or Lane(state=WorkerState(worker=dependency))
        gate = facts.gates.get(dependency)
        if lane.running:
            return None
        if not lane.state.enabled:
            return sentence("is disabled: {reason}; enable it first", reason=reason_of(lane.state))
        if gate is None or gate.pool not in facts.served:
            return sentence("no running process serves it")
        config = await self._config(dependency)
        if config is not None and config.execution_mode is WorkerExecutionMode.TRIGGERED and not lane.live:
            return sentence("nothing has triggered it")
        return None

    async def _waits_and_estimate(self, record: JobRecord) -> tuple[list[Obstacle], Estimate]:
        if record.status is JobStatus.WAITING:
            return await self._needs(record), no_estimate(None, sentence("it waits for other jobs of its flow"))
        if record.status not in {JobStatus.QUEUED, JobStatus.SCHEDULED, JobStatus.FAILED}:
            return [], Estimate()
        pause = await self._suspension(record)
        if pause is not None and pause.code == "signal":
            return [pause], no_estimate(None, sentence("its function waits for a signal"))
        [seen] = await self._estimates.look([record])
        if record.status is JobStatus.QUEUED:
            return await self._queued_waits(record, seen)
        head = Head(record.rank, record.id, record.since)
        waits = explain(record.worker, head, seen.facts, max(seen.now, record.run_at))
        due = pause or self._due(record, seen)
        return [due], await self._estimates.of(record, [due, *waits], seen)

    async def _queued_waits(self, record: JobRecord, seen: QueueFacts) -> tuple[list[Obstacle], Estimate]:
        """Return what a queued job waits for, and when it starts."""
        waits = explain(record.worker, Head(record.rank, record.id, record.since), seen.facts, seen.now)
        if record.parked:
            waits.insert(0, await self._key_wait(record))
        if not waits:
            waits = [await self._jobs_ahead(record, seen)]
        elif _own_ahead(record, seen):
            waits.append(_behind(record, seen))
        return waits, await self._estimates.of(record, waits, seen)

    def _due(self, record: JobRecord, seen: QueueFacts) -> Obstacle:
        """Return that a job waits for its time; or if that has passed, what keeps it from the queue."""
        due = clock_time(record.run_at)
        if record.run_at > seen.now:
            return Obstacle("later", record.worker, sentence("due at {clock}", clock=due), until=record.run_at)
        if seen.beats:
            return Obstacle(
                "later", record.worker, sentence("due since {clock}; the leader queues it within seconds", clock=due)
            )
        why = sentence(
            "due since {clock}, but no node is running that queues it in {store}: start one with `shiftwork run`",
            clock=due,
            store=self._access.url,
        )
        return Obstacle("unserved", record.pool, why)

    async def _jobs_ahead(self, record: JobRecord, seen: QueueFacts) -> Obstacle:
        """Return which jobs go before one that no gate holds back; or that no process would run it."""
        if any(beat.pool == record.pool and record.worker in beat.workers for beat in seen.beats):
            return _behind(record, seen)
        if not any(hosts(beat, record.pool) for beat in seen.beats) or any(
            beat.pool == record.pool for beat in seen.beats
        ):
            why = sentence(
                "no running process has worker {worker} in pool {pool} of {store}: start one with `shiftwork run`",
                worker=record.worker,
                pool=record.pool,
                store=self._access.url,
            )
            return Obstacle("unserved", record.pool, why)
        why_not = await self._estimates.no_more_slots(record.pool, seen.beats)
        if why_not is not None:
            return Obstacle("unserved", record.pool, why_not)
        return Obstacle(
            "queue", record.pool, sentence("pool {pool} has no slots yet; a node starts one", pool=record.pool)
        )

    async def _suspension(self, record: JobRecord) -> Obstacle | None:
        """Return what the function of a handed-back job waits for; None if the job was not handed back."""
        if record.status is not JobStatus.SCHEDULED:
            return None
        store = await self._access.open()
        steps = (await store.parts(record.id, steps=1, signals=0)).steps
        last = steps[-1] if steps else None
        return suspension(record, last, self._now()) if is_suspended(record, last) else None

    async def _needs(self, record: JobRecord) -> list[Obstacle]:
        """Return what a job waits for that needs other jobs, and the dead and cancelled jobs that strand it."""
        store = await self._access.open()
        record = (await store.get([record.id]))[0] or record
        ids = [need.id for need in record.unmet][:MOST_NEEDS_READ]
        needed = await store.find(JobFilter(ids=tuple(ids), limit=MOST_NEEDS_READ)) if ids else []
        broken = stranding_jobs(record)
        lost = lost_jobs(broken, await jobs_before(store, broken)) if broken else []
        return [need_wait(record, needed, lost)]

    async def _key_wait(self, record: JobRecord) -> Obstacle:
        store = await self._access.open()
        same = JobFilter(worker=record.worker, key=record.key)
        running = await store.find(replace(same, status=(JobStatus.PROCESSING,)))
        queued = [] if running else await store.find(replace(same, status=(JobStatus.QUEUED,)))
        ahead = running or [other for other in queued if not other.parked]
        by = sentence("job {id}", id=ahead[0].id) if ahead else sentence("another job")
        since = ahead[0].started_at if running else None
        why = sentence("{job} with the same key {key} goes first", job=by, key=f"{record.key!r}")
        if running:
            why = sentence("{job} with the same key {key} is running", job=by, key=f"{record.key!r}")
        return Obstacle("concurrency_key", record.key or "", why, since=since)


def _own_ahead(record: JobRecord, seen: QueueFacts) -> int:
    """Return how many jobs of its own worker are ahead of a job; a parked one waits for others with its key first."""
    return 0 if record.parked else seen.ahead.lanes.get(record.worker, 0)


def _behind(record: JobRecord, seen: QueueFacts) -> Obstacle:
    own, total = _own_ahead(record, seen), sum(seen.ahead.lanes.values())
    jobs, pool, worker = counted(total, "job"), record.pool, record.worker
    if not position(seen.ahead, seen.stats, record.pool).exact:
        jobs = sentence("about {n}", n=jobs)
    if own == total == 1:
        why = sentence("{jobs} of {worker} is ahead of it in pool {pool}", jobs=jobs, worker=worker, pool=pool)
    elif own == total and own:
        why = sentence("{jobs} of {worker} are ahead of it in pool {pool}", jobs=jobs, worker=worker, pool=pool)
    elif own:
        why = sentence(
            "{jobs} are ahead of it in pool {pool}, {n} of them of {worker}",
            jobs=jobs,
            pool=pool,
            n=f"{own:,}",
            worker=worker,
        )
    elif total:
        others = sentence("{jobs} of other workers are ahead of it in pool {pool}", jobs=jobs, pool=pool)
        if total == 1:
            others = sentence("{jobs} of other workers is ahead of it in pool {pool}", jobs=jobs, pool=pool)
        why = series("; ", [sentence("next in line for {worker}", worker=worker), others])
    else:
        why = sentence(
            "next in line for {worker}; the next free slot of pool {pool} runs it", worker=record.worker, pool=pool
        )
    return Obstacle("queue", record.pool, why)
