"""What the contexts of all runs in a process use, put together."""

from collections.abc import Awaitable, Callable

from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.context import ContextServices
from shiftwork.runtime.context.retry_choice import what_follows
from shiftwork.runtime.context.steps import step_maker
from shiftwork.runtime.context.store_calls import StoreCalls
from shiftwork.runtime.context.surroundings import Surroundings
from shiftwork.runtime.context.transactions import Transactions
from shiftwork.runtime.store_voice import StoreVoice
from shiftwork.store.protocol import Store


def context_services(
    open_store: Callable[[], Awaitable[Store]],
    clock: Clock,
    *,
    report: Callable[[Claimed, Progress], None],
    surroundings: Surroundings,
    voice: StoreVoice | None = None,
) -> ContextServices:
    """Return what runs here use. `report` gets what they say of their progress.

    `voice` is that of this process, if it has one: a process that a node has started uses the store for its runs only.
    """
    calls = StoreCalls(voice or StoreVoice(clock.monotonic))
    return ContextServices(
        clock,
        report,
        Transactions(open_store, clock, calls).begin,
        surroundings,
        steps_of=step_maker(open_store, clock, calls),
        what_follows=what_follows,
        calls=calls,
    )
