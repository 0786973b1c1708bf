"""One connection and what it remembers between statements. Every operation works through one of these.

It owns the numbers of names, the worker states, the counters and the fence of a transaction, so that each is read once
and written once, however many operations share the transaction. It never begins or ends a transaction, and forgets what
it knows when another process has written or a transaction was rolled back.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from sqlite3 import Cursor
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import json

from shiftwork.core.doc_kinds import READ_BY_CLAIMS
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.workers import WorkerState
from shiftwork.store.docs import DocsOfClaims
from shiftwork.store.sqlite.file.driver import Connection
from shiftwork.store.sqlite.sql import SQL, for_rows

R = TypeVar("R", bound=tuple[Any, ...])
ADDED, SUCCEEDED, FAILURES, DIED, RUN_SECONDS, WAIT_SECONDS = range(len(STATUSES), len(STATUSES) + 6)
"""The places of a lane's counters that only grow, behind those of the statuses."""
FLOW_COUNTERS: Final = (0, 1, 2, 3, 3, 4, 5, 6)
"""The places of a flow's counters, by the number of the status. Queued jobs and those that run are counted together."""
_READ_DATA_VERSION: Final = SQL["read_data_version"]
_MOVE_LANE: Final = SQL["move_lane"]
WIDTHS: Final = (64, 16, 4, 1)
"""How many rows a statement may take at once: few different widths, so that each statement is prepared once."""


class Names:
    """The numbers of one kind of name, each looked up once and created where it is missing."""

    def __init__(self, db: Connection, kind: str, namespace: int) -> None:
        self._db = db
        self._find = SQL[f"find_{kind}"]
        self._add = SQL[f"add_{kind}"]
        self._name_of = SQL[f"name_of_{kind}"]
        self._namespace = namespace
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def find(self, name: str) -> int | None:
        """Return the number of a name, if it has one."""
        number = self._numbers.get(name)
        if number is None:
            row = self._db.execute(self._find, (self._namespace, name)).fetchone()
            number = self._learn(name, row[0]) if row else None
        return number

    def number(self, name: str) -> int:
        """Return the number of a name, which gets one if it has none."""
        number = self._numbers.get(name)
        if number is None:
            number = self.find(name)
        if number is None:
            added = self._db.execute(self._add, (self._namespace, name)).lastrowid
            number = self._learn(name, added or 0)
        return number

    def name(self, number: int) -> str:
        name = self._names.get(number)
        if name is None:
            row = self._db.execute(self._name_of, (number,)).fetchone()
            name = row[0] if row else "?"
            self._learn(name, number)
        return name

    def forget(self) -> None:
        self._numbers.clear()
        self._names.clear()

    def _learn(self, name: str, number: int) -> int:
        self._numbers[name] = number
        self._names[number] = name
        return number


class LaneCounts(NamedTuple):
    """A row of `lanes_of_worker`: how many live jobs of a worker are in a pool, by status."""

    pool: int
    scheduled: int
    retrying: int
    waiting: int
    queued: int
    processing: int

    @property
    def live(self) -> bool:
        """Whether it has any live job."""
        return bool(self.scheduled or self.retrying or self.waiting or self.queued or self.processing)


