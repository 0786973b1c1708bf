"""The one loop that changes records by compare-and-set, and what it makes of damaged ones."""

from collections.abc import Sequence
from typing import Any

import pytest

from shiftwork.core.doc_kinds import BREAKER, KINDS, POOL, Kind
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.store.docs import change, read, read_all, stored, write
from shiftwork.store.memory.store import MemoryStore
from tests.core.records import VALUES, damages


class Racing(MemoryStore):
    """A store in which another process is faster, once."""

    def __init__(self, first: Doc) -> None:
        super().__init__()
        self.first: Doc | None = first
        self.puts = 0

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        self.puts += 1
        first, self.first = self.first, None
        if first is not None:
            await super().put([first])
        return await super().put(docs)


@pytest.mark.parametrize("kind", KINDS.values(), ids=repr)
async def test_a_damaged_record_is_read_as_none_and_changed_over(kind: Kind[Any]) -> None:
    value = VALUES[kind.name]
    for damage in damages(kind.name):
        store = MemoryStore()
        await store.put([Doc(kind.name, "n", damage.body), Doc(kind.name, "good", kind.encode(value))])
        assert await read(store, kind, "n") is None
        assert await read_all(store, kind) == {"good": value}
        stands_for = kind.damaged or value
        assert await change(store, kind, "n", lambda found, value=value: found or value) == (None, stands_for)  # type: ignore[misc]
        assert await read(store, kind, "n") == stands_for
        assert (await stored(store, kind, "n")).version == 2


async def test_a_record_that_does_not_exist_is_none_and_is_made() -> None:
    store = MemoryStore()
    paused = PoolDoc(paused=True)
    assert await read(store, POOL, "p") is None
    assert await change(store, POOL, "p", lambda _: paused) == (None, paused)
    assert await read_all(store, POOL) == {"p": paused}


async def test_what_changes_nothing_is_not_written() -> None:
    store = Racing(Doc("other", "n", b""))
    await change(store, POOL, "p", lambda found: found or PoolDoc())
    assert (await stored(store, POOL, "p")).version == 0, "no record stands for the empty one"
    await change(store, POOL, "p", lambda _: PoolDoc(paused=True))
    puts = store.puts
    assert await change(store, POOL, "p", lambda found: found or PoolDoc()) == (PoolDoc(paused=True),) * 2
    assert store.puts == puts
    damaged = Doc(POOL.name, "q", b"\xa1\xff")
    assert await store.put([damaged]) == [True]
    await change(store, POOL, "q", lambda _: PoolDoc())
    assert await read(store, POOL, "q") == PoolDoc(), "a damaged record is replaced, also by an empty one"


async def test_a_change_is_made_again_from_what_a_faster_process_wrote() -> None:
    seen: list[PoolDoc | None] = []
    store = Racing(Doc(POOL.name, "p", POOL.encode(PoolDoc(min_workers=3))))

    def pause(found: PoolDoc | None) -> PoolDoc:
        seen.append(found)
        return PoolDoc(paused=True, min_workers=found.min_workers if found else None)

    before, after = await change(store, POOL, "p", pause)
    assert seen == [None, before]
    assert after == await read(store, POOL, "p") == PoolDoc(paused=True, min_workers=3)


async def test_a_value_is_written_over_what_was_read_and_nothing_else() -> None:
    store = MemoryStore()
    value = VALUES["breaker"]
    nothing = await stored(store, BREAKER, "b")
    assert await write(store, BREAKER, value, over=nothing)
    assert not await write(store, BREAKER, value, over=nothing)
    assert (await stored(store, BREAKER, "b")).version == 1
