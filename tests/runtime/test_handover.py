"""Runs between a node and a process, and how much a pipe holds. `tests/models` tries every interleaving."""

import sys
from collections.abc import Iterator
from fcntl import fcntl
from typing import Final

import pytest

from shiftwork.core.model.jobs import Claimed
from shiftwork.runtime.processes.handover import MOST_RUNS_IN_PROCESS, NodeEnd, ProcessEnd
from shiftwork.runtime.processes.messages import Start

F_SETPIPE_SZ: Final = 1031
"""In `fcntl` only on Linux."""
MANY: Final = 1_000
"""More runs than a pipe of one page holds."""


class World:
    """Both ends, the messages between them, and what has become of each run."""

    def __init__(self) -> None:
        self.node = NodeEnd()
        self.process = ProcessEnd(self.node.tokens, self.node.page)
        self.node.close_page()
        self.unsent: list[Start] = []
        self.sent: list[Start] = []
        self.given: list[str] = []
        self.begun: list[str] = []
        self.places: dict[int, int] = {}
        self.taken_back: list[str] = []

    def do(self, step: str) -> None:
        getattr(self, step.replace(" ", "_"))()

    def give(self) -> None:
        job_id = str(len(self.given) + 1)
        job = Claimed(id=job_id, worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=0.0)
        number, place = self.node.give()
        self.places[number] = place
        self.unsent.append(Start(job, number, place))
        self.given.append(job_id)

    def write(self) -> None:
        self.node.write()

    def send(self) -> None:
        self.sent += self.unsent
        self.unsent.clear()

    def take_back(self) -> None:
        self._took_back(self.node.take_back())

    def take_back_one(self) -> None:
        last = self.given[-1]
        if last not in self.taken_back and self.node.take_back_one(int(last)):
            self._took_back([int(last)])

    def arrive(self) -> None:
        if self.sent:
            self.process.arrived(self.sent.pop(0))

    def take(self) -> None:
        self._took(self.process.take())

    def take_all(self) -> None:
        for start in self.process.take_all():
            self._took(start)

    def _took(self, start: Start | None) -> None:
        if start is not None:
            self.process.times[start.place] = 1.0
            self.begun.append(start.job.id)

    def _took_back(self, numbers: list[int]) -> None:
        for number in numbers:
            assert self.node.began(self.places[number]) is None
            self.node.free(self.places.pop(number))
        self.taken_back += map(str, numbers)

    def close(self) -> None:
        self.process.close()
        self.node.close()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_a_place_is_used_again_without_the_beginning_of_the_run_before(world: World) -> None:
    for step in ("give", "write", "send", "arrive", "take"):
        world.do(step)
    assert world.node.began(world.places[1]) == 1.0
    world.node.free(world.places[1])
    world.do("give")
    assert world.places[2] == world.places[1]
    assert world.node.began(world.places[2]) is None


def test_a_run_whose_message_could_not_be_sent_does_not_stand_in_the_way(world: World) -> None:
    world.do("give")
    world.unsent.clear()
    world.node.free(world.places[1])
    for step in ("give", "write", "send", "arrive", "take"):
        world.do(step)
    assert world.begun == ["2"]


class Narrow(World):
    """A pipe of one page, as a user gets who has very many pipes."""

    def __init__(self) -> None:
        super().__init__()
        fcntl(self.node.tokens, F_SETPIPE_SZ, 1)

    def many(self, step: str, times: int) -> None:
        for _ in range(times):
            self.do(step)


@pytest.fixture
def narrow() -> Iterator[Narrow]:
    world = Narrow()
    yield world
    world.close()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set")


@on_linux
def test_runs_for_which_the_pipe_has_no_room_are_the_process_s_later(narrow: Narrow) -> None:
    narrow.many("give", MANY)
    for step in ("write", "send"):
        narrow.do(step)
    narrow.many("arrive", MANY)
    narrow.do("take all")
    assert 0 < len(narrow.begun) < MANY
    while narrow.node.full:
        narrow.do("write")
        narrow.do("take all")
    assert narrow.begun == narrow.given


@on_linux
def test_runs_for_which_the_pipe_has_no_room_can_be_taken_back(narrow: Narrow) -> None:
    narrow.many("give", MANY)
    for step in ("write", "take back one"):
        narrow.do(step)
    assert narrow.taken_back == [str(MANY)]
    narrow.do("send")
    narrow.many("arrive", MANY)
    narrow.many("take", 10)
    narrow.do("take back")
    assert not narrow.node.full
    narrow.do("take all")
    assert narrow.begun == narrow.given[:10]
    assert narrow.taken_back == [str(MANY), *narrow.given[10:-1]]


@on_linux
def test_what_is_taken_back_is_more_than_one_read(world: World) -> None:
    """Where pages are large, so are pipes."""
    fcntl(world.node.tokens, F_SETPIPE_SZ, 1_048_576)
    for _ in range(20_000):
        world.node.give()
    world.node.write()
    assert world.node.take_back_one(15_000)
    assert len(world.node.take_back()) == 19_999


def test_a_process_that_takes_nothing_has_a_limited_number_of_runs(world: World) -> None:
    for _ in range(MOST_RUNS_IN_PROCESS):
        world.node.give()
    with pytest.raises(RuntimeError, match="more than 65,536 runs"):
        world.node.give()
    assert len(world.node.take_back()) == MOST_RUNS_IN_PROCESS
