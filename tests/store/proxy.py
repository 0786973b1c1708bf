"""A proxy in front of a server, which can lose an answer, fall silent, and count round trips.

Where an answer is lost, the server did what it was asked, but its client never hears of it.
"""

import asyncio
import ssl
from collections import deque
from contextlib import suppress
from typing import Self


class Proxy:
    """Passes bytes on in both directions, on this event loop; with a context, it speaks TLS to those who connect."""

    def __init__(self, to: int | str, context: ssl.SSLContext | None = None) -> None:
        self._to = to
        """The port of the server, or the path of its socket."""
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._losing = False
        self._speaking = asyncio.Event()
        self._speaking.set()
        self.trips: list[int] = []
        """For each connection, in the order in which they were made: how often the server has answered."""
        self.answers_after = 0.0
        """Seconds for which every answer is held back."""
        self.depth = 0
        """How many round trips were made one after the other, on whichever connections: requests that were sent before
        an answer came are made at the same time."""
        self.port = 0

    def lose_the_next_answer(self) -> None:
        """Swallow what the server says next, and hang up."""
        self._losing = True

    def fall_silent(self) -> None:
        """Pass nothing on, in neither direction, and keep every connection; new ones are silent, too."""
        self._speaking.clear()

    def speak(self) -> None:
        """Pass on everything again, also what was held back."""
        self._speaking.set()

    def turn_to(self, server: int | str) -> None:
        """Pass new connections on to another server: its port, or the path of its socket."""
        self._to = server

    def forget_connections(self) -> None:
        """Keep every connection, and never pass anything on again there; new ones work."""
        self._speaking.clear()
        self._speaking = asyncio.Event()
        self._speaking.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(self._to, str):
                from_server, to_server = await asyncio.open_unix_connection(self._to)
            else:
                from_server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # the server is away, so this connection is refused late
            writer.transport.abort()
            return
        self._writers += [writer, to_server]
        asks = asyncio.Event()
        asked: deque[int] = deque()
        for task in (
            self._pass_on(reader, to_server, asks, asked, self._speaking),
            self._pass_back(from_server, writer, asks, asked, self._speaking),
        ):
            running = asyncio.ensure_future(task)
            self._tasks.add(running)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asks: asyncio.Event,
        asked: deque[int],
        speaking: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await speaking.wait()
                asks.set()
                asked.append(self.depth + 1)
                writer.write(data)
        writer.transport.abort()

    async def _pass_back(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asks: asyncio.Event,
        asked: deque[int],
        speaking: asyncio.Event,
    ) -> None:
        number = len(self.trips)
        self.trips.append(0)
        with suppress(OSError):
            while data := await reader.read(65536):
                await speaking.wait()
                self.trips[number] += asks.is_set()  # more of the same answer does not count
                asks.clear()
                if self._losing and not data.startswith(b"*3\r\n$8\r\nsmessage"):
                    self._losing = False
                    break
                if self.answers_after:
                    await asyncio.sleep(self.answers_after)
                self.depth = max([self.depth, *asked])
                asked.clear()
                writer.write(data)
        writer.transport.abort()
