"""What all requests share: cached answers, the history, the streams, and access."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from shiftwork.control.access.tokens import TokenCheck
from shiftwork.control.control import Control
from shiftwork.core.jobs.flow_drawing import FlowGraph
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.observing.dead_groups import Group, groups_of
from shiftwork.views.overview import Overview
from shiftwork.views.shapes.system import WorkerShape, worker_shape
from shiftwork.web.access import Access, Identify
from shiftwork.web.history import CHART_STEP_SECONDS, ChartHistory
from shiftwork.web.live import Live
from shiftwork.web.shared_answers import DerivedAnswer, SharedAnswer, look_at
from shiftwork.web.visitor_limits import Limiter, Rate, RequestPlaces, StreamPlaces
from shiftwork.web.what_if import WhatIf

MOST_DEAD: Final = 5_000
"""How many dead jobs are read in order to group them, the newest first."""
DEAD_SECONDS: Final = 5.0
"""How long the groups are kept, unless jobs are changed here."""
DOCTOR_SECONDS: Final = 15.0
"""How long the findings of the doctor are kept."""
MOST_FLOWS_KEPT: Final = 20
"""How many flows that people look at are kept for a moment."""
READY_SECONDS: Final = 2.0
"""How long the store may take to reply while we count as ready."""


class Site:
    """The web of one control, shared by all requests."""

    def __init__(
        self,
        control: Control,
        *,
        trust_loopback: bool = True,
        identify: Identify | None = None,
        rate: Rate | None = None,
        ready: Callable[[], str | None] | None = None,
        alive: Callable[[], str | None] | None = None,
        step_seconds: float = CHART_STEP_SECONDS,
    ) -> None:
        self.control = control
        self.overview: SharedAnswer[Overview] = SharedAnswer(control.system.overview, control.now)
        self.workers: DerivedAnswer[Overview, list[WorkerShape]] = DerivedAnswer(_shapes)
        self.dead: SharedAnswer[tuple[list[Group], int]] = SharedAnswer(
            self._newest_dead, control.now, seconds=DEAD_SECONDS
        )
        self._flows: dict[str, SharedAnswer[tuple[FlowRecord, FlowGraph]]] = {}
        self.doctor: Final = SharedAnswer(
            control.doctor.examine, control.now, seconds=DOCTOR_SECONDS, longest=DOCTOR_SECONDS
        )
        self.history: ChartHistory = ChartHistory(control.store.open, control.now, step=step_seconds)
        self.what_if: WhatIf = WhatIf(control.history.read)
        self.token_check: TokenCheck = TokenCheck(control.tokens, control.now)
        self.live: Live = Live(control.store.open, control.now)
        self.access: Access = Access(self.token_check, trust_loopback=trust_loopback, identify=identify)
        self.limiter: Limiter = Limiter(rate or Rate())
        self.request_places: RequestPlaces = RequestPlaces()
        self.stream_places: StreamPlaces = StreamPlaces()
        self._ready = ready
        self._alive = alive
        self._sampler: asyncio.Task[None] | None = None
        self._closed = False

    def begin(self) -> None:
        """Start sampling for the charts, unless it has started."""
        if self._closed:
            return
        gone = self._sampler is None or self._sampler.done()
        if gone or (self._sampler and self._sampler.get_loop() is not asyncio.get_running_loop()):
            sampling = self.history.run(lambda: self.live.changed("history", "nodes"))
            self._sampler = asyncio.create_task(sampling, name="shiftwork history")

    async def close(self) -> None:
        """End all streams and stop sampling."""
        self._closed = True
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.wait([self._sampler])
        await self.live.close()

    async def flow(self, flow_id: str) -> tuple[FlowRecord, FlowGraph]:
        """Return a flow as it is drawn, shared by all who look at it."""
        if flow_id not in self._flows:
            if len(self._flows) >= MOST_FLOWS_KEPT:
                del self._flows[next(iter(self._flows))]
            self._flows[flow_id] = SharedAnswer(partial(self.control.flows.picture, flow_id), self.control.now)
        return await self._flows[flow_id].get()

    def changed(self) -> None:
        """Forget cached answers, because something was changed here."""
        self.overview.forget()
        self.live.changed("jobs", "pools", "workers", "nodes")

    def jobs_changed(self) -> None:
        """Forget cached answers, those about dead jobs too, because jobs were changed here."""
        self.dead.forget()
        self._flows.clear()
        self.changed()

    def tokens_changed(self) -> None:
        """Read the tokens again, because one was made or revoked here."""
        self.token_check.forget()

    def why_not_alive(self) -> str | None:
        """Return why the node that this serves counts as dead; None if it does not, or if there is none."""
        return None if self._alive is None else self._alive()

    async def why_not_ready(self) -> str | None:
        """Return why this process is not ready; None if it is. Raises what the store raises."""
        asking = asyncio.ensure_future(self._ask())
        asking.add_done_callback(look_at)
        # A probe waits for about a second; a store that hangs may take ten until it fails.
        done, _ = await asyncio.wait([asking], timeout=READY_SECONDS)
        if not done:
            return f"the store has not replied within {READY_SECONDS:g} s"
        asking.result()
        return None if self._ready is None else self._ready()

    async def _ask(self) -> None:
        await (await self.control.store.open()).server_time()

    async def _newest_dead(self) -> tuple[list[Group], int]:
        jobs = await self.control.bulk.dead(MOST_DEAD)
        return groups_of(jobs), len(jobs)


def _shapes(seen: Overview) -> list[WorkerShape]:
    """Return all workers by name. There may be ten thousand."""
    return sorted(map(worker_shape, seen.workers), key=lambda shape: shape.name)
