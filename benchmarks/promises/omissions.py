"""What can be left out of the PostgreSQL store, for measuring what it costs.

An omission edits the SQL of the functions, drops indices, or lets commits not wait for the disk. A store with an
omission keeps its promises no longer: it is good for nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, LiteralString
from unittest import mock

import psycopg

from shiftwork.store.postgres.server import functions, sql

Edit = tuple[str, str]


@dataclass(frozen=True)
class Omission:
    """One thing that is left out."""

    name: str
    edits: Sequence[Edit] = ()
    """Texts of the functions, and what stands in their place."""
    indices: Sequence[LiteralString] = field(default=())
    waits: bool = True
    """Whether a commit waits for the disk."""


NOT_ASKED: Final = "    IF false THEN\n"
FENCES: Final = Omission(
    "fences", [("fence = nextval('shiftwork.fences')", "fence = 1"), (" AND j.fence = t.fence", "")]
)
COUNTERS: Final = Omission(
    "counters and marks",
    [
        ("AS s (worker) GROUP BY s.worker", "AS s (worker) WHERE false GROUP BY s.worker"),
        ("FROM written w GROUP BY w.worker", "FROM written w WHERE false GROUP BY w.worker"),
        ("AS t (pool, name, n)\n    ON CONFLICT", "AS t (pool, name, n) WHERE false\n    ON CONFLICT"),
        ("n.added FROM lane n\n", "n.added FROM lane n WHERE false\n"),
    ],
)
GATES: Final = Omission(
    "gates, pauses, editions, worker states",
    [
        (
            """\
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'gates', ''));
    IF crew IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest = crew
    ) THEN
        RETURN QUERY""",
            NOT_ASKED + "        RETURN QUERY",
        ),
        (
            """\
    lanes := shiftwork.open_lanes(ns, who, from_pool, names, edition, crew);
    IF lanes = '{}' THEN
        RETURN;
    END IF;
    IF lanes IS NULL OR EXISTS (
        SELECT 1 FROM shiftwork.gates_of(ns, lanes) AS d WHERE d.ties IS NOT NULL
    ) THEN
""",
            "    lanes := names;\n" + NOT_ASKED,
        ),
        ("    IF NOT calm OR EXISTS (\n", "    IF NOT calm OR false AND EXISTS (\n"),
        ("    topics := topics || shiftwork.wake_tied(ns, names);\n", ""),
    ],
)
LOCKS: Final = Omission(
    "locks that other claims skip", [("LIMIT n FOR UPDATE SKIP LOCKED\n        );", "LIMIT n\n        );")]
)
RUNNING: Final = Omission("the index of running jobs (recovery, gates)", indices=["jobs_running"])
NEWEST: Final = Omission("the index that lists a worker's jobs", indices=["jobs_newest"])
PRUNING: Final = Omission("the index for pruning", indices=["jobs_disposable"])
RARE: Final = Omission(
    "the indices of keys, schedules, cancelled and dead jobs",
    indices=["jobs_by_key", "jobs_due", "jobs_cancelling", "jobs_unusual"],
)
DISK: Final = Omission("waiting for the disk at each commit", waits=False)
ALL: Final = (FENCES, COUNTERS, GATES, LOCKS, RUNNING, NEWEST, PRUNING, RARE, DISK)


class OutdatedEditError(Exception):
    """The functions no longer have a text that an omission edits."""


@contextmanager
def left_out(omissions: Sequence[Omission]) -> Iterator[None]:
    """Let stores that are opened inside install functions without these things."""
    texts = list(_edited(omissions))
    try:
        with mock.patch.object(functions, "read_folder", return_value=texts):
            functions.current.cache_clear()
            yield
    finally:
        functions.current.cache_clear()


def prepare(url: str, omissions: Iterable[Omission]) -> None:
    """Take these things from a database that has the tables already, and let it time its functions."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"ALTER DATABASE {sql.quoted(db.info.dbname)} SET track_functions = 'all'".encode())
        for omission in omissions:
            for index in omission.indices:
                db.execute(f"DROP INDEX shiftwork.{index}")
            if not omission.waits:
                db.execute(f"ALTER DATABASE {sql.quoted(db.info.dbname)} SET synchronous_commit = off".encode())


def _edited(omissions: Iterable[Omission]) -> Iterator[tuple[str, str]]:
    unused = {edit for omission in omissions for edit in omission.edits}
    for name, given in sql.read_folder("functions"):
        text = given
        for old, new in [edit for edit in unused if edit[0] in given]:
            text = text.replace(old, new)
            unused.discard((old, new))
        yield name, text
    if unused:
        raise OutdatedEditError(f"no function has the text {min(unused)[0]!r}")
