"""Finding flows by their state, by what they are for, or by a tag.

No store has an index of these, so a search reads flows, the newest first, for as long as it may take.
"""

import time
from math import inf
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from shiftwork.core.jobs.flow_drawing import state_of
from shiftwork.core.model.flows import FlowRecord
from shiftwork.store.protocol import Store

FlowState: TypeAlias = Literal["running", "broken", "completed", "cancelled"]
FlowPlace: TypeAlias = tuple[float, str]
"""A place in the list of flows: when one was created, and its id."""
FEWEST_FLOWS_READ: Final = 100
"""How many flows a search reads at a time, at least."""


class FlowFilter(Struct, frozen=True, kw_only=True):
    """Which flows are meant: all given conditions must match."""

    state: FlowState | None = None
    worker: str | None = None
    """What it is for."""
    tag: str | None = None

    def matches(self, flow: FlowRecord) -> bool:
        """Return whether a flow is meant."""
        return (
            self.worker in {None, flow.worker}
            and (self.tag is None or self.tag in flow.tags)
            and self.state in {None, state_of(flow.counts)}
        )


EVERY_FLOW: Final = FlowFilter()


class FlowsPage(Struct, frozen=True):
    """Flows, newest first, and the place behind which the next page begins; None at the end."""

    flows: list[FlowRecord]
    behind: FlowPlace | None


async def search_flows(
    store: Store, wanted: FlowFilter, behind: FlowPlace | None, limit: int, seconds: float = inf
) -> FlowsPage:
    """Return flows that match. Fewer than `limit` before the end means that the time was up."""
    found: list[FlowRecord] = []
    size, end = limit if wanted == EVERY_FLOW else max(limit, FEWEST_FLOWS_READ), time.perf_counter() + seconds
    while True:
        read = await store.flows(behind, size)
        for flow in read:
            behind = flow.created_at, flow.id
            if wanted.matches(flow):
                found.append(flow)
                if len(found) == limit:
                    return FlowsPage(found, behind)
        if len(read) < size:
            return FlowsPage(found, None)
        if time.perf_counter() >= end:
            return FlowsPage(found, behind)
