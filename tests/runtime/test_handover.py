"""Runs between a node and a process: each is begun by the process or taken back by the node, whatever comes first."""

import sys
from collections.abc import Iterator, Sequence
from fcntl import fcntl
from itertools import combinations
from typing import Final

import pytest

from shiftwork.core.model.jobs import Claimed
from shiftwork.runtime.processes.handover import MOST_RUNS_IN_PROCESS, NodeEnd, ProcessEnd
from shiftwork.runtime.processes.messages import Start

NODE = ("give", "write", "send", "give", "take back", "give", "write", "send", "take back one")
"""A run is given before its token is written and its message is sent, and may be taken back in between."""
PROCESSES = [
    pytest.param(("arrive", "take", "arrive", "take all", "arrive", "take all"), id="many at a time"),
    pytest.param(("arrive", "take", "arrive", "take", "take", "arrive", "take"), id="one at a time"),
]

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

    def settle(self) -> None:
        """Let every message arrive, and the process take what is left."""
        self.node.write()
        self.sent += self.unsent
        for start in self.sent:
            self.process.arrived(start)
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


def interleavings(process: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every order in which the steps of the node and of the process can happen."""
    length = len(NODE) + len(process)
    for places in combinations(range(length), len(NODE)):
        ours, theirs = iter(NODE), iter(process)
        yield tuple(next(ours if at in places else theirs) for at in range(length))


@pytest.mark.parametrize("process", PROCESSES)
def test_in_every_interleaving_each_run_is_begun_once_or_taken_back(process: Sequence[str]) -> None:
    for steps in interleavings(process):
        world = World()
        try:
            for step in steps:
                world.do(step)
            world.settle()
            assert sorted(world.begun + world.taken_back) == world.given, steps
            assert world.begun == sorted(world.begun), f"{steps}: in order"
        finally:
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
