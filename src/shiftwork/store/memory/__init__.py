"""The reference implementation of the store: everything in this process's memory, gone when it ends."""

from shiftwork.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
