"""Runs between a node and a process: each is begun by the process or taken back by the node, whatever comes first."""

import fcntl
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from shiftwork.core.model import Claimed
from shiftwork.runtime.processes.handover import PLACES, NodeEnd, ProcessEnd
from shiftwork.runtime.processes.messages import Start

NODE = ("give", "write", "send", "give", "take back", "give", "write", "send", "take back one")
"""A run is given before its token is written and its message is sent, and may be taken back in between."""
PROCESSES = [
    pytest.param(("arrive", "take", "arrive", "take all", "arrive", "take all"), id="many at a time"),
    pytest.param(("arrive", "take", "arrive", "take", "take", "arrive", "take"), id="one at a time"),
]


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
        self.taken_back: list[str] = []

    def do(self, step: str) -> None:
        getattr(self, step.replace(" ", "_"))()

    def give(self) -> None:
        job_id = str(len(self.given) + 1)
        job = Claimed(id=job_id, worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=0.0)
        self.unsent.append(Start(job, *self.node.give(job_id)))
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
        if last not in self.taken_back and self.node.take_back_one(last):
            self._took_back([last])

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

    def _took_back(self, ids: list[str]) -> None:
        for job_id in ids:
            assert self.node.began(job_id) is None
            self.node.forget(job_id)
        self.taken_back += ids

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
    assert world.node.began("1") == 1.0
    world.node.forget("1")
    world.do("give")
    assert world.node.began("2") is None


def test_a_run_whose_message_could_not_be_sent_does_not_stand_in_the_way(world: World) -> None:
    world.do("give")
    world.unsent.clear()
    world.node.forget("1")
    for step in ("give", "write", "send", "arrive", "take"):
        world.do(step)
    assert world.begun == ["2"]


def test_tokens_for_which_the_pipe_has_no_room_are_written_later(world: World) -> None:
    """It holds 8,192, or 512 where a user has very many pipes."""
    fcntl.fcntl(world.node.tokens, fcntl.F_SETPIPE_SZ, 4_096)
    for _ in range(1_300):
        world.do("give")
    world.do("write")
    full = world.node.full
    world.do("send")
    while world.sent:
        world.do("arrive")
    for step in ("take all", "write", "take all", "write", "take"):
        world.do(step)
    assert (full, world.node.full) == (True, False)
    assert world.node.take_back_one("1300")
    assert world.node.take_back() == [str(number) for number in range(1_026, 1_300)]
    assert len(world.begun) == 1_025


def test_no_more_runs_are_given_than_have_a_place(world: World) -> None:
    for number in range(PLACES):
        world.node.give(str(number))
    with pytest.raises(RuntimeError, match="more than 65,536 runs"):
        world.node.give("one more")
    assert len(world.node.take_back()) == PLACES
