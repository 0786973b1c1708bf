"""The time of the simulation: it jumps; processes die, freeze and lose the processor."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from shiftwork.simulation.ground.process_loop import ProcessLoop
from shiftwork.simulation.ground.sim_machine import SimMachine, SimProcess
from shiftwork.simulation.ground.virtual_time import StuckError, VirtualTime

Life = Callable[[], Coroutine[Any, Any, None]]


class Playground:
    """Virtual time and one machine."""

    def __init__(self) -> None:
        self.time = VirtualTime(Random(1))
        self.machine = SimMachine("m", wall=0.0, up=100.0, cores=1.0)
        self.diary: list[tuple[float, str]] = []
        self.tasks: list[object] = []

    def process(self, life: Life | None = None) -> SimProcess:
        process = SimProcess("p", self.machine, self.machine.give_pid())
        process.loop = ProcessLoop(self.time, process)
        if life is not None:
            self.time.soon(process, lambda: self.tasks.append(process.loop.create_task(life())))
        return process

    def note(self, what: str) -> None:
        self.diary.append((self.time.now, what))

    def run(self, until: float = 100.0) -> None:
        self.time.run_until(lambda: False, latest=until)


@pytest.fixture
def world() -> Playground:
    return Playground()


def test_time_jumps_to_the_next_timer(world: Playground) -> None:
    async def life() -> None:
        await asyncio.sleep(3600)
        world.note("an hour later")

    world.process(life)
    world.run(until=7200)
    assert world.diary == [(3600.0, "an hour later")]
    assert world.time.now == 7200


def test_a_dead_process_stops_at_its_await(world: Playground) -> None:
    async def life() -> None:
        try:
            world.note("before")
            await asyncio.sleep(2)
            world.note("after")
        finally:
            world.note("finally")

    process = world.process(life)
    world.time.later(world.process(), 1.0, process.die, -9)
    world.run()
    assert world.diary == [(0.0, "before")]
    assert process.status == -9


def test_a_frozen_process_does_what_is_due_once_it_thaws(world: Playground) -> None:
    async def life() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            world.note("tick")

    process, other = world.process(life), world.process()
    world.time.later(other, 1.5, world.time.freeze, process)
    world.time.later(other, 5.0, world.time.thaw, process)
    world.run()
    assert world.diary == [(1.0, "tick"), (5.0, "tick"), (6.0, "tick")]


def test_others_continue_while_a_process_has_lost_the_processor(world: Playground) -> None:
    async def interrupted() -> None:
        world.note("one begins")
        world.time.preempt(2.0)  # in the middle of something, without an await
        world.note("one goes on")

    async def other() -> None:
        await asyncio.sleep(1)
        world.note("two")

    world.process(interrupted)
    world.process(other)
    world.run()
    assert world.diary == [(0.0, "one begins"), (1.0, "two"), (2.0, "one goes on")]


def test_a_process_that_dies_without_the_processor_does_nothing_more_of_its_own(world: Playground) -> None:
    async def life() -> None:
        world.time.preempt(2.0)
        world.note("the rest of this step")
        await asyncio.sleep(1)
        world.note("never")

    process = world.process(life)
    world.time.later(world.process(), 1.0, process.die, -9)
    world.run()
    assert world.diary == [(2.0, "the rest of this step")]


def test_callbacks_of_one_process_keep_their_order(world: Playground) -> None:
    processes = [world.process() for _ in range(3)]
    for number in range(20):
        for place, process in enumerate(processes):
            world.time.soon(process, world.note, f"{place}:{number}")
    world.run()
    said = [what for _, what in world.diary]
    assert said != sorted(said, key=lambda what: int(what.split(":")[1])), "the processes take turns at random"
    for place in range(3):
        assert [what for what in said if what.startswith(f"{place}:")] == [f"{place}:{n}" for n in range(20)]


def test_a_loop_in_which_time_does_not_pass_is_stopped(world: Playground) -> None:
    async def life() -> None:
        while world.time.now < 1:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    world.process(life)
    with pytest.raises(StuckError, match="time does not pass"):
        world.run()
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