class SqliteSession:
    """A connection, its namespace, and what it knows about it."""

    def __init__(self, db: Connection, namespace: int) -> None:
        self.db = db
        self.cursor: Cursor = db.cursor()
        """For statements whose rows are read at once, if they have any: `db.execute` makes a cursor each time."""
        self.namespace = namespace
        self.pools: Names = Names(db, "pool", namespace)
        self.workers: Names = Names(db, "worker", namespace)
        self.instances: Names = Names(db, "instance", namespace)
        self.topics: set[str] = set()
        """The topics to ring once the transaction is committed."""
        self.replaced = False
        """Whether the file took the place of another one, and no claim has reported that yet."""
        self._docs = DocsOfClaims()
        self._docs_as_of = -1
        self._data_version = -1
        self._reset()

    def _reset(self) -> None:
        self._fence: int | None = None
        self._fence_moved = False
        self._seq: int | None = None
        self._changes: int | None = None
        self._states: dict[int, WorkerState] = {}
        self._changed_states: set[int] = set()
        self._lanes: dict[tuple[int, int], list[float]] = {}
        self._marks: Counter[tuple[int, str]] = Counter()
        self._flows: dict[int, list[int]] = {}
        self.any_needs: bool | None = None
        """Whether any job waits for another one; None if that has to be looked up."""
        self.lost: dict[int, bool] = {}
        """By instance: whether it is lost."""

    # ── statements ───────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, name: str, args: Sequence[Any] | dict[str, Any] = ()) -> Cursor:
        return self.db.execute(SQL[name], args)

    def run_many(self, name: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        return self.db.executemany(SQL[name], rows)

    def run_rows(self, name: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run the named statement with many rows of arguments at once. Returns how many rows it changed."""
        if len(rows) == 1:
            return self.cursor.execute(for_rows(name, 1), rows[0]).rowcount
        changed = at = 0
        for width in WIDTHS:
            while len(rows) - at >= width:
                args = list(chain.from_iterable(rows[at : at + width]))
                changed += self.cursor.execute(for_rows(name, width), args).rowcount
                at += width
        return changed

    def value(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row; None if there is none."""
        row = self.db.execute(SQL[name], args).fetchone()
        return row[0] if row else None

    def rows(self, kind: type[R], sql: str, args: Sequence[Any] = ()) -> list[R]:
        """Return the rows of a statement, as named tuples of this kind."""
        make = partial(tuple.__new__, kind)  # `_make` takes three times as long
        return list(map(make, self.db.execute(sql, args)))

    def values(self, name: str, args: Sequence[Any] = ()) -> list[Any]:
        """Return the only column of every row."""
        return [value for (value,) in self.db.execute(SQL[name], args)]

    def lanes_of(self, worker: int) -> list[LaneCounts]:
        """Return the lanes of a worker, one for each pool that has had jobs of it."""
        return self.rows(LaneCounts, SQL["lanes_of_worker"], (worker,))

    # ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> None:
        """Start a transaction: forget what another process may have changed since the last one."""
        (version,) = self.cursor.execute(_READ_DATA_VERSION).fetchone()
        if version != self._data_version:
            self._data_version = version
            self._reset()

    def flush(self) -> None:
        """Write the gathered changes: before the commit, and before any statement that reads them."""
        if self._fence_moved:
            self.run("move_fence", (self._fence,))
            self._fence_moved = False
        if self._lanes:
            for lane, counts in self._lanes.items():
                self.cursor.execute(_MOVE_LANE, (*lane, *counts))
            self._lanes.clear()
        if self._flows:
            self._flush_flows()
        if self._marks:
            rows = [(pool, mark, by) for (pool, marks), by in self._marks.items() for mark in marks.split()]
            self.run_many("count_mark", rows)
            self._marks.clear()
        if self._changed_states:
            self.run_many("write_state", [_state_row(number, self._states[number]) for number in self._changed_states])
            self._changed_states.clear()

    def _flush_flows(self) -> None:
        alike: dict[tuple[int, ...], list[int]] = {}
        for flow, counts in self._flows.items():
            alike.setdefault(tuple(counts), []).append(flow)
        self.run_many("move_flows", [(*counts, as_list(of)) for counts, of in alike.items() if any(counts)])
        for change, of in alike.items():
            if sum(change) < 0 or not any(change):
                self.run_many("drop_empty_flow", zip(of, strict=True))
        self._flows.clear()

    def forget(self) -> None:
        """Forget everything, because the transaction was rolled back."""
        self.forget_names()
        self.topics.clear()
        self._docs_as_of = -1
        self._data_version = -1
        self._reset()

    def forget_names(self) -> None:
        """Look up the numbers of all names again when they are needed."""
        self.pools.forget()
        self.workers.forget()
        self.instances.forget()

    # ── what is remembered ───────────────────────────────────────────────────────────────────────────────────────

    def next_fences(self, n: int) -> int:
        """Return the first of `n` new fences."""
        if self._fence is None:
            self._read_store()
        first = (self._fence or 0) + 1
        self._fence = first + n - 1
        self._fence_moved = True
        return first

    def fence_above(self, fence: int) -> int:
        """Return a new fence, which is also higher than this one."""
        first = self.next_fences(1)
        self._fence = max(first, fence + 1)
        return self._fence

    def next_seqs(self, n: int) -> int:
        """Return the first of `n` new numbers of jobs."""
        if self._seq is None:
            self._seq = int(self.value("last_seq"))
        first = self._seq + 1
        self._seq += n
        return first

    def docs(self) -> DocsOfClaims:
        if self._changes is None:
            self._read_store()
        if self._docs_as_of != self._changes:
            self._docs = self._read_docs()
            self._docs_as_of = self._changes if self._changes is not None else -1
        return self._docs

    def _read_docs(self) -> DocsOfClaims:
        docs = DocsOfClaims()
        for kind in READ_BY_CLAIMS:
            for name, body, _ in self.run("docs_of_kind", (self.namespace, kind)):
                docs.keep(kind, name, body)
        return docs

    def doc_changed(self) -> None:
        """Note that a doc that claims read was written."""
        self.run("count_change")
        self._changes = None

    def _read_store(self) -> None:
        fence, changes = self.run("read_store").fetchone()
        self._changes = changes if isinstance(changes, int) else 0
        if not self._fence_moved:
            # A damaged one is replaced by the time in microseconds: fences that count claims cannot be as high.
            self._fence = fence if isinstance(fence, int) else time.time_ns() // 1000

    def state(self, worker: int) -> WorkerState:
        """Return a worker's state. After changing it, call `state_changed`."""
        state = self._states.get(worker)
        if state is None:
            state = self._states[worker] = self._read_state(worker)
        return state

    def state_changed(self, worker: int) -> None:
        """Have the worker's state written."""
        self._changed_states.add(worker)

    def _read_state(self, worker: int) -> WorkerState:
        row = self.run("read_state", (worker,)).fetchone()
        enabled, reason, changed_at, failures, started, ended, success, error, error_at, rate_at = row
        return WorkerState(
            worker=self.workers.name(worker),
            enabled=bool(enabled),
            reason=reason,
            changed_at=changed_at,
            failures=failures,
            last_started=started,
            last_ended=ended,
            last_success=success,
            last_error=error,
            last_error_at=error_at,
            rate_at=rate_at,
        )

    # ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lane(self, pool: int, worker: int) -> list[float]:
        """Return what to add to the counters of a lane: by the number of the status, then what only grows."""
        counts = self._lanes.get((pool, worker))
        if counts is None:
            counts = self._lanes[pool, worker] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0]
        return counts

    def flow(self, flow: int) -> list[int]:
        """Return what to add to the counters of a flow, by `FLOW_COUNTERS`. A flow without jobs is deleted."""
        counts = self._flows.get(flow)
        if counts is None:
            counts = self._flows[flow] = [0, 0, 0, 0, 0, 0, 0]
        return counts

    def move_flow(self, flow: int, out_of: int, into: int) -> None:
        """Count a job of this flow that went from one status to another."""
        counts = self._flows.get(flow) or self.flow(flow)
        counts[FLOW_COUNTERS[out_of]] -= 1
        counts[FLOW_COUNTERS[into]] += 1

    def mark(self, pool: int, marks: str, by: int = 1) -> None:
        """Count these marks for a pool `by` times."""
        self._marks[pool, marks] += by

    def count(self, pool: int, worker: int, flow: int | None, status: Any, by: int = 1) -> None:
        """Count `by` more jobs of this lane and flow in this status. A status that does not exist is not counted."""
        if status in range(len(STATUSES)):
            self.lane(pool, worker)[status] += by
            if flow is not None:
                self.flow(flow)[FLOW_COUNTERS[status]] += by

    def move(self, pool: int, worker: int, flow: int | None, *, out_of: Any, into: int) -> None:
        """Count a job of this lane and flow that went from one status to another."""
        self.count(pool, worker, flow, out_of, -1)
        self.count(pool, worker, flow, into)

    # ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────

    def ring(self, *topics: str) -> None:
        """Ring these once the transaction is committed."""
        self.topics.update(topics)

    def take_topics(self) -> set[str]:
        """Return the topics to ring, and forget them."""
        topics, self.topics = self.topics, set()
        return topics

    def ring_pool(self, pool: int) -> None:
        """Ring a pool, of which a job may be claimable."""
        self.topics.add(f"pool:{self.pools.name(pool)}")


def _state_row(number: int, state: WorkerState) -> tuple[Any, ...]:
    return (
        state.enabled,
        state.reason,
        state.changed_at,
        state.failures,
        state.last_started,
        state.last_ended,
        state.last_success,
        state.last_error,
        state.last_error_at,
        state.rate_at,
        number,
    )


def as_list(values: Iterable[int | str]) -> str:
    """Return a list in the form that statements take."""
    return json.encode(list(values)).decode()
