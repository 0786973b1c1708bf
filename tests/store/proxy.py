"""A proxy in front of a server, which can lose an answer: the server did what it was asked, and nobody hears of it."""

import asyncio
import ssl
from contextlib import suppress
from typing import Self


class Proxy:
    """Passes bytes on in both directions, on this event loop; with a context, it speaks TLS to those who connect."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._to = port
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._losing = False
        self.port = 0

    def lose_the_next_answer(self) -> None:
        """Swallow what the server says next, and hang up."""
        self._losing = True

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
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, to_server]
        for task in (self._pass_on(reader, to_server), self._pass_back(from_server, writer)):
            running = asyncio.ensure_future(task)
            self._tasks.add(running)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.transport.abort()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._losing and not data.startswith(b"*3\r\n$8\r\nsmessage"):
                    self._losing = False
                    break
                writer.write(data)
        writer.transport.abort()
