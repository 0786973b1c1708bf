"""The bare engine, without a framework: a table, a partial index, batches of 100, a fence. The limit."""

import json
import sys
import tempfile
import time
from pathlib import Path

try:
    from pysqlite3 import dbapi2 as sqlite3
except ImportError:
    import sqlite3  # type: ignore[no-redef, unused-ignore]

SINGLE = 4_000
BATCH = 100

SCHEMA = """
CREATE TABLE job (id INTEGER PRIMARY KEY, rank REAL, payload BLOB, status INTEGER, fence INTEGER);
CREATE INDEX ready ON job (rank, id) WHERE status = 0;
"""
CLAIM = """
UPDATE job SET status = 1, fence = ?
WHERE id IN (SELECT id FROM job WHERE status = 0 ORDER BY rank, id LIMIT ?)
RETURNING id, payload
"""
FINISH = """
UPDATE job SET status = 2 WHERE status = 1 AND fence = ? AND id IN (SELECT value FROM json_each(?))
"""


def main(jobs: int, path: str) -> dict[str, float]:
    """Measure everything on one fresh file."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.executescript(SCHEMA)
    figures: dict[str, float] = {}

    begun = time.perf_counter()
    for _ in range(SINGLE):
        db.execute("INSERT INTO job (rank, payload, status) VALUES (?, ?, 0)", (time.time(), b"\x80"))
    figures["enqueue"] = SINGLE / (time.perf_counter() - begun)

    begun = time.perf_counter()
    db.execute("BEGIN IMMEDIATE")
    rows = ((time.time(), b"\x80") for _ in range(jobs))
    db.executemany("INSERT INTO job (rank, payload, status) VALUES (?, ?, 0)", rows)
    db.execute("COMMIT")
    figures["bulk"] = jobs / (time.perf_counter() - begun)

    begun = time.perf_counter()
    done = fence = 0
    held: list[int] = []
    while True:
        db.execute("BEGIN IMMEDIATE")
        if held:
            done += db.execute(FINISH, (fence, json.dumps(held))).rowcount
        fence += 1
        held = [job for job, _ in db.execute(CLAIM, (fence, BATCH)).fetchall()]
        db.execute("COMMIT")
        if not held:
            break
    figures["drain"] = done / (time.perf_counter() - begun)
    return figures


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(main(int(sys.argv[1]), str(Path(folder) / "bench.db"))))
