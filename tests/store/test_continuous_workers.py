"""A worker that runs in a loop continues although the clock stands still, is set back, or differs between nodes."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.configs import worker_config
from shiftwork.runtime.leader.worker_schedules import WorkerSchedules
from shiftwork.runtime.registry import Registry
from tests.store.conformance.acts import NOW, succeeded
from tests.store.conformance.lab import Lab, StoreFactory

LOOP = worker_config("w", {"execution_mode": "continuous"})
OFTEN = worker_config("w", {"interval_seconds": 60})


class Silent:
    """Takes events, and a worker without a function."""

    schema = None

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config

    def emit(self, *_: Any, **__: Any) -> None:
        """Nothing is reported to anybody."""


def leader(lab: Lab, config: WorkerConfig) -> WorkerSchedules:
    known = Silent(config)
    registry = Registry({"w": known}, {"default": PoolConfig(name="default")}, {})
    return WorkerSchedules(registry, lab.store, cast("Any", known))


async def run(lab: Lab, ended_at: float) -> list[str]:
    """Run what is queued, and let it end at this time."""
    claimed = (await lab.store.claim("i", "default", 5, ended_at, ["w"])).jobs
    outcomes = [replace(succeeded(job, now=ended_at), keep_until=NOW + 86_400) for job in claimed]
    if outcomes:
        await lab.store.finish(outcomes, ended_at)
    return [job.id for job in claimed]


@pytest.mark.parametrize("late", [0.0, 2.0, 7200.0], ids=["stands still", "2 s behind", "2 h behind"])
@pytest.mark.parametrize("config", [LOOP, OFTEN], ids=["loop", "interval"])
async def test_a_run_that_ends_before_the_last_one_did_is_followed_by_another(
    factory: StoreFactory, config: WorkerConfig, late: float
) -> None:
    async with Lab(factory) as lab:
        first, second = leader(lab, config), leader(lab, config)
        await first.poll(NOW)
        ran = await run(lab, NOW)
        now = NOW + config.interval_seconds + 1.0
        for _ in range(6):
            for schedules in (first, second, first):
                await schedules.poll(now)
            ran += await run(lab, min(now, NOW) - late)  # by a clock that is behind the leaders'
        assert len(ran) == len(set(ran)) == 7
