"""Replies to requests for the stacks of running jobs. A request is a doc in the store, and so is its reply."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec.structs import replace

from shiftwork.core.doc_kinds import STACK_REQUESTS, STACKS_NAME
from shiftwork.core.model.doc_types import StackReply, StackRequest, StackRequests, kept_stack_requests
from shiftwork.runtime.clock import Clock
from shiftwork.store.docs import change, read
from shiftwork.store.protocol import Store

REPLY_SECONDS: Final = 5.0
"""How long the process that asked waits for a reply."""

Requests = Mapping[str, StackRequest]


async def read_stack_requests(store: Store) -> dict[str, StackRequest]:
    """Return the open requests, by key."""
    return (await read(store, STACK_REQUESTS, STACKS_NAME) or StackRequests()).requests


async def change_stack_requests(store: Store, now: float, new: Callable[[Requests], Requests]) -> None:
    """Change the open requests. Those that were left behind are removed."""
    await change(
        store,
        STACK_REQUESTS,
        STACKS_NAME,
        lambda found: kept_stack_requests(new((found or StackRequests()).requests), now),
    )


class StackResponder:
    """Replies for the jobs of one node."""

    def __init__(self, store: Store, clock: Clock, see: Callable[[str, int], Awaitable[StackReply | None]]) -> None:
        self._store = store
        self._clock = clock
        self._see = see
        """Returns what the run of a job under a fence is doing; None if that run is not on this node."""

    async def poll(self) -> None:
        """Reply to the requests for jobs that run here."""
        oldest = self._clock.now() - REPLY_SECONDS
        requests = {
            key: request
            for key, request in (await read_stack_requests(self._store)).items()
            if request.reply is None and request.asked_at > oldest
        }
        found = await asyncio.gather(*(self._reply(request) for request in requests.values()))
        replies = {key: reply for key, reply in zip(requests, found, strict=True) if reply is not None}
        if replies:
            await change_stack_requests(self._store, self._clock.now(), lambda open_ones: _with(open_ones, replies))

    async def _reply(self, request: StackRequest) -> StackReply | None:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                return await self._see(request.job, request.fence)
        except TimeoutError:  # nothing waits for it now
            return None


def _with(requests: Requests, replies: Mapping[str, StackReply]) -> dict[str, StackRequest]:
    return {key: replace(request, reply=replies.get(key, request.reply)) for key, request in requests.items()}
