"""People who want to see what a running job is doing, and the nodes that tell them: a mailbox in the store.

It is one small record. Whoever wants to see something puts a question in; writing it wakes every node; the one that
has the job puts the answer beside the question; whoever asked takes both out again. At rest it is empty.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import MsgspecError, Struct, field, msgpack
from msgspec.structs import replace

from shiftwork.core.model import Doc
from shiftwork.runtime.clock import Clock
from shiftwork.store.protocol import Store

KIND: Final = "look"
NAME: Final = "stacks"
ANSWER_SECONDS: Final = 5.0
"""How long whoever asks waits for an answer."""
KEPT_SECONDS: Final = 30.0
"""What lies there for longer was left behind by somebody who has died."""
MOST_KEPT: Final = 20


class Seen(Struct, frozen=True, kw_only=True):
    """What a job was doing."""

    at: float
    instance: str
    pid: int
    stack: str


class Look(Struct, frozen=True, kw_only=True):
    """Somebody wants to see what this run is doing; and the answer, once there is one."""

    job: str
    fence: int
    asked_at: float
    seen: Seen | None = None


class Mailbox(Struct, frozen=True):
    """All that is asked, by a key that only the asker knows."""

    looks: dict[str, Look] = field(default_factory=dict)


Change = Callable[[dict[str, Look]], dict[str, Look]]


async def read_looks(store: Store) -> dict[str, Look]:
    """What is in the mailbox."""
    return (await _read(store))[1]


async def change_looks(store: Store, now: float, change: Change) -> None:
    """Change what is in the mailbox; what nobody will come for any more is thrown away."""
    while True:
        doc, before = await _read(store)
        fresh = {key: look for key, look in change(before).items() if look.asked_at > now - KEPT_SECONDS}
        newest = sorted(fresh.items(), key=lambda item: item[1].asked_at)[-MOST_KEPT:]
        after = dict(newest)
        if after == before or await store.put(Doc(KIND, NAME, msgpack.encode(Mailbox(after)), doc.version)):
            return


async def _read(store: Store) -> tuple[Doc, dict[str, Look]]:
    for doc in await store.docs(KIND):
        if doc.name == NAME:
            try:
                return doc, msgpack.decode(doc.body, type=Mailbox).looks
            except (MsgspecError, UnicodeDecodeError):
                return doc, {}
    return Doc(KIND, NAME, b""), {}


class Witness:
    """Answers for the jobs of one node."""

    def __init__(self, store: Store, clock: Clock, see: Callable[[str, int], Awaitable[Seen | None]]) -> None:
        self._store = store
        self._clock = clock
        self._see = see
        """What the run of this job, under this fence, is doing; None if it is not here."""

    async def poll(self) -> None:
        """Answer what has been asked."""
        oldest = self._clock.now() - ANSWER_SECONDS
        looks = {
            key: look
            for key, look in (await read_looks(self._store)).items()
            if look.seen is None and look.asked_at > oldest
        }
        seen = await asyncio.gather(*(self._look(look) for look in looks.values()))
        answers = {key: answer for key, answer in zip(looks, seen, strict=True) if answer is not None}
        if answers:
            await change_looks(
                self._store,
                self._clock.now(),
                lambda looks: {key: replace(look, seen=answers.get(key, look.seen)) for key, look in looks.items()},
            )

    async def _look(self, look: Look) -> Seen | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._see(look.job, look.fence)
        except TimeoutError:  # nobody waits for it any more
            return None
