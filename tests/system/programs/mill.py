"""An app with a pool of each kind whose jobs can be told to misbehave in every way that a node must survive.

Every run notes what it does in a file: `<monotonic ns> <pid> <worker> <number> <what>`. Workers that block each other
hold a lock on a file while they run, which the system takes back when their process dies: whoever finds it taken has
met somebody it must never meet, and notes "overlap".
"""

import asyncio
import ctypes
import fcntl
import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftwork import WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
gate = Path(os.environ["MILL_LOG"]).with_suffix(".open")
"""While this file is missing, jobs that wait for it continue."""

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ.get("MILL_LEASE", "15")))
app.register_pool("apart", kind="process", min_workers=2, max_workers=2, cpu=0.1)
app.register_pool("threads", kind="thread", min_workers=4, max_workers=4, heartbeat_interval=1)
app.register_pool("coroutines", kind="async", min_workers=6, max_workers=6, heartbeat_interval=1)
app.register_pool("hungry", kind="process", min_workers=0, max_workers=1, cpu=0.1, max_memory_per_instance=120_000_000)
app.register_pool("hungry-coroutines", kind="async", min_workers=0, max_workers=4, max_memory_per_instance=120_000_000)
app.register_pool("worn", kind="process", min_workers=0, max_workers=1, cpu=0.1, max_jobs_per_instance=5)


def note(worker: str, number: int, what: str) -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {worker} {number} {what}\n".encode())


@contextmanager
def noted(worker: str, number: int) -> Iterator[None]:
    note(worker, number, "start")
    yield
    note(worker, number, "end")


@contextmanager
def alone(worker: str, number: int) -> Iterator[None]:
    """No worker that blocks us is running."""
    lock = os.open(f"{os.environ['MILL_LOG']}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note(worker, number, "overlap")
    try:
        with noted(worker, number):
            yield
    finally:
        os.close(lock)


# ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.task(pool="apart")
def nap_apart(number: int, seconds: float) -> int:
    with noted("nap_apart", number):
        time.sleep(seconds)
    return number


@app.task(pool="threads")
def nap_in_a_thread(number: int, seconds: float) -> int:
    with noted("nap_in_a_thread", number):
        time.sleep(seconds)
    return number


@app.task(pool="coroutines")
async def nap_in_a_coroutine(number: int, seconds: float) -> int:
    with noted("nap_in_a_coroutine", number):
        await asyncio.sleep(seconds)
    return number


@app.task(pool="threads", max_retries=0, timeout_seconds=0.5)
def quick_in_a_thread(number: int) -> None:
    note("quick_in_a_thread", number, "start")


@app.task(pool="coroutines", max_retries=0, timeout_seconds=0.5)
async def quick_in_a_coroutine(number: int) -> None:
    note("quick_in_a_coroutine", number, "start")


@app.task(pool="apart", max_running=1)
def left(number: int, seconds: float) -> int:
    with alone("left", number):
        time.sleep(seconds)
    return number


@app.task(pool="coroutines", blocks=["left"], max_running=1)
async def right(number: int, seconds: float) -> int:
    with alone("right", number):
        await asyncio.sleep(seconds)
    return number


@app.task(pool="threads", blocks=["left", "right"], max_running=1)
def middle(number: int, seconds: float) -> int:
    with alone("middle", number):
        time.sleep(seconds)
    return number


@app.task(pool="apart")
def wait_apart(number: int) -> int:
    with alone("wait_apart", number):
        while not gate.exists():
            time.sleep(0.01)
    return number


@app.task(pool="threads", max_running=1)
def wait_in_a_thread(number: int) -> int:
    """Wait, with a thread that keeps the process from ending by itself."""
    threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
    with alone("wait_in_a_thread", number):
        while not gate.exists():
            time.sleep(0.01)
    return number


@app.task(pool="coroutines")
async def wait_in_a_coroutine(number: int) -> int:
    with noted("wait_in_a_coroutine", number):
        while not gate.exists():
            await asyncio.sleep(0.01)
    return number


# ── misbehaviour ─────────────────────────────────────────────────────────────────────────────────────────────────────


def poison(number: int) -> None:
    note("poison", number, "start")
    time.sleep(0.05)
    os.abort()


@app.task(pool="coroutines")
async def poison_in_a_coroutine(number: int) -> None:
    note("poison", number, "start")
    await asyncio.sleep(0.05)
    os.abort()


poison_apart = app.task(name="poison_apart", pool="apart")(poison)
poison_in_a_thread = app.task(name="poison_in_a_thread", pool="threads")(poison)


def hold(number: int, seconds: int) -> int:
    """Sleep in C without letting go of the interpreter's lock."""
    with noted("hold", number):
        ctypes.PyDLL(None).sleep(seconds)
    return number


async def hold_loop(number: int, seconds: int) -> int:
    with noted("hold_loop", number):
        time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return number


hold_everything = app.task(name="hold_everything", pool="threads", timeout_seconds=30, max_retries=0)(hold)
hold_the_loop = app.task(name="hold_the_loop", pool="coroutines", timeout_seconds=30, max_retries=0)(hold_loop)
hold_too_long = app.task(name="hold_too_long", pool="threads", timeout_seconds=1, max_retries=0)(hold)
hold_the_loop_too_long = app.task(name="hold_the_loop_too_long", pool="coroutines", timeout_seconds=1, max_retries=0)(
    hold_loop
)


@app.task(pool="coroutines", timeout_seconds=1.0, max_retries=0)
async def swallow(number: int) -> None:
    """A coroutine that is not to be cancelled."""
    note("swallow", number, "start")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note("swallow", number, "swallowed")


@app.task(pool="threads", timeout_seconds=1.0, max_retries=0)
def oversleep(number: int) -> None:
    note("oversleep", number, "start")
    time.sleep(600)


@app.task(pool="apart", timeout_seconds=1.0, max_retries=0)
def ignore(number: int) -> None:
    """A process that does not end when it is asked to, and has started another one."""
    ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(1))  # SIG_IGN; Python's own way wants the main thread
    child = subprocess.Popen(["sleep", "600"])
    note("ignore", child.pid, "start")
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        time.sleep(0.1)


