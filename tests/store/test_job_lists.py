"""A list of jobs on every store: what it says of a queued job is what the job's explanation says."""

import pytest

from shiftwork import JobPriority, WorkerOrchestrator
from shiftwork.core.health import position
from tests.store.conformance.lab import StoreFactory
from tests.web.conftest import Web


@pytest.mark.parametrize("counted", [position.COUNTED_OTHER, 4])
async def test_positions_of_a_list_are_those_of_the_explanations(
    counted: int, factory: StoreFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position, "COUNTED_OTHER", counted)
    monkeypatch.setattr(position, "COUNTED_OWN", counted)
    app = WorkerOrchestrator(factory()())
    app.register_pool("mail", kind="async")

    @app.task(pool="mail")
    async def send(n: int) -> None: ...

    @app.task
    async def draw(n: int) -> None: ...

    @app.task(priority=JobPriority.HIGH, concurrency_key="{n}")
    async def urge(n: int) -> None: ...

    for n in range(9):
        await app.enqueue_many([send.call(n=n), draw.call(n=n), urge.call(n=n // 3)])
    await send.with_options(delay_seconds=60).enqueue(n=9)
    web = Web(app)
    listed = [*(await web.get("jobs", order="oldest"))["jobs"]]
    assert listed[::-1] == (await web.get("jobs"))["jobs"]
    for one in listed:
        why = await app.explain_job(one["id"])
        if why.position is not None and one["position"] is None:
            assert (await app.get_job(one["id"])).record.parked, "only these are left out"
            continue
        assert (one["position"], one["position_exact"]) == (why.position, why.position_exact), one
    assert sum(one["position"] is not None for one in listed) == 9 + 9 + 3
    await web.site.close()
    await app.control.close()
