"""Round trips and bytes of each job: the subject drains a backlog through a proxy that counts what passes."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from benchmarks.draining import fill, part
from benchmarks.plan import Sizes
from benchmarks.serving import crew

Figures = dict[str, float]
SOCKET: Final = ".s.PGSQL.5432"
CHUNK: Final = 1 << 16


@dataclass
class Passed:
    """What has passed the proxy. A round trip is a client that speaks after its server did, or for the first time."""

    trips: int = 0
    bytes: int = 0


class Proxy:
    """Forwards the connections of clients, each to a connection of its own."""

    def __init__(self, host: str, port: int, folder: str) -> None:
        self.passed = Passed()
        self._to = host, port, folder
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Forward one connection until either side closes it."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        host, port, folder = self._to
        opening = asyncio.open_unix_connection(f"{folder}/{SOCKET}") if folder else asyncio.open_connection(host, port)
        server, to_server = await opening
        spoke = [""]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(client, to_server, "client", spoke))
                group.create_task(self._forward(server, to_client, "server", spoke))
        except* OSError:
            pass
        except* asyncio.CancelledError:
            pass  # by `close`: the connection ends here
        finally:
            to_client.close()
            to_server.close()

    async def close(self) -> None:
        """End every connection."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _forward(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, who: str, spoke: list[str]
    ) -> None:
        while data := await source.read(CHUNK):
            self.passed.bytes += len(data)
            self.passed.trips += who == "client" and spoke[0] != "client"
            spoke[0] = who
            to.write(data)
            await to.drain()
        to.close()


@asynccontextmanager
async def counted(url: str) -> AsyncIterator[tuple[str, Passed]]:
    """The URL of a proxy before this server, and what passes it."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    host = unquote(host)
    with tempfile.TemporaryDirectory(prefix="shiftwork-wire-") as folder:
        if host.startswith("/"):
            proxy = Proxy("", 0, host)
            server = await asyncio.start_unix_server(proxy.serve, Path(folder) / SOCKET)
            netloc = quote(folder, safe="")
        else:
            proxy = Proxy(parts.hostname or "", parts.port or 0, "")
            server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
            netloc = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield parts._replace(netloc=f"{user}@{netloc}" if user else netloc).geturl(), proxy.passed
        finally:
            server.close()
            await proxy.close()


async def wire(name: str, url: str, sizes: Sizes) -> Figures:
    """What each job costs, from the first jobs that have run until all have."""
    n = part(name, sizes.wire)
    await fill(name, url, n)
    async with counted(url) as (through, passed):
        return await asyncio.to_thread(_watch, name, through, passed, n)


def _watch(name: str, url: str, passed: Passed, n: int) -> Figures:
    with crew(name, url) as running:
        first = running.until(lambda seen: seen.n > 0)
        trips, size = passed.trips, passed.bytes
        last = running.until(lambda seen: seen.n >= n)
        jobs = last.n - first.n
        return {"trips": (passed.trips - trips) / jobs, "wire_bytes": (passed.bytes - size) / jobs}
