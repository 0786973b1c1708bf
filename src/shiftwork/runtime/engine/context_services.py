"""What the contexts of all runs in a process use, put together."""

from collections.abc import Awaitable, Callable

from shiftwork.core.model import Claimed, Progress
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.context import ContextServices
from shiftwork.runtime.engine.retry_choice import what_follows
from shiftwork.runtime.engine.steps import step_maker
from shiftwork.runtime.engine.surroundings import Surroundings
from shiftwork.runtime.engine.transactions import Transactions
from shiftwork.store.protocol import Store


def context_services(
    open_store: Callable[[], Awaitable[Store]],
    clock: Clock,
    *,
    report: Callable[[Claimed, Progress], None],
    surroundings: Surroundings,
) -> ContextServices:
    """Return what runs here use. `report` gets what they say of their progress."""
    return ContextServices(
        clock,
        report,
        Transactions(open_store, clock).begin,
        surroundings,
        steps_of=step_maker(open_store, clock),
        what_follows=what_follows,
    )
