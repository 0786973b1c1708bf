"""Jobs that many callers of one event loop add, sent together: while some are on their way, those that come meanwhile
make the next script. It owns how many go together, and who waits for which answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from shiftwork.core.model import NewJob
from shiftwork.errors import LifecycleError
from shiftwork.store.redis.client import Client, LoopConnection, Sent

ENOUGH: Final = 500
ENOUGH_BYTES: Final = 1_000_000
"""So many jobs wait for nobody: they are sent at once, and the server works while the next ones are made."""

MOST_AT_ONCE: Final = 10_000
MOST_BYTES_AT_ONCE: Final = 64_000_000
"""More jobs than this are added by several scripts, one right after the other, so that others get a word in, and the
server's limit for what one client sends (a gigabyte) is far away."""

Rows = Sequence[tuple[Any, ...]]
Caller = tuple[asyncio.Future[list[Any]], int]


class Together:
    """Those that add jobs on one event loop."""

    def __init__(
        self,
        client: Client,
        line: LoopConnection,
        *,
        send: Callable[[Rows, Sequence[bytes]], Sent],
        hear: Callable[[list[Any]], list[Any]],
    ) -> None:
        self._client = client
        self._send = send
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._on_the_way = 0
        self._is_about_to_go = False
        self._callers: list[Caller] = []
        self._rows: list[tuple[Any, ...]] = []
        self._behind: list[bytes] = []
        self._bytes = 0
        line.before = self.go

    def add(self, rows: Rows, behind: Sequence[bytes]) -> Awaitable[list[Any]]:
        """Send these rows, with those of others; whoever awaits it gets the answers to their own."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        self._callers.append((future, len(rows)))
        self._rows += rows
        self._behind += behind
        self._bytes += sum(map(len, behind))
        if len(self._rows) >= ENOUGH or self._bytes >= ENOUGH_BYTES:
            self._go_now()
        elif self._on_the_way == 0 and not self._is_about_to_go:
            # Not at once: whoever was woken together with this caller adds in the same turn of the loop.
            self._is_about_to_go = True
            self._loop.call_soon(self._go_now)
        return future

    def go(self) -> Sent | None:
        """Send what has been gathered: something else is to be sent, and must not overtake it."""
        if not self._callers:
            return None
        callers, self._callers = self._callers, []
        rows, self._rows = self._rows, []
        behind, self._behind, self._bytes = self._behind, [], 0
        try:
            sent = self._send(rows, behind)
        except LifecycleError as error:  # it was closed meanwhile
            for future, _ in callers:
                if not future.done():
                    future.set_exception(error)
            return None
        self._on_the_way += 1
        sent.answer.add_done_callback(partial(self._arrived, sent, callers))
        return sent

    def _go_now(self) -> None:
        self._is_about_to_go = False
        sent = self.go()
        if sent is not None:
            sent.line.flush()

    def _arrived(self, sent: Sent, callers: list[Caller], answer: asyncio.Future[Any]) -> None:
        self._on_the_way -= 1
        if answer.cancelled() or answer.exception() is not None:
            again = asyncio.ensure_future(self._client.answer(sent))
            again.add_done_callback(partial(self._deal_out, callers))
        else:
            self._deal_out(callers, answer)
        if self._on_the_way == 0:
            self._go_now()

    def _deal_out(self, callers: list[Caller], answer: asyncio.Future[Any]) -> None:
        if answer.cancelled():
            for future, _ in callers:
                future.cancel()
            return
        error, answers, at = answer.exception(), [], 0
        if error is None:
            [answers] = self._hear(answer.result())
        for future, many in callers:
            if future.done():  # whoever asked has given up
                pass
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(answers[at : at + many])
            at += many


def in_parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Jobs, as many at a time as one script adds."""
    begin = size = 0
    for at, job in enumerate(jobs):
        if at - begin >= MOST_AT_ONCE or (size and size + len(job.payload) > MOST_BYTES_AT_ONCE):
            yield jobs[begin:at]
            begin, size = at, 0
        size += len(job.payload)
    if begin < len(jobs):
        yield jobs[begin:]
