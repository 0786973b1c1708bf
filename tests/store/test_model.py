"""Random histories, against every store. On SQLite its counters are counted again at the end."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from shiftwork.store.protocol import Store
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from tests.store.conformance.histories import Histories
from tests.store.conformance.lab import StoreFactory

QUICK: Final = settings(
    max_examples=5,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases={Phase.explicit, Phase.generate},  # making a history that fails shorter takes minutes: the soak test does it
)
LONGER: Final = settings(QUICK, max_examples=8, stateful_step_count=150)
MANY: Final = int(os.environ.get("SHIFTWORK_TEST_HISTORIES", "1000"))
THOROUGH: Final = settings(
    QUICK, max_examples=MANY, derandomize=False, phases={Phase.explicit, Phase.generate, Phase.shrink}
)


@pytest.mark.timeout(300)  # a history that fails is made shorter, again and again
def test_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=QUICK)  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.timeout(max(3_600, 4 * MANY))
def test_many_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=THOROUGH)  # type: ignore[arg-type]


class CountedStore(SqliteStore):
    """Checks, when it is closed, that its counters are right and that nothing is left of jobs that are gone."""

    async def close(self) -> None:
        try:
            assert await self._read(miscounted) == []
            assert await self._read(left_over) == []
        finally:
            await super().close()


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


@pytest.mark.timeout(300)
def test_sqlite_counts_right_in_random_histories(tmp_path: Path) -> None:
    numbers = count()

    def factory() -> Callable[[], Store]:
        path = tmp_path / f"{next(numbers)}.db"
        return lambda: CountedStore(str(path))

    run_state_machine_as_test(lambda: Histories(factory), settings=LONGER)  # type: ignore[arg-type]
