"""The store on a Redis or Valkey server: it implements `shiftwork.store.protocol` for any number of machines.

This file is the entry point: each method runs one script, atomically, on the server. A script is in the Lua file of its
name; nothing is decided here.
"""

import asyncio
import secrets
import weakref
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import msgpack

from shiftwork.core.health.health_values import Finding
from shiftwork.core.health.position import LANES, Ahead, QueuePlace
from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.jobs.transitions import EXPIRED, STATUSES
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import EVENTS_KEPT, Event
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Change, Finished, JobFilter, Outcome
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import INSTANCES_KEPT_SECONDS, Beat, InstanceRecord, Orders
from shiftwork.core.observing.pool_stats import PoolStats, Stats
from shiftwork.core.values.beginnings import HEAD, TAIL, read_signal
from shiftwork.core.values.job_limits import PAGE_BYTES, SHOWN_STEPS, SIGNALS, STEPS, signals_full, steps_full
from shiftwork.core.workers.admission import Facts
from shiftwork.store.bells import Bells
from shiftwork.store.protocol import Bell, Claims, Promoted
from shiftwork.store.redis import add, claim, doctor, durable, facts, find, finish, flows, lead, lease, restore, stats
from shiftwork.store.redis.add import AddBatcher, BatchReply, NewRows, check_size, in_parts
from shiftwork.store.redis.amend import amended, amendment, rewrites_of
from shiftwork.store.redis.docs import ClaimView, claim_view, stored
from shiftwork.store.redis.events import newest, read_events
from shiftwork.store.redis.find import FoundJobs, criteria, decoded
from shiftwork.store.redis.lua import NO_ROOM, STEP_FULL, STEP_KEPT
from shiftwork.store.redis.rows import fields
from shiftwork.store.redis.server.address import RedisAddress
from shiftwork.store.redis.server.bell_listener import BellListener
from shiftwork.store.redis.server.blocking_line import BlockingLine
from shiftwork.store.redis.server.client import RedisClient, RedisConnection, SentCommand, seconds
from shiftwork.store.redis.upgrade import agree_on_version
from shiftwork.store.worker_digest import digest


