"""What runs at one moment: pools, instances and running jobs. `shiftwork top` shows it."""

from msgspec import Struct

from shiftwork.core.beats import WorkerInstance
from shiftwork.core.model import JobRecord
from shiftwork.views.overview import NodeView, PoolView


class Glance(Struct, frozen=True, kw_only=True):
    """What runs, at one moment."""

    at: float
    store: str
    leader: str | None
    nodes: list[NodeView]
    pools: list[PoolView]
    instances: list[WorkerInstance]
    """The instances of all pools; `current_jobs` lists only jobs that are also in `jobs`."""
    jobs: list[JobRecord]
    """The running jobs, longest running first; of very many, the newest. Jobs that were claimed ahead are left out."""
    more: bool = False
    """Whether there are jobs that were not read."""
