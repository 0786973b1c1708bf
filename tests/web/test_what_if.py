"""What other bounds would have done: the answer, and what bounds its cost."""

import asyncio
import threading
from typing import Any

import pytest

from shiftwork import Breaker
from shiftwork.core.observing.worker_hours import WorkerHour
from shiftwork.sim import what_if as simulation
from shiftwork.web import what_if
from tests.sim.recorded_past import past, put
from tests.web.conftest import Web

PATH = "pools/images/what-if"


async def remember(web: Web, minutes: int = 66, jobs: int = 60) -> None:
    """Write a history of a pool with ten slots, two of them busy."""
    hours = past(web.app.control.now(), minutes, lambda _: jobs, pool="images", worker="resize")
    await put(await web.app.control.store.open(), hours)


async def refused(web: Web, path: str = PATH, **query: Any) -> tuple[int, str]:
    async with web.client() as client:
        response = await client.get(path, params={"min": 1, "max": 4} | query)
    return response.status_code, response.json()["detail"]


async def test_the_last_day_is_compared_with_what_other_bounds_would_have_done(web: Web) -> None:
    await remember(web)
    seen = await web.get(PATH, min=1, max=4)
    assert seen["tried"] == (await web.get(PATH))["tried"] == {"min": 1, "max": 4, "scale_up_threshold": 20}
    real, simulated = seen["real"], seen["simulated"]
    assert (seen["jobs"], real["slot_hours"], real["most_slots"]) == (66 * 60, 11.0, 10)
    assert real["waits"]["p95"] == pytest.approx(3.0), "each waited for 3 s, by the sum"
    assert 2.0 <= simulated["slot_hours"] <= 4.5, "two slots are busy, and four are the most"
    assert simulated["most_slots"] <= 4
    lists = (real["slots"], real["queued"], simulated["slots"], simulated["queued"])
    assert {len(one) for one in lists} == {len(seen["at"])}
    assert None not in real["slots"]
    assert seen["notes"] == ["Only 1 hour of the last day is known."]
    one = await web.get(PATH, min=1, max=1)
    assert one["simulated"]["most_queued"] > 1_000, "one slot is too few"
    assert one["simulated"]["slot_hours"] == pytest.approx(1.1)
    assert "would still wait or run" in one["notes"][1]


async def test_limits_hold_in_the_simulation_and_other_gates_are_named(web: Web) -> None:
    app = web.app
    app.register_worker("send", lambda: None, execution_mode="triggered", pool="images", max_running=1)
    app.register_worker("charge", lambda: None, execution_mode="triggered", pool="images", breaker=Breaker())
    await app.start()  # it publishes them
    hours = past(app.control.now(), 66, lambda _: 90, pool="images", worker="resize")
    for hour in hours:
        done = hour.workers["resize"]
        hour.workers |= {"send": done, "resize": WorkerHour()}
    await put(await app.control.store.open(), hours)
    seen = await web.get(PATH, min=1, max=40)
    assert seen["simulated"]["most_slots"] <= 2, "90 jobs a minute would keep three slots busy"
    assert seen["simulated"]["most_queued"] > 2_000
    assert "Concurrency keys and breakers are not simulated; some are on: charge." in seen["notes"]
    await app.stop()


async def test_what_cannot_be_simulated_is_refused_in_words(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    status, why = await refused(web)
    assert (status, why) == (409, "no day of history yet: 0 minutes of 60 at least")
    assert await refused(web, "pools/imagse/what-if") == (404, "there is no pool 'imagse': did you mean 'images'?")
    status, why = await refused(web, min=5)
    assert status == 400
    assert "min_workers" in why
    assert (await refused(web, max=10_001))[0] == 400
    await remember(web, jobs=0)
    assert await refused(web) == (409, "no job of the pool images came in the last day")
    monkeypatch.setattr(simulation, "MOST_DAY_JOBS", 3_000)
    await remember(web)
    status, why = await refused(web)
    assert status == 409
    assert why.startswith("the pool images had 3,960 jobs in the last day, and this page simulates at most 3,000")


async def test_one_simulation_runs_at_a_time_and_off_the_event_loop(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, simulate = threading.Event(), threading.Event(), what_if.answer

    def held(*given: Any) -> Any:
        begun.set()
        assert go.wait(30)
        return simulate(*given)

    await remember(web, minutes=60, jobs=1)
    monkeypatch.setattr(what_if, "answer", held)
    monkeypatch.setattr(what_if, "WHAT_IF_PATIENCE_SECONDS", 0.01)
    first = asyncio.ensure_future(web.get(PATH, min=1, max=4))
    assert await asyncio.to_thread(begun.wait, 30)
    status, why = await refused(web)
    assert status == 429
    assert "one runs at a time" in why
    assert (await web.get("pools"))["pools"]
    go.set()
    assert (await first)["jobs"] == 60
