"""What all instances of a node share."""

from msgspec import Struct

from shiftwork.core.model.worker import WorkerState
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.outcomes.outbox import Outbox
from shiftwork.runtime.outcomes.refusals import Refusals
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.outcomes.tallies import UnaskedHandBacks
from shiftwork.runtime.publication import Publication
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store


class InstanceEnvironment(Struct, frozen=True, kw_only=True):
    """What all instances of a node share."""

    node: str
    """The name of the node."""
    registry: Registry
    states: dict[str, WorkerState]
    """What this node last knew of its workers' states."""
    store: Store
    clock: Clock
    gauge: OwnGauge
    outbox: Outbox
    publication: Publication
    refusals: Refusals
    reporter: Reporter
    unasked_hand_backs: UnaskedHandBacks
