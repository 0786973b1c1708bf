"""What all parts of a node share."""

from collections.abc import Callable

from msgspec import Struct

from shiftwork.core.beats import ProcessMark
from shiftwork.core.model import Claimed, WorkerState
from shiftwork.events import Emit
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.outbox import Notebook, Outbox
from shiftwork.runtime.engine.publication import Publication
from shiftwork.runtime.engine.refusals import Refusals
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.unasked_hand_backs import UnaskedHandBacks
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.node.settings import Settings
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.store_voice import StoreVoice
from shiftwork.store.protocol import Store


class NodeEnvironment(Struct, frozen=True, kw_only=True):
    """What all parts of a node share."""

    node: str
    """The name of the node."""
    mark: ProcessMark | None
    """The mark of this process, by which others on this machine can prove its death."""
    registry: Registry
    states: dict[str, WorkerState]
    """What this node last knew of its workers' states."""
    store: Store
    clock: Clock
    settings: Settings
    gauge: OwnGauge
    notebook: Notebook
    outbox: Outbox
    publication: Publication
    emit: Emit
    refusals: Refusals
    unasked_hand_backs: UnaskedHandBacks
    voice: StoreVoice
    begun: Callable[[Claimed], None]
    """Called when a run begins."""
    setup: Setup | None
    """How its processes are set up; None if it starts none."""
