"""The names of events, and the hooks that are called for them.

An event is kept in the store for people, and passed to the hooks of the process in which it happened. What happens to
every job (`OF_EVERY_JOB`) is only passed to hooks that name it: it is not kept, and costs nothing without such a hook.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, Protocol, TypeVar

from shiftwork.core.model.event import Event
from shiftwork.errors import UnknownOptionError, nearest

logger: Final = logging.getLogger("shiftwork")

NAMES: Final = {
    "node.started": "a process started running workers",
    "node.stopped": "a process stopped running workers",
    "node.lost": "a node has died, or did not renew its lease in time; its jobs run again elsewhere",
    "leader.elected": "a node became the leader",
    "worker.disabled": "a worker was disabled, by its failures or by a person",
    "worker.enabled": "a worker was enabled",
    "worker.forgotten": "a person or a program deleted what was kept about a worker that is gone",
    "job.started": "a run of a job started",
    "job.completed": "a job was completed",
    "job.failed": "a run of a job failed; 'job.dead' follows if it was the last",
    "job.dead": "a job went to the dead-letter queue",
    "job.lost": "an instance vanished while running a job; the job runs again",
    "jobs.expired": "jobs were cancelled because they were not started in time; one event for all within a minute",
    "jobs.amended": "a person or a program cancelled, retried or discarded jobs",
    "job.inspected": "a person looked at what a running job is doing",
    "job.signalled": "a person or a program sent a signal to a job",
    "flow.cancelled": "a person or a program cancelled a flow",
    "flow.retried": "a person or a program let a flow go on from where it broke",
    "job.triggered": "a person or a program triggered a worker",
    "token.created": "a person created a token for the HTTP API",
    "token.revoked": "a person revoked a token for the HTTP API",
    "store.emptied": "the store lost its content, or was replaced; the definitions were published again",
    "schedule.skipped": "a fire time was skipped",
    "schedule.pulled_back": "a schedule was ahead of a clock that was set back, and goes on from now",
    "schedule.put": "a person or a program added or changed a schedule",
    "schedule.paused": "a person paused a schedule",
    "schedule.resumed": "a person resumed a schedule",
    "schedule.deleted": "a person or a program deleted a schedule",
    "schedule.run": "a person ran a schedule by hand",
    "worker.rescheduled": "a person changed or reset the schedule of a worker",
    "breaker.opened": "a breaker opened",
    "breaker.closed": "a breaker closed again",
    "pool.paused": "a pool was paused",
    "pool.resumed": "a pool was resumed",
    "pool.bounds": "a person changed or reset how many slots a pool may have",
    "pool.scaled": "a pool changed size",
    "pool.failing": "the processes of a pool cannot be started on a node",
    "pool.recovered": "the processes of a pool can be started again",
    "node.drained": "a person drained a node, or undid it",
    "health.problem": "the health monitor found a problem",
    "health.recovered": "a problem is gone",
}

OF_EVERY_JOB: Final = frozenset({"job.started", "job.completed", "job.failed"})
"""Events that are never kept, and not among "*"."""

LONGEST_HOOK_SECONDS: Final = 5.0
"""How long a stop waits for running hooks."""

Hook = Callable[[Event], Awaitable[None] | None]
AnyHook = TypeVar("AnyHook", bound=Hook)


class Listeners(Protocol):
    """Receives events: the hooks here, or in another process."""

    def fire(self, event: Event) -> None:
        """Pass on an event."""

    async def drain(self) -> None:
        """Wait until all events are handled, but not forever."""


class JobListeners(Listeners, Protocol):
    """Receives what happens to every job, too, as far as there are hooks for it."""

    @property
    def names(self) -> Collection[str]:
        """The events for which there is a hook, or "*"."""


class Emit(Protocol):
    """Logs an event, keeps it in the store and calls the hooks."""

    def __call__(self, name: str, subject: str, message: str) -> None: ...


class Hooks:
    """The functions that people registered for events."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self.names: Collection[str] = self._hooks.keys()
        """The events for which there is a hook, or "*"; it follows what is added."""
        self._under_way: set[asyncio.Future[Any]] = set()

    def add(self, name: str, hook: Hook) -> None:
        """Call `hook` on every event with this name; "*" is every event that is kept."""
        if name != "*" and name not in NAMES:
            message = f"unknown event {name!r}: {nearest(name, NAMES)}"
            raise UnknownOptionError(message)
        self._hooks.setdefault(name, []).append(hook)

    def fire(self, event: Event) -> None:
        """Call the hooks. Their errors are logged, and never affect the work."""
        every = () if event.name in OF_EVERY_JOB else self._hooks.get("*", ())
        for hook in (*self._hooks.get(event.name, ()), *every):
            try:
                pending = hook(event)
                must_wait = inspect.isawaitable(pending)
            except BaseException as error:  # noqa: BLE001 - a user's code: not even SystemExit ends the work
                _report(hook, event, error)
                continue
            if must_wait:
                future = asyncio.ensure_future(_guarded(pending, hook, event))
                self._under_way.add(future)
                future.add_done_callback(self._under_way.discard)

    def leave_out(self, task: "asyncio.Task[Any] | None") -> None:
        """Exclude this task from `drain`, because it waits for us."""
        self._under_way -= {task}

    async def drain(self) -> None:
        """Wait for the running asynchronous hooks, but not forever."""
        if self._under_way:
            _, left = await asyncio.wait(self._under_way, timeout=LONGEST_HOOK_SECONDS)
            if left:
                logger.error("%d hooks or alerts did not finish in time and are abandoned", len(left))


async def _guarded(pending: Awaitable[None], hook: Hook, event: Event) -> None:
    try:
        await pending
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the event loop is closing
        _report(hook, event, error)


def _report(hook: Hook, event: Event, error: BaseException) -> None:
    try:
        logger.error("the hook %r for %s failed", hook, event.name, exc_info=error)
    except BaseException:  # noqa: BLE001 - its own text is a user's code, too
        logger.error("a hook for %s failed, and its error cannot be shown", event.name)  # noqa: TRY400
