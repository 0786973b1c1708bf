"""The bare Redis: two Lua scripts, hiredis, one connection for calls and one for notifications.

- `next`: the last id and the last fence
- `ready`: ids in rank order
- `held`: ids by the end of their lease
- `fence`: of each held id, the fence of its claim
- `payload`: of each id
"""

import asyncio
import time
from collections import deque
from typing import Any, Final, cast
from urllib.parse import urlsplit

from hiredis import Reader, pack_command

from benchmarks.subjects.bare import BATCH, LEASE_SECONDS, PAYLOAD, Bare, Claimed, Done

CHUNK: Final = 1000
ADD: Final = """
local n = tonumber(ARGV[1])
local last = redis.call('HINCRBY', 'next', 'id', n)
local ready, payloads = {}, {}
for i = 1, n do
    local id = last - n + i
    ready[2 * i - 1], ready[2 * i] = ARGV[2], id
    payloads[2 * i - 1], payloads[2 * i] = id, ARGV[2 + i]
end
redis.call('ZADD', 'ready', unpack(ready))
redis.call('HSET', 'payload', unpack(payloads))
redis.call('PUBLISH', 'added', '')
"""
EXCHANGE: Final = """
local batch, lease_until = ARGV[1], ARGV[2]
local ids, done = {}, 0
for i = 3, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
if #ids > 0 then
    local fences, good = redis.call('HMGET', 'fence', unpack(ids)), {}
    for i, id in ipairs(ids) do
        if fences[i] == ARGV[3 * i + 1] then good[#good + 1] = id end
    end
    done = #good
    if done > 0 then
        redis.call('ZREM', 'held', unpack(good))
        redis.call('HDEL', 'fence', unpack(good))
        redis.call('HDEL', 'payload', unpack(good))
    end
end
local popped = redis.call('ZPOPMIN', 'ready', batch)
if #popped == 0 then return {done, 0, {}, {}} end
local fence, claimed, held, fences = redis.call('HINCRBY', 'next', 'fence', 1), {}, {}, {}
for i = 1, #popped, 2 do
    claimed[#claimed + 1] = popped[i]
    held[i], held[i + 1] = lease_until, popped[i]
    fences[i], fences[i + 1] = popped[i], fence
end
redis.call('ZADD', 'held', unpack(held))
redis.call('HSET', 'fence', unpack(fences))
return {done, fence, claimed, redis.call('HMGET', 'payload', unpack(claimed))}
"""


class Wire(asyncio.Protocol):
    """A connection. Answers arrive in the order of the commands; a published message sets `heard`."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self._reader = Reader()
        self._asked: deque[asyncio.Future[Any]] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (answer := self._reader.gets()) is not False:
            if self._asked:
                _settle(self._asked.popleft(), answer)
            else:
                self.heard.set()

    def ask(self, *command: str | bytes | float) -> asyncio.Future[Any]:
        """Send a command; returns a future for its answer."""
        answer = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self.transport.write(pack_command(command))  # type: ignore[arg-type]
        return answer


def _settle(asked: asyncio.Future[Any], answer: Any) -> None:
    if asked.cancelled():
        return
    if isinstance(answer, Exception):
        asked.set_exception(answer)
    else:
        asked.set_result(answer)


class BareRedis(Bare):
    _bell: Wire | None = None

    async def open(self) -> None:
        self._wire = await self._connect()
        self._add = await self._wire.ask("SCRIPT", "LOAD", ADD)
        self._exchange = await self._wire.ask("SCRIPT", "LOAD", EXCHANGE)

    async def _connect(self) -> Wire:
        at = urlsplit(self.url)
        _, wire = await asyncio.get_running_loop().create_connection(Wire, at.hostname or "", at.port or 6379)
        return wire

    async def add(self) -> None:
        await self._wire.ask("EVALSHA", self._add, 0, 1, time.time(), PAYLOAD)

    async def add_many(self, n: int) -> None:
        chunks = [min(CHUNK, n - begun) for begun in range(0, n, CHUNK)]
        now = time.time()
        added = [self._wire.ask("EVALSHA", self._add, 0, size, now, *[PAYLOAD] * size) for size in chunks]
        await asyncio.gather(*added)

    async def exchange(self, done: list[Done]) -> list[Claimed]:
        flat = [part for job in done for part in job]
        lease_until = time.time() + LEASE_SECONDS
        answer = await self._wire.ask("EVALSHA", self._exchange, 0, BATCH, lease_until, *flat)
        finished, fence, ids, payloads = answer
        assert finished == len(done), f"{finished} of {len(done)} fences held"
        return [(job_id, fence, payload) for job_id, payload in zip(ids, payloads, strict=True)]

    async def listen(self) -> None:
        self._bell = await self._connect()
        await self._bell.ask("SUBSCRIBE", "added")

    async def wait(self) -> None:
        assert self._bell is not None, "listen() was not called"
        await self._bell.heard.wait()
        self._bell.heard.clear()

    async def close(self) -> None:
        self._wire.transport.close()
