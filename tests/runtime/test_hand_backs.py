"""What a node remembers of jobs that it handed back."""

from types import SimpleNamespace
from typing import Any

from shiftwork.core.jobs.retry import HAND_BACK_LIMIT, HAND_BACK_SECONDS, EndKind
from shiftwork.core.jobs.undecodable import ELSEWHERE_SECONDS, SHORTEST_DELAY
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Attempt, JobStatus
from shiftwork.core.observing.beats import Beat, InstanceRecord, NodeBeat
from shiftwork.runtime.claiming.instance_services import MOST_JOBS_COUNTED, UnaskedHandBacks
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.outcomes.refusals import Refusals


def test_hand_backs_of_a_minute_are_counted_job_by_job() -> None:
    counted = UnaskedHandBacks()
    assert [counted.count("a", 100.0 + n) for n in range(3)] == [1, 2, 3]
    assert counted.count("b", 103.0) == 1
    assert counted.count("a", 100.0 + HAND_BACK_SECONDS) == 3, "the first one is a minute old"
    assert [counted.count("c", 200.0) for _ in range(2 * HAND_BACK_LIMIT)][-1] == HAND_BACK_LIMIT + 1


def test_jobs_that_were_not_handed_back_lately_are_forgotten() -> None:
    counted = UnaskedHandBacks()
    counted.count("recent", 100.0)
    for number in range(MOST_JOBS_COUNTED - 1):
        counted.count(f"old {number}", 50.0)
    assert counted.count("recent", 50.0 + HAND_BACK_SECONDS) == 2
    assert counted.count("old 0", 50.0 + HAND_BACK_SECONDS) == 1


class TwoVersions:
    """A store whose two nodes run two versions of the app, as a `Refusals` of the older one asks it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        store: Any = SimpleNamespace(instances=self._instances, get=self._get)
        registry: Any = SimpleNamespace(version="old")
        self.refusals = Refusals(registry, store, self.clock)

    async def _instances(self) -> list[InstanceRecord]:
        machine = NodeBeat(host="h", cores=1, memory=1, version="new", pools=("p",))
        beat = Beat(instance="n/leader", node="n", pool="", slots=0, workers=("w",), machine=machine)
        return [InstanceRecord(beat, expires_at=self.clock.now() + 15, last_beat_at=self.clock.now())]

    async def _get(self, ids: list[str]) -> list[Any]:
        return [SimpleNamespace(id=id, attempts=()) for id in ids]

    async def refuse(self, id: str, ended_at: float) -> None:
        report = Attempt(number=1, started_at=0.0, ended_at=ended_at, kind=EndKind.UNDECODABLE, error="no field")
        outcome = Outcome(
            id=id, fence=1, worker="w", pool="p", status=JobStatus.DEAD, ended_at=ended_at, run_at=0.0, attempt=1,
            crashes=0, error="no field", report=report,
        )  # fmt: skip
        instead = await self.refusals.review([Settled(outcome, 0.0)])
        assert instead[id].status is JobStatus.QUEUED

    def claims(self) -> bool:
        """Whether it claims jobs of the worker now."""
        return not self.refusals.elsewhere or "w" in self.refusals.claimable(frozenset("w"))


async def test_a_worker_is_left_to_the_other_version_from_the_first_refusal_to_the_end_of_the_last() -> None:
    here = TwoVersions()
    now = here.clock.now()
    assert here.claims()
    await here.refuse("1", now)
    await here.refuse("2", now + 5.0)
    await here.refuse("3", now + 1.0)
    assert not here.claims(), "since the first"
    await here.clock.advance(5.0 + SHORTEST_DELAY + ELSEWHERE_SECONDS - 0.5)
    assert not here.claims(), "until the end of the one in the middle"
    await here.clock.advance(1.0)
    assert here.claims()