class RedisStore:
    """A store on a server. All keys of a namespace have one hash tag, so a cluster spreads namespaces over nodes."""

    def __init__(self, address: RedisAddress, *, namespace: str = "default") -> None:
        self.url: str = address.url
        self._address = address
        self._keep = address.keep
        self._prefix = f"{{shiftwork:{quote(namespace, safe='')}}}:".encode()
        self._origin = secrets.token_hex(6).encode()
        self._bells = Bells()
        self._listener = BellListener(address, self._prefix, self._origin, self._bells)
        self._client = RedisClient(address, self._prefix, on_loss=self._bells.ring_all, on_move=self._listener.move)
        self._batchers: weakref.WeakKeyDictionary[RedisConnection, AddBatcher] = weakref.WeakKeyDictionary()
        self._line = BlockingLine(address, self._prefix, "add_one_fast")
        self._is_open = False
        weakref.finalize(self, self._listener.stop).atexit = False
        weakref.finalize(self, self._line.close).atexit = False

    def _run(self, script: str, *arguments: Any, behind: Iterable[bytes] = ()) -> Awaitable[Any]:
        """Run a script. It is sent when this returns."""
        return self._client.run(script, msgpack.encode(arguments), self._origin, *behind)

    async def _write(self, script: str, *arguments: Any, behind: Iterable[bytes] = ()) -> Any:
        """Run a script whose reply begins with the topics it rang, ring them here, and return the rest of the reply."""
        return self._ring(await self._run(script, *arguments, behind=behind))

    def _ring(self, reply: list[Any]) -> list[Any]:
        topics, *rest = reply
        if topics:
            self._bells.ring(topics.decode().split("\n"))
        return rest

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        if self._is_open:
            return
        self._client.reopen()
        try:
            listening = asyncio.shield(asyncio.wrap_future(self._listener.start()))
            first = self._run("get", [])  # a server that denies scripts fails here
            agreed = agree_on_version(self._client, self._prefix, self._origin, self.url)
            await asyncio.gather(agreed, first, listening)
        except BaseException:
            await self.close()
            raise
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        await asyncio.to_thread(self._listener.stop)
        await asyncio.to_thread(self._line.close)
        await self._client.close()

    async def server_time(self) -> float:
        return seconds(await self._client.ask("TIME"))

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, new: Sequence[NewJob], now: float) -> list[Added]:
        connection = self._client.connection()
        batcher = self._batcher(connection)
        if len(new) == 1:
            arguments = add.one_plain(new[0], now) if batcher.idle else None
            if arguments is not None and await self._add_alone(new[0].pool, arguments, connection, batcher):
                return [Added(new[0].id, created=True)]
            return add.answered(new, await batcher.add(*add.new_jobs(new, now)))
        parts = list(in_parts(new))
        if len(parts) > 1 and any(job.flow is not None or job.needs for job in new):
            check_size(new)
        sent = [batcher.add(*add.new_jobs(part, now)) for part in parts]  # all, before the first reply is awaited
        replies = await asyncio.gather(*sent)
        return [one for part, reply in zip(parts, replies, strict=True) for one in add.answered(part, reply)]

    async def _add_alone(
        self, pool: str, arguments: Sequence[bytes], connection: RedisConnection, batcher: AddBatcher
    ) -> bool:
        """Add a job by a script of its own. False if its id is taken: then nothing has happened."""
        sent = self._client.send("add_one_fast", self._origin, *arguments, at_once=True, connection=connection)
        topics = (f"pool:{pool}",)
        self._bells.ring_here(topics)  # a claim of this event loop follows on the same connection
        if not await batcher.add_alone(sent):
            return False
        sent_twice = sent.reply.exception() is not None
        (self._bells.ring if sent_twice else self._bells.ring_elsewhere)(topics)
        return True

    def add_blocking(self, new: Sequence[NewJob], now: float) -> list[Added] | None:
        arguments = add.one_plain(new[0], now) if len(new) == 1 and self._is_open else None
        if arguments is None or not self._line.run((self._origin, *arguments)):
            return None
        self._bells.ring((f"pool:{new[0].pool}",))
        return [Added(new[0].id, created=True)]

    def _batcher(self, connection: RedisConnection) -> AddBatcher:
        batcher = self._batchers.get(connection)
        if batcher is None:
            batcher = AddBatcher(self._client, connection, send=self._send_jobs, receive=self._ring)
            self._batchers[connection] = batcher
        return batcher

    def _send_jobs(self, rows: NewRows, payloads: Sequence[bytes], reply: BatchReply) -> SentCommand:
        arguments, behind = add.added_together(rows, payloads)
        return self._client.send("add", arguments, self._origin, *behind, future=reply, at_once=reply.at_once)

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        workers_digest = digest(workers)
        wanted = {"digest": workers_digest} if workers_digest else list(workers)
        next_at, taken = await self._write("claim", now, instance, pool, n, wanted, edition or False)
        if next_at == b"unknown":
            told = {"digest": workers_digest, "names": list(workers)}
            next_at, taken = await self._write("claim", now, instance, pool, n, told, edition or False)
        if next_at == b"stale":
            return Claims([], stale=True)
        found = FoundJobs()
        claimed = claim.claimed(taken, found.broken)
        await self._bury(found, now, pool)
        return Claims(claimed, _optional(next_at))

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        plain, behind = finish.outcomes(outcomes)
        accepted, disabled = await self._write(
            "finish", now, len(outcomes), self._keep is not None, plain, behind=behind
        )
        return Finished([one == 1 for one in accepted], [name.decode() for name in disabled])

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        signs = [(beat.instance, beat.pool) for beat in beats]
        return lease.orders(*await self._run("beat", now, ttl, signs, behind=map(msgpack.encode, beats)))

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        behind = (msgpack.encode(note.progress) for note in notes)
        await self._run("note", [(note.id, note.fence) for note in notes], behind=behind)

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        found: list[bytes | None] = await self._run("results", ids) if ids else []
        return found

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        room = (STEPS.number, STEPS.bytes)
        arguments = (id, fence, step.number, len(step.result), taking or False, *room)
        kept = await self._run("keep_step", *arguments, behind=(msgpack.encode(step),))
        if kept == STEP_FULL:
            raise steps_full(id)
        return bool(kept == STEP_KEPT)

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        answer = await self._run("steps", id, fence, after, PAGE_BYTES)
        return durable.step_page(*answer) if answer else None

    async def signal(self, id: str, name: str) -> Signal | None:
        found = await self._run("signal", id, name)
        return None if found is None else read_signal(found)

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        return durable.seen_parts(*await self._run("parts", id, steps, signals, HEAD, TAIL))

    async def extend(self, parent: str, fence: int, new: Sequence[NewJob], now: float) -> list[Added] | None:
        check_size(new)
        arguments, behind = add.added_together(*add.new_jobs(new, now), (parent, fence))
        [answers] = self._ring(await self._client.run("add", arguments, self._origin, *behind))
        return None if answers is None else add.answered(new, answers)

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        room = (SIGNALS.number, SIGNALS.bytes)
        arguments = (now, id, signal.name, len(signal.value), *room)
        [status] = await self._write("send", *arguments, behind=(msgpack.encode(signal),))
        if status == NO_ROOM:
            raise signals_full(id)
        return STATUSES[status] if status >= 0 else None

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        return flows.read_flows(await self._run("flows", behind, limit))

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        return flows.read_members(await self._run("members", flow, behind, limit))

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        return lead.promoted(*await self._write("promote", now, n, EXPIRED))

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        [taken] = await self._write("reap", now, holder, n)
        jobs, found = lead.reaped(taken)
        await self._bury(found, now)
        return jobs

    async def prune(self, n: int, now: float) -> int:
        pruned: int = await self._run("prune", now, n, self._keep, EVENTS_KEPT, now - INSTANCES_KEPT_SECONDS, POSTPONED)
        return pruned

    async def leave(self, instances: Sequence[str], now: float) -> None:  # noqa: ARG002 - other stores need the time
        await self._write("leave", instances)

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        return bool(await self._run("hold", now, name, holder, limit, ttl))

    async def drop(self, name: str, holder: str) -> None:
        await self._run("drop", name, holder)

    # ── docs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        if not kinds:
            kinds = tuple(name.decode() for name in await self._client.ask("SMEMBERS", self._prefix + b"kinds"))
        wanted = sorted({*kinds})
        found = await asyncio.gather(*(self._client.ask("HGETALL", self._prefix + b"d:" + k.encode()) for k in wanted))
        return [doc for kind, flat in zip(wanted, found, strict=True) for doc in stored(kind, flat)]

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        return await self._put(docs, [claim_view(doc) for doc in docs], erase=False)

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        return await self._put(docs, [(False, b"")] * len(docs), erase=True)

    async def _put(self, docs: Sequence[Doc], views: Sequence[ClaimView], *, erase: bool) -> list[bool]:
        heads = [(doc.kind, doc.name, doc.version, value) for doc, (value, _) in zip(docs, views, strict=True)]
        bodies = [part for doc, (_, gates) in zip(docs, views, strict=True) for part in (doc.body, gates)]
        [written] = await self._write("put", heads, erase, behind=bodies)
        return [one == 1 for one in written]

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        [state] = await self._write("switch", now, worker, enabled, reason)
        return facts.read_state(worker, state)

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:  # noqa: ARG002 - other stores need the time
        given, behind = restore.whole_jobs(jobs)
        await self._write("restore", given, behind=behind)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        [above] = await self._write("take_over", *restore.taken_over(states, totals), fence)
        return int(above)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        return facts.read_facts(await self._run("survey", now, False if workers is None else list(workers)))

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        wanted = [(place.worker, place.rank, place.id) for place in places]
        return find.ahead(await self._run("ahead", pool, wanted, LANES))

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        answer = await self._run("get", ids, whole)
        found = FoundJobs((id, fields(flat)) for id, flat in zip(ids, answer, strict=True) if flat)
        records = {record.id: record for record in decoded(found, whole=True)}
        await self._bury(found, 0.0)
        return [records.get(id) for id in ids]

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        records: list[JobRecord] = []
        behind: Any = wanted.after
        while len(records) < wanted.limit:
            answer, behind = await self._run("find", *criteria(wanted, behind, wanted.limit - len(records)))
            found = FoundJobs((id.decode(), fields(flat)) for id, flat in answer)
            records += decoded(found, whole=False)
            await self._bury(found, 0.0)
            if not behind:
                break
            behind = (float(behind[0]), behind[1].decode())
        return records

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        return find.dead(await self._run("dead", behind, limit))

    async def _bury(self, found: FoundJobs, now: float, pool: str = "") -> None:
        """Move unreadable jobs to the dead-letter queue."""
        if found.broken:
            await self._write("bury", now, pool, list(found.broken.items()))

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        arguments, behind = amendment(change, ids)
        [answers] = await self._write("amend", now, *arguments, behind=behind)
        return amended(ids, answers)

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        given, behind = rewrites_of(rewrites)
        return [one == 1 for one in await self._run("rewrite", given, behind=behind)]

    async def stats(self, now: float) -> Stats:  # noqa: ARG002 - the counters do not depend on it
        return stats.read_stats(await self._run("stats"))

    async def instances(self) -> list[InstanceRecord]:
        return lease.read_instances(await self._client.ask("HGETALL", self._prefix + b"beats"))

    async def record(self, events: Sequence[Event]) -> None:
        if events:
            await self._run("record", [event.by_person for event in events], behind=map(msgpack.encode, events))

    async def try_room(self) -> None:
        await self._run("record", [])  # a full server rejects this script whatever it records

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        return read_events(await self._client.ask(*newest(self._prefix + b"events", after, limit, before)))

    def listen(self, topics: Collection[str]) -> Bell:
        return self._bells.listen(topics)

    async def check(self) -> dict[str, Finding]:
        return await doctor.check(self._client, self._address, self._prefix)


def _optional(number: bytes) -> float | None:
    return float(number) if number else None
