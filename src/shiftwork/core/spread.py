"""Over how many processes are the slots of a pool spread on a node, and how many slots does each of them have?"""

from shiftwork.core.model import PoolConfig


def process_count(pool: PoolConfig, slots: int, cores: float) -> int:
    """Return how many processes serve this many slots on a node that has this many cores.

    No process is without a slot. A process pool has one for each slot; `"auto"` is one for each core.
    """
    if pool.kind == "process":
        return slots
    wanted = max(1, int(cores)) if pool.processes == "auto" else pool.processes
    return min(slots, wanted)


def shares(slots: int, processes: int) -> list[int]:
    """Return how many slots each process has: as even as possible, the larger shares first."""
    if processes <= 0:
        return []
    each, more = divmod(slots, processes)
    return [each + 1] * more + [each] * (processes - more)
