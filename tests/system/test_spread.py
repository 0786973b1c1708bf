"""A pool that is spread over several processes: they share its slots, and one that dies harms no other."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path

import pytest

from shiftwork import JobStatus
from tests.polling import eventually
from tests.system.mill import Mill, gone, living

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mill]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    it = Mill(tmp_path, lease=15.0, program="spread")
    yield it
    await it.close()


async def test_two_processes_share_the_slots_and_one_that_dies_takes_only_its_own_jobs_along(spread: Mill) -> None:
    await spread.up(spread.node("--no-web"))
    await eventually(lambda: _slots(spread, [2, 2]), failure=spread.logs)

    jobs = [await spread.module.send.enqueue(number=number) for number in range(4)]
    await eventually(partial(_started, spread, 4), failure=spread.logs)
    assert sorted(Counter(line.pid for line in spread.lines("send")).values()) == [2, 2]
    _open(spread, range(4))
    await spread.all_ended(jobs)

    for number in range(4, 8):
        jobs.append(await spread.module.send.enqueue(number=number))
        await eventually(partial(_started, spread, number + 1), failure=spread.logs)
    first, second, *_ = (line.pid for line in spread.lines("send")[4:])
    assert first != second, "the second job goes to the process that is idler"
    assert Counter(line.pid for line in spread.lines("send")[4:]) == {first: 2, second: 2}

    os.kill(first, signal.SIGKILL)
    await eventually(partial(_started, spread, 10), failure=spread.logs)
    starts = Counter(line.number for line in spread.lines("send")[4:])
    assert starts == {line.number: 2 if line.pid == first else 1 for line in spread.lines("send")[4:8]}

    processes = living({line.pid for line in spread.lines("send")} - {first})
    await spread.app.scale_pool("mail", 1, 1)
    _open(spread, range(4, 8))
    ended = await spread.all_ended(jobs)
    assert [(job.status, job.attempts) for job in ended] == [(JobStatus.COMPLETED, 1)] * 8
    await eventually(lambda: _slots(spread, [1]), failure=spread.logs)
    await eventually(lambda: sum(gone([one]) for one in processes) == 1, failure=spread.logs)


def _started(spread: Mill, n: int) -> bool:
    return len(spread.lines("send")) == n


def _open(spread: Mill, numbers: Iterable[int]) -> None:
    for number in numbers:
        (spread.folder / f"open-{number}").touch()


async def _slots(spread: Mill, wanted: list[int]) -> bool:
    """Whether the live instances of the pool have these numbers of slots."""
    seen = (await spread.app.get_pool_dashboard())["mail"]["workers"]
    return sorted(one["slots"] for one in seen if one["status"] not in {"dead", "draining"}) == wanted
