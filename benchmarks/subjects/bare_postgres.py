"""The bare PostgreSQL: a table with a partial index, one statement that finishes and claims, synchronous_commit=on."""

import asyncio
from typing import Final

from psycopg import AsyncConnection

from benchmarks.subjects.bare import BATCH, LEASE_SECONDS, PAYLOAD, Bare, Claimed, Done

HOLDER: Final = "bench"
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rank float8 NOT NULL DEFAULT extract(epoch FROM now()),
    payload bytea NOT NULL, status int2 NOT NULL DEFAULT 0, fence int8 NOT NULL DEFAULT 0, holder text,
    lease_until timestamptz, ended_at timestamptz, result bytea
);
CREATE INDEX IF NOT EXISTS ready ON job (rank, id) WHERE status = 0;
CREATE INDEX IF NOT EXISTS held ON job (lease_until) WHERE status = 1;
"""
# A table that has just been filled has no statistics, and the plan must not depend on them.
PLAN: Final = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan
"""
ADD: Final = "INSERT INTO job (payload) VALUES (%s)"
ADD_AND_RING: Final = "WITH added AS (INSERT INTO job (payload) VALUES (%s)) SELECT pg_notify('added', '')"
ADD_MANY: Final = "INSERT INTO job (payload) SELECT unnest(%s::bytea[])"
EXCHANGE: Final = """
WITH done AS (
    UPDATE job SET status = 2, lease_until = NULL, ended_at = now(), result = ended.result
    FROM unnest(%(ids)s::int8[], %(fences)s::int8[], %(results)s::bytea[]) AS ended (id, fence, result)
    WHERE job.id = ended.id AND job.fence = ended.fence AND job.status = 1
    RETURNING 1
), chosen AS MATERIALIZED (
    SELECT id FROM job WHERE status = 0 ORDER BY rank, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE job SET status = 1, fence = fence + 1, holder = %(holder)s,
        lease_until = now() + make_interval(secs => %(lease)s)
    FROM chosen WHERE job.id = chosen.id
    RETURNING job.id, job.fence, job.payload
)
SELECT 0::int8, count(*), ''::bytea FROM done UNION ALL SELECT * FROM claimed
"""


class BarePostgres(Bare):
    _ring = False

    async def open(self) -> None:
        self._db = await self._connect()
        await self._db.execute(SCHEMA, prepare=False)
        await self._db.execute(PLAN, prepare=False)

    async def _connect(self) -> AsyncConnection:
        return await AsyncConnection.connect(self.url, autocommit=True, prepare_threshold=0)

    async def add(self) -> None:
        await self._db.execute(ADD_AND_RING if self._ring else ADD, (PAYLOAD,))

    async def add_many(self, n: int) -> None:
        await self._db.execute(ADD_MANY, ([PAYLOAD] * n,), binary=True)

    async def exchange(self, done: list[Done]) -> list[Claimed]:
        ids, fences, results = (list(column) for column in zip(*done, strict=True)) if done else ([], [], [])
        said = {"ids": ids, "fences": fences, "results": results, "batch": BATCH, "holder": HOLDER}
        found = await self._db.execute(EXCHANGE, {**said, "lease": LEASE_SECONDS}, binary=True)
        (_, finished, _), *claimed = await found.fetchall()
        assert finished == len(done), f"{finished} of {len(done)} fences held"
        return claimed

    async def listen(self) -> None:
        self._ring = True
        self._bell = await self._connect()
        await self._bell.execute("LISTEN added")
        self._heard = asyncio.Event()
        self._listening = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        async for _ in self._bell.notifies():
            self._heard.set()

    async def wait(self) -> None:
        await self._heard.wait()
        self._heard.clear()

    async def close(self) -> None:
        await self._db.close()
