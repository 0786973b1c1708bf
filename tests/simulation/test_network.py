"""The simulated way to the store: what may happen to a call, and which order it keeps."""

import asyncio
from random import Random
from typing import Any

import pytest

from shiftwork.core.model.doc_types import Doc
from shiftwork.errors import StoreUnavailableError
from shiftwork.simulation.ground.network import Connection
from shiftwork.simulation.ground.world import Rhythm, World


class Line:
    """A process and its connection, in a world where nothing else happens."""

    def __init__(self, **rhythm: Any) -> None:
        self.world = World(1, Rhythm(patience=2.0, slow_share=0.0, **rhythm))
        self.process = self.world.start(self.world.machine("m", wall=0.0, up=1.0, cores=1.0), "p")
        _, self.connection = self.world.connect(self.process)

    def run(self, life: Any) -> Any:
        """Run a coroutine in the process, and return its result, or raise what it raises."""
        tasks: list[asyncio.Task[Any]] = []
        self.world.later(self.process, 0.0, lambda: tasks.append(asyncio.ensure_future(life(self.connection))))
        self.world.time.run_until(lambda: bool(tasks) and tasks[0].done(), latest=600.0)
        return tasks[0].result()

    def docs(self) -> list[Doc]:
        docs: list[Doc] = self.world.network.look("docs", "k")
        return docs


async def put(connection: Connection) -> list[bool]:
    written: list[bool] = await connection.put([Doc("k", "n", b"x")])
    return written


def test_a_call_takes_time() -> None:
    line = Line(least=0.1, usual=0.0)
    assert line.run(put) == [True]
    assert line.world.time.now == pytest.approx(0.2)


@pytest.mark.parametrize(("fate", "happens"), [("lost request", False), ("lost reply", True), ("late", True)])
def test_a_call_that_fails_may_have_happened(fate: Any, *, happens: bool) -> None:
    line = Line()
    line.connection.doom("put", fate)
    with pytest.raises(StoreUnavailableError, match="no reply to put"):
        line.run(put)
    assert line.world.time.now == pytest.approx(2.0)
    if fate == "late":
        assert not line.docs()
        line.world.time.run_until(lambda: False, latest=10.0)
    assert bool(line.docs()) == happens


def test_a_store_that_stands_still_does_later_what_has_arrived() -> None:
    line = Line()
    line.world.network.away = "stalled"
    with pytest.raises(StoreUnavailableError):
        line.run(put)
    assert not line.docs()
    line.world.network.away = None
    line.world.network.back()
    line.world.time.run_until(lambda: False, latest=10.0)
    assert line.docs()


def test_a_call_of_a_process_that_has_died_still_happens() -> None:
    line = Line(least=1.0)
    line.world.later(line.process, 0.0, lambda: tasks.append(asyncio.ensure_future(put(line.connection))))
    tasks: list[Any] = []
    line.world.later(line.world.home, 0.5, line.process.die, -9)
    line.world.time.run_until(lambda: False, latest=10.0)
    assert line.docs()
    assert not tasks[0].done()


def test_calls_in_a_row_take_effect_in_that_order() -> None:
    line = Line(usual=0.5)

    async def life(connection: Connection) -> None:
        await asyncio.gather(
            *(connection.put([Doc("k", "n", b"%d" % version, version)]) for version in range(20)),
        )

    line.run(life)
    assert [doc.version for doc in line.docs()] == [20]


def test_a_claim_may_overtake_outcomes_but_not_what_was_added() -> None:
    order: list[str] = []
    line = Line(usual=0.5)
    line.world.network.watchers.append(lambda call: order.append(call.method))
    later = Random(1)

    async def life(connection: Connection) -> None:
        for _ in range(40):
            calls = [connection.add([], 0.0), connection.finish([], 0.0), connection.claim("i", "p", 1, 0.0, ())]
            await asyncio.gather(*calls)
            await asyncio.sleep(later.random())

    line.run(life)
    rounds = [order[at : at + 3] for at in range(0, len(order), 3)]
    assert {tuple(one) for one in rounds} == {("add", "finish", "claim"), ("add", "claim", "finish")}
