"""Stored schedules in every store: many changes at once all hold, and a leader reads what has changed and no more."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest
from msgspec.structs import replace

from shiftwork.core.docs import FIRED_PART
from shiftwork.core.model import NewJob
from shiftwork.core.stored_schedules import Place, StoredSchedule, part_of
from shiftwork.core.timing import Timing
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import change_schedule, places_in, read_fired, read_index, read_parts
from shiftwork.store.sealed.keys import key_ring, new_key
from shiftwork.store.sealed.store import sealed
from tests.store.conftest import Maker, memory, postgres, sqlite, valkey
from tests.store.servers.postgres import names


def encrypted(request: pytest.FixtureRequest) -> Callable[[], Callable[[], Store]]:
    ring, plain = key_ring([new_key()]), memory(request)
    return lambda: lambda: sealed(plain()(), ring)


MAKERS: Final = (memory, encrypted, sqlite, valkey, postgres(names()[0]))


def schedule(name: str) -> StoredSchedule:
    job = NewJob(id="", worker="sync", pool="default", payload=b"\x81\xa1a\x01", run_at=0.0)
    return StoredSchedule(name=name, job=job, timing=Timing(interval_seconds=60), since=0.0, put_at=0.0, put_by="me")


def _always(one: StoredSchedule, _: StoredSchedule | None) -> StoredSchedule:
    return one


@pytest.mark.parametrize("maker", MAKERS, ids=lambda made: made.__name__)
async def test_many_changes_at_once_all_hold(maker: Maker, request: pytest.FixtureRequest) -> None:
    store = maker(request)()()
    await store.open()
    try:
        wanted = {f"s-{n}": schedule(f"s-{n}") for n in range(8)}
        await asyncio.gather(*(change_schedule(store, name, partial(_always, one)) for name, one in wanted.items()))
        index = await read_index(store)
        assert index.keys() == {*map(part_of, wanted)}
        assert (await read_parts(store, index.keys())).schedules == wanted

        changed = replace(wanted["s-5"], paused_at=5.0)
        assert await change_schedule(store, "s-5", lambda _: changed) == (wanted["s-5"], changed)
        after = await read_index(store)
        assert {part for part in after if after[part] != index[part]} == {part_of("s-5")}
        assert await change_schedule(store, "s-5", lambda _: changed) == (changed, changed)
        assert await read_index(store) == after, "what changes nothing is not announced"

        await asyncio.gather(*(change_schedule(store, name, lambda _: None) for name in wanted))
        assert (await read_parts(store, index.keys())).schedules == {}

        doc = (await read_fired(store, {"07"}))["07"]
        body = FIRED_PART.encode({"s": Place(1.0, 2.0, 1.0, "job")})
        assert await store.put([replace(doc, body=body)]) == [True]
        assert await store.put([replace(doc, body=body)]) == [False], "of two leaders, one moves it"
        assert places_in((await read_fired(store, {"07"}))["07"]) == {"s": Place(1.0, 2.0, 1.0, "job")}
    finally:
        await store.close()
