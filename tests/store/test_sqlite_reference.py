"""Whatever is done, in whatever order, the SQLite store answers as the reference does, and its counters count right."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.model.change import Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.doc import Doc, PoolDoc
from shiftwork.core.model.job import Attempt, Claimed, JobPriority, JobStatus, NewJob, Progress, ProgressNote
from shiftwork.core.model.outcome import Outcome
from shiftwork.core.model.parts import Need, Signal, Step, Wait
from shiftwork.core.observing.beats import Beat, Orders
from shiftwork.core.workers.admission import Gates, RateLimit
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.memory import MemoryStore
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file.session import SqliteSession
from tests.store.conformance.acts import NOW, add, claim_one, finish, job, outcome

WORKERS = ("a", "b", "c", "d")
POOLS = ("p", "q")
STEPS = 250


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "shiftwork.db"))
    await opened.open()
    yield opened
    await opened.close()


class Both:
    """The store and the reference, to which the same is done."""

    def __init__(self, store: SqliteStore, seed: int) -> None:
        self.store = store
        self.reference = MemoryStore()
        self.random = random.Random(seed)
        self.now = NOW
        self.ids: list[str] = []
        self.held: list[Claimed] = []
        self.versions: dict[tuple[str, str], int] = {}

    async def do(self, method: str, *args: Any, **more: Any) -> Any:
        """Call both; their answers are the same."""
        got = await getattr(self.store, method)(*args, **more)
        wanted = await getattr(self.reference, method)(*args, **more)
        if isinstance(got, Orders):  # each reads its own clock
            got, wanted = replace(got, server_time=0.0), replace(wanted, server_time=0.0)
        assert got == wanted, method
        return got

    def some(self, n: int) -> list[str]:
        return self.random.sample(self.ids, min(n, len(self.ids))) + ["nobody"] * (self.random.random() < 0.1)

    # ── what may happen ──────────────────────────────────────────────────────────────────────────────────────────

    async def add(self) -> None:
        chance = self.random
        jobs = [
            NewJob(
                id=f"{chance.randrange(400):03}",
                worker=chance.choice(WORKERS),
                pool=chance.choice(POOLS),
                payload=bytes(chance.choice((3, 3, 3, 3_000))),
                run_at=self.now + chance.choice((-1.5, 0.0, 0.0, 2.5, 7.25)),
                priority=chance.choice(list(JobPriority)),
                head_start=chance.choice((0.0, 0.5, 3.0)),
                unique_key=chance.choice((None, None, "u", "v")),
                key=chance.choice((None, None, "k", "l")),
                key_limit=chance.choice((1, 2)),
                cause=chance.choice(("enqueued", "scheduled")),
                trace=chance.choice((None, "trace")),
                expires_at=chance.choice((None, None, None, self.now + 3.0)),
                tags=chance.choice(((), (), ("red",), ("red", "blue"))),
                flow=chance.choice((None, None, "f", "g", "h")),
                needs=tuple(Need(id, chance.random() < 0.5) for id in self.some(2)) if chance.random() < 0.3 else (),
                parent=chance.choice((None, None, *(one.id for one in self.held[:1]))),
                options=chance.choice((None, b"own")),
            )
            for _ in range(chance.randrange(1, 8))
        ]
        answers = await self.do("add", jobs, self.now)
        self.ids += [answer.id for answer in answers if answer.created]

    async def claim(self) -> None:
        chance = self.random
        workers = chance.sample(WORKERS, 3)
        instance = chance.choice(("i", "j", "gone"))
        claims = await self.do("claim", instance, chance.choice(POOLS), chance.randrange(1, 6), self.now, workers)
        self.held += claims.jobs

    async def finish(self) -> None:
        self.random.shuffle(self.held)
        ending, self.held = self.held[:4], self.held[4:]
        outcomes = [self.outcome(claimed) for claimed in ending]
        await self.do("finish", [*outcomes, *outcomes[:1]], self.now)

    def outcome(self, claimed: Claimed) -> Outcome:
        chance = self.random
        status = chance.choice(
            (JobStatus.COMPLETED, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.QUEUED, JobStatus.DEAD)
        )
        verdict = {JobStatus.COMPLETED: "success", JobStatus.QUEUED: "neutral"}.get(status, "failure")
        failed = verdict == "failure"
        return outcome(
            claimed,
            status,
            fence=claimed.fence - (chance.random() < 0.1),
            ended_at=self.now + 0.25,
            run_at=self.now + chance.choice((-1.0, 0.0, 3.5)),
            attempt=claimed.attempt,
            crashes=claimed.crashes + (chance.random() < 0.2),
            verdict=verdict,
            disable_after=chance.choice((None, 3)) if failed else None,
            result=None if failed else chance.choice((None, b"result", bytes(2_000))),
            error="it broke" if failed else None,
            report=self.report(claimed) if failed else None,
            keep_until=chance.choice((None, self.now + 5.0)),
            wait=chance.choice((None, Wait("go", 1))) if status is JobStatus.QUEUED else None,
        )

    def report(self, claimed: Claimed) -> Attempt:
        return Attempt(number=claimed.attempt, started_at=1.0, ended_at=2.0, kind="raised", error="it broke")

    async def beat(self) -> None:
        beats = [
            Beat(instance=name, node="n", pool=pool, slots=3, busy=self.random.randrange(3))
            for name, pool in (("i", "p"), ("j", "q"), ("r", "p"))
            if self.random.random() < 0.8
        ]
        await self.do("beat", beats, 4.0, self.now)
        await self.do("instances")

    async def reap(self) -> None:
        await self.do("beat", [Beat(instance="r", node="n", pool="p", slots=1)], 4.0, self.now)
        reaped = await self.do("reap", "r", 5, self.now)
        self.held += [record.claimed() for record in reaped]

    async def leave(self) -> None:
        await self.do("leave", [self.random.choice(("i", "j", "gone"))], self.now)

    async def promote(self) -> None:
        await self.do("promote", self.random.randrange(1, 6), self.now)

    async def prune(self) -> None:
        await self.do("prune", 5, self.now)

    async def amend(self) -> None:
        change = self.random.choice(
            (
                Cancel(reason="changed my mind"),
                Requeue(run_at=self.now + self.random.choice((0.0, 3.0)), payload=self.random.choice((None, b"new"))),
                Requeue(run_at=self.now, payload=bytes(2_000), key="k"),
                Discard(),
            )
        )
        await self.do("amend", self.some(4), change, self.now)

    async def note(self) -> None:
        notes = [ProgressNote(one.id, one.fence, Progress(1.0, 2.0, "half")) for one in self.held[:2]]
        await self.do("note", notes)

    async def step(self) -> None:
        for one in self.held[:2]:
            step = Step(self.random.randrange(1, 3), "charge", bytes(self.random.choice((1, 3_000))), 1.0, 2.0)
            await self.do("keep_step", one.id, one.fence, step)

    async def send(self) -> None:
        for id in self.some(3):
            await self.do("send", id, Signal(self.random.choice(("go", "stop")), b"v", self.now), self.now)

    async def switch(self) -> None:
        enabled = self.random.random() < 0.7
        await self.do("switch", self.random.choice(WORKERS), enabled=enabled, reason="because", now=self.now)

    async def put(self) -> None:
        chance = self.random
        kind, name, body = chance.choice(
            (
                ("gates", "a", Gates(worker="a", pool="p", conflicts=("b",))),
                ("gates", "b", Gates(worker="b", pool="q", conflicts=("a",), max_running=2)),
                ("gates", "b", Gates(worker="b", pool="q")),
                ("gates", "c", Gates(worker="c", pool="p", after={"a": "done"}, rate=RateLimit(5, 10.0))),
                ("gates", "d", Gates(worker="d", pool="p", breaker="x")),
                ("breaker", "x", BreakerState(open=True, until=self.now + 3.0)),
                ("breaker", "x", BreakerState()),
                ("pool", "p", PoolDoc(paused=chance.random() < 0.3)),
            )
        )
        version = self.versions.get((kind, name), 0)
        doc = Doc(kind, name, msgpack.encode(body), version)
        assert await self.do("put", [doc]) == [True]
        self.versions[kind, name] = version + 1
        await self.do("docs", kind)

    async def look(self) -> None:
        chance = self.random
        wanted = JobFilter(
            status=chance.choice((None, tuple(chance.sample(list(JobStatus), 2)), (JobStatus.QUEUED,))),
            worker=chance.choice((None, *WORKERS)),
            pool=chance.choice((None, None, *POOLS)),
            key=chance.choice((None, None, "k")),
            unique_key=chance.choice((None, None, "u")),
            instance=chance.choice((None, None, None, "i")),
            error=chance.choice((None, None, None, "broke", "BROKE")),
            created_after=chance.choice((None, None, self.now - 10)),
            created_before=chance.choice((None, None, self.now)),
            ids=chance.choice((None, None, tuple(self.some(20)))),
            after=chance.choice((None, None, *self.some(1))),
            tag=chance.choice((None, None, "red", "none")),
            flow=chance.choice((None, None, "f", "none")),
            limit=chance.choice((0, 3, 100)),
        )
        await self.do("find", wanted)

    async def pass_time(self) -> None:
        self.now += self.random.choice((0.0, 0.5, 2.0))

    async def compare(self) -> None:
        """All that can be seen is the same."""
        await self.do("get", self.ids)
        await self.do("flows")
        await self.do("flows", self.random.choice([(self.now - 5.0, "g"), None]), 1)
        await self.do("results", self.ids)
        await self.do("stats", self.now)
        await self.do("survey", None, self.now)
        await self.do("survey", self.random.sample(WORKERS, 1), self.now)


ACTS = (
    *("add", "claim", "finish", "promote", "amend", "look", "pass_time") * 2,
    *("beat", "reap", "leave", "prune", "note", "step", "send", "switch", "put"),
)


@pytest.mark.parametrize("seed", range(12))
async def test_it_answers_as_the_reference_does(store: SqliteStore, seed: int) -> None:
    both = Both(store, seed)
    for step in range(STEPS):
        await getattr(both, both.random.choice(ACTS))()
        if step % 10 == 0:
            await both.compare()
    await both.compare()
    assert await store._read(miscounted) == []
    assert await store._read(left_over) == []
    assert (await store.check())["integrity"].text == "ok"


def miscounted(session: SqliteSession) -> list[Any]:
    """Lanes whose counters do not say what a count of the jobs says."""
    columns = ("scheduled", "retrying", "waiting", "queued", "processing", "completed", "dead", "cancelled")
    counts = ", ".join(f"sum(status = {number})" for number in range(len(columns)))
    counted = session.db.execute(f"SELECT pool, worker, {counts} FROM jobs GROUP BY pool, worker").fetchall()
    there = session.db.execute(f"SELECT pool, worker, {', '.join(columns)} FROM lanes").fetchall()
    counts = ", ".join(f"sum(status {which})" for which in ("= 0", "= 1", "= 2", "IN (3, 4)", "= 5", "= 6", "= 7"))
    in_flows = session.db.execute(f"SELECT flow, {counts} FROM jobs WHERE flow IS NOT NULL GROUP BY flow").fetchall()
    of_flow = "no, scheduled, retrying, waiting, active, completed, dead, cancelled"
    flows = session.db.execute(f"SELECT {of_flow} FROM flows").fetchall()
    return [*({row for row in there if any(row[2:])} ^ set(counted)), *(set(flows) ^ set(in_flows))]


def left_over(session: SqliteSession) -> list[Any]:
    """Rows that belong to no job."""
    tables = ("payloads", "results", "attempts", "cancels", "needs", "tags", "steps", "signals")
    lost = " UNION ALL ".join(f"SELECT '{table}', job FROM {table} WHERE job NOT IN jobs_seq" for table in tables)
    stale = "SELECT 'cancels', seq FROM jobs, cancels WHERE job = seq AND (status <> 4 OR NOT cancelling)"
    return session.db.execute(f"WITH jobs_seq AS (SELECT seq FROM jobs) {lost} UNION ALL {stale}").fetchall()


async def test_large_payloads_and_results_lie_apart(store: SqliteStore) -> None:
    payload, result = bytes(range(256)) * 40, bytes(range(255)) * 40
    await add(store, job("1", payload=payload))
    claimed = await claim_one(store, "1")
    assert claimed.payload == payload
    await finish(store, outcome(claimed, JobStatus.COMPLETED, result=result))
    [record] = await store.find(JobFilter(whole=True))
    assert (record.payload, record.result) == (payload, result)
    sizes = await store._read(
        lambda session: session.db.execute("SELECT payload IS NULL, result IS NULL FROM jobs").fetchall()
    )
    assert sizes == [(1, 1)]
