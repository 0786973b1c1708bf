"""Reports the state of a node to systemd over its socket, and to probes by a file.

It runs on the node's event loop: if that hangs, the reports stop, and the node is restarted. It must never delay the
node, nor make it fail.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from shiftwork.errors import ConfigurationError
from shiftwork.runtime.node.node_settings import NodeCondition
from shiftwork.serve.vitals import Stage, Vitals, forget_vitals, write_vitals

logger: Final = logging.getLogger("shiftwork")

NOTIFY_SECONDS: Final = 2.0
"""How often the state is reported, unless systemd wants it more often."""


class Notifier:
    """The socket on which systemd listens, if there is one."""

    def __init__(self, address: str | None, *, watchdog_seconds: float | None = None) -> None:
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds
        """How long systemd waits for a report before it ends the node; None if it does not."""
        self._socket = None if address is None else socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if self._socket is not None:
            self._socket.settimeout(0)
        self._complained = False

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str] = os.environ) -> "Notifier":
        """Return the notifier that systemd's variables describe, and remove these: they are for this process only."""
        address, usec, pid = (environ.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
        if address and address[0] not in "/@":
            logger.warning("NOTIFY_SOCKET=%s is neither a path nor @abstract: systemd is not notified", address)
            address = ""
        watched = usec.isdecimal() and int(usec) > 0 and pid in {"", str(os.getpid())}
        return cls(address or None, watchdog_seconds=int(usec) / 1e6 if watched else None)

    @property
    def listened_to(self) -> bool:
        """Return whether systemd listens."""
        return self._socket is not None

    def send(self, *lines: str) -> None:
        """Send these lines, if they can be sent at once."""
        if self._socket is None or self._address is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._complained:
                self._complained = True
                logger.warning("cannot notify systemd: %s", error)

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Announcer:
    """Reports the state of the node every few seconds, while it is entered."""

    def __init__(self, notifier: Notifier, probe_file: Path | None, look: Callable[[], NodeCondition]) -> None:
        self._notifier = notifier
        self._probe_file = probe_file
        self._look = look
        self._stage: Stage = "starting"
        self._reported = ""
        self._complained = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start reporting. A probe file that cannot be written is rejected now, not at 3 AM."""
        if self._probe_file is not None:
            try:
                write_vitals(self._probe_file, self._vitals(self._look()))
            except OSError as error:
                message = f"cannot write the probe file {self._probe_file}: {error.strerror}"
                raise ConfigurationError(message) from error
        if self._probe_file is not None or self._notifier.listened_to:
            self._task = asyncio.get_running_loop().create_task(self._repeat(), name="shiftwork announcer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reporting, and remove the probe file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._probe_file is not None:
            forget_vitals(self._probe_file)
        self._notifier.close()

    def started(self) -> None:
        """Report that the node has started."""
        self._stage = "running"
        self._notifier.send("READY=1")
        self._report()

    def stopping(self) -> None:
        """Report that the node is stopping."""
        self._stage = "stopping"
        self._notifier.send("STOPPING=1")
        asyncio.get_running_loop().call_soon(self._report)  # once it has started to

    async def _repeat(self) -> None:
        watchdog = self._notifier.watchdog_seconds
        pause = NOTIFY_SECONDS if watchdog is None else min(NOTIFY_SECONDS, watchdog / 2)
        while True:
            self._report()
            await asyncio.sleep(pause)

    def _report(self) -> None:
        condition = self._look()
        if condition.words != self._reported:
            self._reported = condition.words
            self._notifier.send(f"STATUS={condition.words}")
        # A node that cannot renew its lease does no work: a restart is its best chance.
        if self._notifier.watchdog_seconds is not None and condition.leased and self._stage != "starting":
            self._notifier.send("WATCHDOG=1")
        if self._probe_file is not None:
            self._write(self._probe_file, condition)

    def _write(self, path: Path, condition: NodeCondition) -> None:
        try:
            write_vitals(path, self._vitals(condition))
        except OSError as error:
            if not self._complained:
                logger.warning("cannot write the probe file %s: %s; probes will take this node for dead", path, error)
            self._complained = True
        else:
            self._complained = False

    def _vitals(self, condition: NodeCondition) -> Vitals:
        return Vitals(
            pid=os.getpid(),
            stage=self._stage,
            leased=condition.leased,
            words=condition.words,
            at=time.monotonic(),
        )
