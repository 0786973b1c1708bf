"""`ctx.transaction()` in processes that a node has started, on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg import AsyncConnection

from shiftwork import JobStatus
from tests.store.servers.postgres import names, postgres_servers, server_url
from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy

__all__ = ["postgres_servers"]


@pytest.fixture
def url() -> str:
    return server_url(names()[0])


@pytest.fixture
async def ledger(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mill]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MILL_NAMESPACE", uuid4().hex)
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS ledger (job text, amount int)")
    it = Mill(tmp_path, lease=15.0, program="ledger", store=url)
    yield it
    await it.close()


async def test_a_job_ends_together_with_its_writes(ledger: Mill, url: str) -> None:
    await ledger.up(ledger.node())
    workers = ledger.module.post_apart, ledger.module.post_here
    jobs = [await worker.enqueue(amount=amount) for worker in workers for amount in (7, -1, 101)]
    ended = await ledger.all_ended(jobs)
    assert [job.status for job in ended] == [JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.COMPLETED] * 2
    async with await AsyncConnection.connect(url) as connection:
        rows = await (
            await connection.execute(
                "SELECT amount FROM ledger WHERE job = ANY(%s) ORDER BY amount", ([job.id for job in jobs],)
            )
        ).fetchall()
    assert rows == [(7,), (7,), (101,), (101,)]
