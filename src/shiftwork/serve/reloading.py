"""`shiftwork run --reload`: a node that starts again whenever a Python file changes. For development.

The node is a process of its own, so what it runs is always the code of the files.
"""

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

logger: Final = logging.getLogger("shiftwork")

FILES_LOOK_SECONDS: Final = 0.4
"""How long to wait between two looks at the files."""
RELOAD_PATIENCE_SECONDS: Final = 2.0
"""How long running jobs may continue after a change. Then they are handed back, and run again with the new code."""
_ENVIRONMENT: Final = "pyvenv.cfg"
_FOREIGN: Final = ("__pycache__", "node_modules", "site-packages")

Stamps = Mapping[str, int]


class Reloader:
    """Runs a command; ends it and starts it again when a Python file below a folder has changed."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._process: Process | None = None
        self._stopping = False

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, which the command receives too. Return its exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        logger.info("reloading: the node restarts when a Python file in %s changes", self._folder)
        while True:
            seen = python_files(self._folder)
            process = await self._start()
            await self._unchanged(seen, process)
            if self._stopping:
                return _exit_code(await process.wait())
            await self._end(process)

    async def _start(self) -> Process:
        # In a session of its own: a Ctrl-C in the terminal is for this process, which passes it on once.
        process = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, start_new_session=True)
        self._process = process
        if self._stopping:  # the signal came while it started
            _send(process, signal.SIGTERM)
        return process

    async def _unchanged(self, seen: Stamps, process: Process) -> None:
        """Return when files have changed and are no longer being written, or when it is time to stop."""
        reported = False
        while not self._stopping and not (names := changed(seen, python_files(self._folder))):
            if process.returncode is not None and not reported:
                logger.warning(
                    "the node has ended (exit code %d); it starts again when a file changes", process.returncode
                )
                reported = True
            await asyncio.sleep(FILES_LOOK_SECONDS)
        if not self._stopping:
            await self._writing_ended()
            logger.info("restarting: %s changed", ", ".join(names))

    async def _writing_ended(self) -> None:
        before: Stamps = {}
        while before != (now := python_files(self._folder)):
            before = now
            await asyncio.sleep(FILES_LOOK_SECONDS)

    async def _end(self, process: Process) -> None:
        while process.returncode is None:  # the second signal ends running jobs; two at once may count as one
            _send(process, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RELOAD_PATIENCE_SECONDS):
                    await process.wait()

    def _stop(self, number: signal.Signals) -> None:
        self._stopping = True
        if self._process is not None:
            _send(self._process, number)


def python_files(folder: Path) -> Stamps:
    """Return when each Python file below a folder was changed; hidden folders and installed packages are left out."""
    return dict(_stamps(folder))


def changed(before: Stamps, after: Stamps) -> list[str]:
    """Return the names of the files that were added, removed or written."""
    paths = {path for path, _ in before.items() ^ after.items()}
    return sorted({Path(path).name for path in paths})


def _stamps(folder: Path) -> Iterator[tuple[str, int]]:
    for path, folders, files in os.walk(folder):
        if _ENVIRONMENT in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in _FOREIGN and not name.startswith(".")]
        for name in files:
            if name.endswith(".py"):
                file = os.path.join(path, name)  # noqa: PTH118 - thousands of them, twice a second
                with contextlib.suppress(OSError):  # it may have been removed since
                    yield file, os.stat(file).st_mtime_ns  # noqa: PTH116 - likewise


def _send(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _exit_code(code: int) -> int:
    """Return an exit code as a shell reports it: 128 and the number of the signal that ended the process."""
    return code if code >= 0 else 128 - code
