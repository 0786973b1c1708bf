"""What all instances of a node share."""

from msgspec import Struct

from shiftwork.core.model import WorkerState
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.outbox import Outbox
from shiftwork.runtime.engine.publication import Publication
from shiftwork.runtime.engine.refusals import Refusals
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.reporter import Reporter
from shiftwork.runtime.engine.unasked_hand_backs import UnaskedHandBacks
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.store.protocol import Store


class EngineEnvironment(Struct, frozen=True, kw_only=True):
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
