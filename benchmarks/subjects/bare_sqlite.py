"""The bare SQLite: a table with a partial index, WAL, synchronous=NORMAL."""

import asyncio
import time
from typing import Final

from benchmarks.subjects.bare import BATCH, LEASE_SECONDS, PAYLOAD, Bare, Claimed, Done
from shiftwork.store.sqlite.file.driver import driver  # the same SQLite for both

HOLDER: Final = "bench"
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY, rank REAL NOT NULL, payload BLOB NOT NULL, status INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0, holder TEXT, lease_until REAL, ended_at REAL, result BLOB
);
CREATE INDEX IF NOT EXISTS ready ON job (rank, id) WHERE status = 0;
CREATE INDEX IF NOT EXISTS held ON job (lease_until) WHERE status = 1;
"""
ADD: Final = "INSERT INTO job (rank, payload) VALUES (?, ?)"
CLAIM: Final = """
UPDATE job SET status = 1, fence = fence + 1, holder = ?, lease_until = ?
WHERE id IN (SELECT id FROM job WHERE status = 0 ORDER BY rank, id LIMIT ?)
RETURNING id, fence, payload
"""
FINISH: Final = """
UPDATE job SET status = 2, lease_until = NULL, ended_at = ?, result = ? WHERE id = ? AND fence = ? AND status = 1
"""


class BareSqlite(Bare):
    async def open(self) -> None:
        self._db = driver.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(SCHEMA)

    async def add(self) -> None:
        self._db.execute(ADD, (time.time(), PAYLOAD))

    async def add_many(self, n: int) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(ADD, ((time.time(), PAYLOAD) for _ in range(n)))
        self._db.execute("COMMIT")

    async def exchange(self, done: list[Done]) -> list[Claimed]:
        now = time.time()
        self._db.execute("BEGIN IMMEDIATE")
        if done:
            ended = ((now, result, job_id, fence) for job_id, fence, result in done)
            finished = self._db.executemany(FINISH, ended).rowcount
            assert finished == len(done), f"{finished} of {len(done)} fences held"
        claimed: list[Claimed] = self._db.execute(CLAIM, (HOLDER, now + LEASE_SECONDS, BATCH)).fetchall()
        self._db.execute("COMMIT")
        return claimed

    async def listen(self) -> None:
        """A file sends no notification."""

    async def wait(self) -> None:
        await asyncio.sleep(0.001)

    async def close(self) -> None:
        self._db.close()
