"""Tells whoever started this node how it is: systemd over its socket, and probes by a file.

It speaks from the node's event loop: one that hangs falls silent, and silence is what gets a node restarted. It must
never hold the node up, nor fail it.
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
from shiftwork.runtime.node.condition import Condition
from shiftwork.serve.vitals import Stage, Vitals, forget_vitals, write_vitals

logger: Final = logging.getLogger("shiftwork")

LOOK_SECONDS: Final = 2.0
"""How often it speaks, unless systemd wants to hear more often."""


class Notifier:
    """The socket on which systemd listens, if there is one."""

    def __init__(self, address: str | None, *, watchdog_seconds: float | None = None) -> None:
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds
        """How long systemd waits for a sign of life before it ends the node; None if it does not."""
        self._socket = None if address is None else socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if self._socket is not None:
            self._socket.settimeout(0)
        self._complained = False

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str] = os.environ) -> "Notifier":
        """As systemd says. The variables are taken away: they are for this process, not for those it starts."""
        address, usec, pid = (environ.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
        if address and address[0] not in "/@":
            logger.warning("NOTIFY_SOCKET=%s is neither a path nor @abstract: nobody is notified", address)
            address = ""
        watched = usec.isdecimal() and int(usec) > 0 and pid in {"", str(os.getpid())}
        return cls(address or None, watchdog_seconds=int(usec) / 1e6 if watched else None)

    @property
    def listened_to(self) -> bool:
        """Whether anybody wants to hear."""
        return self._socket is not None

    def tell(self, *lines: str) -> None:
        """Send this, if it can be sent at once."""
        if self._socket is None or self._address is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._complained:
                self._complained = True
                logger.warning("cannot notify systemd: %s", error)

    def close(self) -> None:
        """Say no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Announcer:
    """Says over and over how the node is, for as long as it is entered."""

    def __init__(self, notifier: Notifier, probe_file: Path | None, look: Callable[[], Condition]) -> None:
        self._notifier = notifier
        self._probe_file = probe_file
        self._look = look
        self._stage: Stage = "starting"
        self._said = ""
        self._complained = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin. A probe file that cannot be written is refused now, not at 3 AM."""
        if self._probe_file is not None:
            try:
                write_vitals(self._probe_file, self._vitals(self._look()))
            except OSError as error:
                message = f"cannot write the probe file {self._probe_file}: {error.strerror}"
                raise ConfigurationError(message) from error
        if self._probe_file is not None or self._notifier.listened_to:
            self._task = asyncio.get_running_loop().create_task(self._go_on(), name="shiftwork announcer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, and leave nothing behind."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._probe_file is not None:
            forget_vitals(self._probe_file)
        self._notifier.close()

    def started(self) -> None:
        """The node has started."""
        self._stage = "running"
        self._notifier.tell("READY=1")
        self._say()

    def stopping(self) -> None:
        """The node was told to stop."""
        self._stage = "stopping"
        self._notifier.tell("STOPPING=1")
        asyncio.get_running_loop().call_soon(self._say)  # once it has begun to

    async def _go_on(self) -> None:
        watchdog = self._notifier.watchdog_seconds
        pause = LOOK_SECONDS if watchdog is None else min(LOOK_SECONDS, watchdog / 2)
        while True:
            self._say()
            await asyncio.sleep(pause)

    def _say(self) -> None:
        condition = self._look()
        if condition.words != self._said:
            self._said = condition.words
            self._notifier.tell(f"STATUS={condition.words}")
        # A node that cannot renew its lease does no work: to be restarted is its best chance.
        if self._notifier.watchdog_seconds is not None and condition.leased and self._stage != "starting":
            self._notifier.tell("WATCHDOG=1")
        if self._probe_file is not None:
            self._write(self._probe_file, condition)

    def _write(self, path: Path, condition: Condition) -> None:
        try:
            write_vitals(path, self._vitals(condition))
        except OSError as error:
            if not self._complained:
                logger.warning("cannot write the probe file %s: %s; probes will take this node for dead", path, error)
            self._complained = True
        else:
            self._complained = False

    def _vitals(self, condition: Condition) -> Vitals:
        return Vitals(
            pid=os.getpid(),
            stage=self._stage,
            leased=condition.leased,
            words=condition.words,
            at=time.monotonic(),
        )
