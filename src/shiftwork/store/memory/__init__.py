"""The reference implementation of the store: everything in this process's memory, gone when it ends.

Each module has one part of the contract, under the same name as in the other stores: functions of the `Tables`, which
run while the lock is held. They call the rules of `core`, and never lock, wait or ring. The tables themselves are in
`rows` and `flow_index`, and small ones beside the operations that use them.
"""

from shiftwork.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
