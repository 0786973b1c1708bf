"""Events, by name, and the hooks that are called for them.

An event is kept in the store for people, and passed to the hooks of the process in which it happened.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from shiftwork.core.model import Event
from shiftwork.core.wording import counted
from shiftwork.errors import UnknownOptionError, nearest

logger: Final = logging.getLogger("shiftwork")

NAMES: Final = {
    "node.started": "a process started running workers",
    "node.stopped": "a process stopped running workers",
    "node.lost": "a process did not renew its lease in time; its jobs run again elsewhere",
    "leader.elected": "a node became the leader",
    "worker.disabled": "a worker was disabled, after too many failures or by a person",
    "worker.enabled": "a worker was enabled",
    "job.dead": "a job went to the dead-letter queue",
    "job.lost": "an instance vanished while it ran a job; the job runs again",
    "jobs.amended": "jobs were cancelled, retried or discarded by a person or a program",
    "job.inspected": "a person read the stack of a running job",
    "job.triggered": "a worker was triggered by a person or a program",
    "token.created": "a token for the HTTP API was created",
    "token.revoked": "a token was revoked",
    "schedule.skipped": "a fire time was skipped",
    "breaker.opened": "a breaker opened",
    "breaker.closed": "a breaker closed again",
    "pool.paused": "a pool was paused",
    "pool.resumed": "a pool was resumed",
    "pool.bounds": "a person set or reset how many workers a pool may have",
    "pool.scaled": "the size of a pool changed",
    "pool.failing": "the processes of a pool cannot be started on a node",
    "pool.recovered": "the processes of a pool can be started on a node again",
    "node.drained": "a person drained a node, or undid that",
    "health.problem": "the health monitor found a problem",
    "health.recovered": "a problem no longer exists",
}

LONGEST_HOOK_SECONDS: Final = 5.0
"""How long a stop waits for hooks that are under way."""

Hook = Callable[[Event], Awaitable[None] | None]
AnyHook = TypeVar("AnyHook", bound=Hook)


class Listeners(Protocol):
    """Receives events: the hooks of this process, or of another one."""

    def fire(self, event: Event) -> None:
        """Pass on an event that has just happened."""

    async def drain(self) -> None:
        """Wait until all receivers are done, for a limited time."""


class Hooks:
    """The functions that people registered for events."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self._under_way: set[asyncio.Future[Any]] = set()

    def add(self, name: str, hook: Hook) -> None:
        """Call `hook` for every event of this name; "*" means all names."""
        if name != "*" and name not in NAMES:
            message = f"there is no event {name!r}: {nearest(name, NAMES)}"
            raise UnknownOptionError(message)
        self._hooks.setdefault(name, []).append(hook)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def fire(self, event: Event) -> None:
        """Call the hooks. Their errors are logged: a hook cannot harm the work that caused the event."""
        for hook in (*self._hooks.get(event.name, ()), *self._hooks.get("*", ())):
            try:
                pending = hook(event)
            except Exception:  # a user's code
                logger.exception("the hook %r for %s failed", hook, event.name)
                continue
            if inspect.isawaitable(pending):
                future = asyncio.ensure_future(_guarded(pending, hook, event))
                self._under_way.add(future)
                future.add_done_callback(self._under_way.discard)

    def leave_out(self, task: "asyncio.Task[Any] | None") -> None:
        """Do not wait for this task: it waits for us."""
        self._under_way -= {task}

    async def drain(self) -> None:
        """Wait for asynchronous hooks that are under way, for a limited time."""
        if self._under_way:
            _, left = await asyncio.wait(self._under_way, timeout=LONGEST_HOOK_SECONDS)
            if left:
                logger.error(
                    "%s under way did not finish in time and will not be waited for",
                    counted(len(left), "hook or alert", "hooks or alerts"),
                )


async def _guarded(pending: Awaitable[None], hook: Hook, event: Event) -> None:
    try:
        await pending
    except Exception:  # a user's code
        logger.exception("the hook %r for %s failed", hook, event.name)
