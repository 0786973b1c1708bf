"""The world outside the company, on loopback: a mail server, and a web server with the systems of others behind it.

They take their time, as servers elsewhere do, and write into the journal what has reached them.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from http import HTTPStatus
from typing import Final

from examples.company import journal
from examples.company.place import LOOPBACK

MAIL_SECONDS: Final = 0.35
"""How long the mail server takes to accept a message."""
REPLY_SECONDS: Final = 0.5
"""How long a system takes to reply."""
BANK_NEEDS: Final = 3
"""How many times the bank must be asked until it replies."""

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Outside:
    """The servers, and what is wrong with them."""

    broken: set[str] = field(default_factory=set)
    """The paths that fail with 503."""
    smtp_port: int = 0
    http_port: int = 0
    _asked: Counter[str] = field(default_factory=Counter)

    # ── mail ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def mail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold one conversation by RFC 5321."""
        writer.write(b"220 sink.example ESMTP\r\n")
        while line := await reader.readline():
            match line.split()[:1]:
                case [b"EHLO" | b"ehlo" | b"HELO" | b"helo"]:
                    writer.write(b"250 sink.example\r\n")
                case [b"DATA" | b"data"]:
                    writer.write(b"354 end with <CRLF>.<CRLF>\r\n")
                    message = message_from_bytes(await _until_the_dot(reader))
                    await asyncio.sleep(MAIL_SECONDS)
                    journal.write("mail", str(message["X-Job"]))
                    writer.write(b"250 accepted\r\n")
                case [b"QUIT" | b"quit"]:
                    writer.write(b"221 bye\r\n")
                    return
                case _:
                    writer.write(b"250 ok\r\n")

    # ── web ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def web(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reply to one HTTP request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split()[1]
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        await reader.readexactly(int(headers.get("content-length", 0)))
        await asyncio.sleep(REPLY_SECONDS)
        status = self._status(path, headers["x-job"])
        journal.write(f"{path} {status.value}", headers["x-job"])
        writer.write(f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def _status(self, path: str, job: str) -> HTTPStatus:
        self._asked[job] += 1
        if path in self.broken:
            return HTTPStatus.SERVICE_UNAVAILABLE
        if path == "/bank" and self._asked[job] < BANK_NEEDS:
            return HTTPStatus.GATEWAY_TIMEOUT
        return HTTPStatus.OK


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Outside]:
    """Run both servers on free ports."""
    outside = Outside()
    mail, web = [await asyncio.start_server(_politely(talk), LOOPBACK, 0) for talk in (outside.mail, outside.web)]
    outside.smtp_port, outside.http_port = (server.sockets[0].getsockname()[1] for server in (mail, web))
    try:
        yield outside
    finally:
        mail.close()
        web.close()


def _politely(talk: Talk) -> Talk:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the process on the other side was killed
        finally:
            writer.close()

    return handle


async def _until_the_dot(reader: asyncio.StreamReader) -> bytes:
    lines = []
    while (line := await reader.readuntil(b"\r\n")) != b".\r\n":
        lines.append(line)
    return b"".join(lines)
