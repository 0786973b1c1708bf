"""The leader dies: another node leads within a lease, and no schedule is missed or fires twice."""

import signal
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.polling import eventually
from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(120)

LEASE = 4.0


@pytest.fixture
async def clockwork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mill]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    made = Mill(tmp_path, lease=LEASE, program="clockwork")
    yield made
    await made.close()


async def test_the_death_of_the_leader_moves_the_lead_and_the_schedule_continues(clockwork: Mill) -> None:
    nodes = [clockwork.node() for _ in range(2)]
    for node in nodes:
        await clockwork.up(node)

    async def led() -> bool:
        return (await clockwork.app.control.system.overview()).leader is not None

    await eventually(led, failure=clockwork.logs)
    leader = (await clockwork.app.control.system.overview()).leader
    first, second = nodes if f"node {leader} leads" in nodes[0].said else reversed(nodes)
    await eventually(lambda: len(clockwork.lines()) > 5)
    before = len(clockwork.lines())
    first.signal(signal.SIGKILL)

    async def moved() -> bool:
        return (await clockwork.app.control.system.overview()).leader not in {leader, None}

    await eventually(moved, failure=clockwork.logs)
    assert "leads" in second.said
    await eventually(lambda: len(clockwork.lines()) > before + 10, failure=clockwork.logs)

    runs = clockwork.lines()
    # Whatever the dead node had in hand runs again: under the same id, as the same fire. Nothing else runs twice.
    twice = [job for job, times in Counter(run.worker for run in runs).items() if times > 1]
    assert len(twice) <= 1
    # Nobody leads for a lease at most, and a lease of the lead and of the instances can end one after the other.
    assert max(after.at - run.at for run, after in pairwise(runs)) < 3 * LEASE + 5
