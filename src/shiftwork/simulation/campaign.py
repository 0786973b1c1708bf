"""Plays many seeds, in as many processes as are wanted, and adds up what was played."""

import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from multiprocessing import get_context
from queue import SimpleQueue

from msgspec import Struct

from shiftwork.core.words import counted, in_words
from shiftwork.simulation.drawing import draw
from shiftwork.simulation.episode import Episode
from shiftwork.simulation.judged import JudgedSeed, judged, judged_episode, with_faults
from shiftwork.simulation.minimising import minimised

HOUR = 3600.0
FEW = 10.0


class PlayedSeeds(Struct):
    """What was played, in all."""

    seeds: int = 0
    seconds: float = 0.0
    """Virtual time."""
    jobs: int = 0
    runs: int = 0
    interrupted: int = 0
    faults: int = 0

    def add(self, one: JudgedSeed) -> None:
        """Count one more seed."""
        self.seeds += 1
        self.seconds += one.seconds
        self.jobs += one.jobs
        self.runs += one.runs
        self.interrupted += one.interrupted
        self.faults += one.faults

    def text(self, took: float) -> str:
        """Return it in words, given how many seconds it took."""
        hours = self.seconds / HOUR
        each_minute = hours / took * 60.0 if took else 0.0
        rate = f"{each_minute:,.0f}" if each_minute >= FEW else f"{each_minute:.1f}"
        what = f"{counted(self.jobs, 'job')}, {counted(self.runs, 'run')} ({self.interrupted:,} interrupted)"
        return (
            f"{counted(self.seeds, 'seed')}: {what}, {counted(self.faults, 'fault')}\n"
            f"{hours:,.1f} cluster-hours in {in_words(took)}, {rate} in a minute"
        )


def judged_seeds(seeds: Iterable[int], *, jobs: int, size: str | None = None) -> Iterator[JudgedSeed]:
    """Play these seeds in this many processes, and yield each as it is judged."""
    one = partial(judged, size=size)
    if jobs <= 1:
        yield from map(one, seeds)
        return
    over: SimpleQueue[JudgedSeed | BaseException] = SimpleQueue()
    under_way = 0
    # Ctrl-C is for the process that adds up.
    with get_context("spawn").Pool(jobs, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        for seed in seeds:
            pool.apply_async(one, (seed,), callback=over.put, error_callback=over.put)
            under_way += 1
            if under_way == 2 * jobs:  # no seed is begun long before its turn
                under_way -= 1
                yield _next(over)
        for _ in range(under_way):
            yield _next(over)


def _next(over: "SimpleQueue[JudgedSeed | BaseException]") -> JudgedSeed:
    one = over.get()
    if isinstance(one, BaseException):
        raise one
    return one


def smallest(seed: int, size: str | None = None, report: Callable[[int], object] = int) -> tuple[Episode, list[int]]:
    """Return the episode of a seed that fails, and the numbers of the fewest faults with which it still does.

    It counts as the same failure if one of the same rules is refuted. `report` is told how often it was played so far.
    """
    played = count(1)
    episode = draw(seed, size)
    rules = {finding.rule for finding in judged_episode(episode)[0].findings}

    def fails(numbers: list[int]) -> bool:
        report(next(played))
        found = judged_episode(with_faults(episode, numbers))[0].findings
        return any(finding.rule in rules for finding in found)

    return episode, minimised(range(1, len(episode.faults) + 1), fails)
