"""The guard of a node, which ends what the node leaves behind."""

import os
import signal
import subprocess
import sys
import time
from fcntl import fcntl
from pathlib import Path
from typing import Final

import psutil
import pytest

from shiftwork.runtime.processes.process_guard import GUARD_PROGRAM, ProcessGuard
from tests.polling import wait_until

F_SETPIPE_SZ: Final = 1031
"""In `fcntl` only on Linux."""


def the_guard() -> psutil.Process:
    """Find the guard's process, whose command line the system may show a moment after its start."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [one for one in psutil.Process().children() if str(GUARD_PROGRAM) in one.cmdline()]
        if found:
            return found[0]
    message = "there is no guard"
    raise AssertionError(message)


def test_a_guard_outlives_the_signals_that_end_its_node() -> None:
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        guard = ProcessGuard()
        guard.watch(sleeper.pid)
        process = the_guard()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            sleeper.wait(0.2)  # its node lives
        guard.close()
        assert sleeper.wait(30) == -signal.SIGKILL
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set")
def test_a_guard_that_is_frozen_until_its_pipe_is_full_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """Closing its pipe would tell it that the node has ended, once it resumes."""
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    guard = ProcessGuard()
    try:
        guard.watch(sleeper.pid)
        frozen = the_guard()
        frozen.send_signal(signal.SIGSTOP)
        with Path(f"/proc/{frozen.pid}/fd/0").open() as orders:
            fcntl(orders, F_SETPIPE_SZ, 1)
        while not caplog.messages:
            guard.renew(time.monotonic() + 600)
        assert frozen.pid != the_guard().pid
        assert sleeper.poll() is None
    finally:
        guard.close()
        sleeper.kill()
        sleeper.wait()


def test_a_guard_ends_what_a_killed_node_leaves_though_another_process_holds_its_input_open() -> None:
    command = f"[sys.executable, '-I', '-S', {str(GUARD_PROGRAM)!r}, str(os.getpid())]"
    program = f"import os, subprocess, sys\nsubprocess.run({command})"
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    theirs, ours = os.pipe()
    node = subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdin=theirs)
    try:
        os.write(ours, b"+%d\n" % sleeper.pid)
        wait_until(lambda: bool(psutil.Process(node.pid).children()))
        node.kill()
        node.wait()
        assert sleeper.wait(30) == -signal.SIGKILL
    finally:
        os.close(ours)
        os.close(theirs)
        sleeper.kill()
        sleeper.wait()


def test_the_signals_still_reach_the_node() -> None:
    guard = ProcessGuard()
    guard.watch(os.getpid() + 4_000_000)  # no group has this number
    try:
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        guard.forget(os.getpid() + 4_000_000)
        guard.close()


def test_a_guard_imports_next_to_nothing() -> None:
    """`signal` alone would take a fifth of its memory."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(GUARD_PROGRAM), str(os.getpid())]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert {"os", "select"} <= imported
    assert not {"enum", "re", "signal", "typing"} & imported
