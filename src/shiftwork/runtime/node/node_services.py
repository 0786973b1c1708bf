"""What all parts of a node share, and how that is put together."""

import os
import secrets
import socket
from collections.abc import Awaitable, Callable

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import ProcessMark
from shiftwork.events import JobListeners
from shiftwork.runtime.claiming.instance_services import InstanceServices, UnaskedHandBacks
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.runtime.outcomes.breaker_stepper import BreakerStepper
from shiftwork.runtime.outcomes.outbox import Outbox
from shiftwork.runtime.outcomes.progress_writer import ProgressWriter
from shiftwork.runtime.outcomes.refusals import Refusals
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.processes.host import Host
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.publication import Publication
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store


class NodeServices(InstanceServices, frozen=True, kw_only=True):
    """What all parts of a node share."""

    mark: ProcessMark | None
    """The mark of this process, by which others on this machine can prove its death."""
    settings: NodeSettings
    progress: ProgressWriter
    outages: OutageLog
    setup: Setup | None
    """How its processes are set up; None if it starts none."""
    host: Host
    """The machine that it runs on."""

    def duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> Duty:
        """Return a duty that polls at once, when one of these topics rings, and after `every` seconds at the latest.

        Without `every` that is the tick interval.
        """
        longest = self.settings.tick_interval if every is None else every
        bell = self.store.listen(topics)
        return Duty(name, poll, clock=self.clock, bell=bell, longest_sleep=longest, outages=self.outages)


def make_node_services(
    registry: Registry,
    *,
    store: Store,
    clock: Clock,
    hooks: JobListeners,
    states: dict[str, WorkerState],
    settings: NodeSettings,
    outages: OutageLog,
    setup: Setup | None,
    host: Host,
    beat: Callable[[], Awaitable[object]],
) -> NodeServices:
    """Put together what the parts of a new node share. `beat` renews its leases at once."""
    gauge = OwnGauge(clock.monotonic, outages, host.usage)
    reporter = Reporter(
        registry, store=store, clock=clock, hooks=hooks, states=states, outages=outages, every_run=settings.every_run
    )
    progress = ProgressWriter(store, clock, outages)
    refusals = Refusals(registry, store, clock)
    outbox = Outbox(
        store,
        clock,
        stopwatch=gauge.stopwatch,
        outages=outages,
        review=refusals.review,
        before_finish=(progress.before_end, BreakerStepper(registry, store, reporter.emit).judge),
        on_written=reporter.written,
    )
    return NodeServices(
        node=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
        mark=host.mark(),
        registry=registry,
        states=states,
        store=store,
        clock=clock,
        settings=settings,
        gauge=gauge,
        progress=progress,
        outbox=outbox,
        publication=Publication(registry, store=store, clock=clock, emit=reporter.emit, beat=beat),
        refusals=refusals,
        reporter=reporter,
        unasked_hand_backs=UnaskedHandBacks(),
        outages=outages,
        setup=setup,
        host=host,
    )