@app.task(pool="apart", timeout_seconds=None, max_retries=0)
def endless(number: int) -> None:
    note("endless", number, "start")
    time.sleep(600)


@app.task(pool="apart", max_retries=0)
def spin(number: int) -> None:
    note("spin", number, "start")
    while not gate.exists():
        number += sum(range(1000))


@app.task(pool="hungry", max_retries=0)
def eat(megabytes: int) -> None:
    eaten = bytearray(os.urandom(1_000_000) * megabytes)
    note("eat", len(eaten) // 1_000_000, "start")
    time.sleep(600)


@app.task(pool="hungry-coroutines", max_retries=0)
async def leak(number: int, megabytes: int) -> int:
    leaked.append(os.urandom(1_000_000) * megabytes)
    note("leak", number, "start")
    return os.getpid()


leaked: list[bytes] = []


@app.task(pool="worn")
def wear(number: int) -> int:
    return os.getpid()


@app.task(pool="apart", max_retries=0)
def big(data: str) -> str:
    return data[::-1]


@app.task(pool="coroutines", max_retries=0)
async def big_in_a_coroutine(data: str) -> str:
    return data[::-1]


@app.task(pool="apart", max_retries=0)
def hang_up(number: int) -> None:
    """Close what is not one's own: all of it, as programs that become daemons do, or only what sockets there are."""
    note("hang_up", number, "start")
    for fd in range(3, 256):
        if number == 0 or is_socket(fd):
            with suppress(OSError):
                os.close(fd)
    time.sleep(600)


@app.task(pool="coroutines", max_retries=0, timeout_seconds=None)
async def babble(number: int) -> None:
    """Send the node something that is not a message."""
    note("babble", number, "start")
    for fd in filter(is_socket, range(3, 256)):
        with suppress(OSError):
            os.write(fd, b"\x05\x00\x00\x00hello, world")
    await asyncio.sleep(600)


def is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False
