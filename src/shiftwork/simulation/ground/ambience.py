"""Time, chance and identity as the standard library tells them, while a simulation runs.

What the runtime asks of `time`, `random`, `secrets`, `os` and `socket` is answered here: by the clocks of the machine
whose process asks, and by numbers that follow from the seed. Other threads of this process get the real answers: one
that finished a job of its own would take a simulated pid for that of a forked child, and end the process.
"""

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Final

from shiftwork.handles import worker
from shiftwork.simulation.ground.strands import SIMULATED
from shiftwork.simulation.ground.virtual_time import VirtualTime

EPOCH: Final = 1_800_000_000.0
"""What the right time is when virtual time begins."""


@contextmanager
def ambience(virtual: VirtualTime, seed: int) -> Iterator[None]:
    """Let everything follow from the seed and from virtual time until the block ends."""
    with ExitStack() as undo:
        undo.callback(random.setstate, random.getstate())
        random.seed(seed)
        SIMULATED.on = True
        undo.callback(SIMULATED.__dict__.clear)
        for where, name, instead in _instead(virtual, random.Random(f"{seed} tokens")):
            real = getattr(where, name)
            undo.callback(setattr, where, name, real)
            setattr(where, name, _here(instead, real) if callable(real) else instead)
        yield


def _here(instead: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that answers as `instead` in the simulation's threads, and as the real one elsewhere."""

    def answer(*args: Any) -> Any:
        return instead(*args) if hasattr(SIMULATED, "on") else real(*args)

    return answer


def _instead(virtual: VirtualTime, chance: random.Random) -> Iterator[tuple[Any, str, Any]]:
    def wall() -> float:
        process = virtual.current
        return EPOCH + virtual.now + (0.0 if process is None else process.machine.wall)

    def up(*_: object) -> float:
        process = virtual.current
        return virtual.now + (0.0 if process is None else process.machine.up)

    yield time, "time", wall
    yield time, "monotonic", up
    yield time, "clock_gettime", up
    yield os, "getpid", lambda: 1 if virtual.current is None else virtual.current.pid
    yield os, "urandom", chance.randbytes
    yield secrets, "token_hex", lambda length=32: chance.randbytes(length).hex()
    yield socket, "gethostname", lambda: "nowhere" if virtual.current is None else virtual.current.machine.name
    yield worker, "_order", count()
    yield worker, "_random_part", chance.randbytes(7).hex()
