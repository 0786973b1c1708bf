"""Schedules that are data: many changes at once all hold, and a leader sees which parts have changed."""

import asyncio
from functools import partial

from msgspec.structs import replace

from shiftwork.core.doc_kinds import FIRED_PART
from shiftwork.core.schedules.stored import Place, StoredSchedule, part_of
from shiftwork.core.schedules.timing import Timing
from shiftwork.store.schedules import change_schedule, places_in, read_fired, read_index, read_parts
from tests.store.conformance.acts import NOW, job
from tests.store.conformance.expect import equal
from tests.store.conformance.lab import Lab


async def check_many_changes_of_schedules_at_once_all_hold(lab: Lab) -> None:
    stores = lab.store, await lab.another()
    wanted = {f"s-{n}": _schedule(f"s-{n}") for n in range(8)}
    puts = (change_schedule(stores[n % 2], name, partial(_always, wanted[name])) for n, name in enumerate(wanted))
    await asyncio.gather(*puts)
    index = await read_index(lab.store)
    equal({*index}, {*map(part_of, wanted)}, "the parts in the index")
    equal((await read_parts(lab.store, index.keys())).schedules, wanted, "the schedules")
    await asyncio.gather(*(change_schedule(stores[n % 2], name, _never) for n, name in enumerate(wanted)))
    equal((await read_parts(lab.store, index.keys())).schedules, {}, "what is left of deleted ones")


async def check_a_changed_schedule_is_announced(lab: Lab) -> None:
    other = await lab.another()
    one = _schedule("s")
    for name in ("s", "t"):
        await change_schedule(other, name, partial(_always, _schedule(name)))
    before = await read_index(lab.store)
    bell = lab.store.listen({"leader"})
    paused = replace(one, paused_at=NOW)
    equal(await change_schedule(other, "s", partial(_always, paused)), (one, paused), "before and after the change")
    await bell.wait()
    bell.close()
    after = await read_index(lab.store)
    equal({part for part in after if after[part] != before[part]}, {part_of("s")}, "the parts with another token")
    await change_schedule(other, "s", partial(_always, paused))
    equal(await read_index(lab.store), after, "the index after a change that changes nothing")


async def check_of_two_leaders_one_moves_a_schedule(lab: Lab) -> None:
    doc = (await read_fired(lab.store, {"07"}))["07"]
    moved = replace(doc, body=FIRED_PART.encode({"s": Place(1.0, 2.0, 1.0, "job")}))
    equal([await store.put([moved]) for store in (lab.store, await lab.another())], [[True], [False]], "who moved it")
    places = places_in((await read_fired(lab.store, {"07"}))["07"])
    equal(places, {"s": Place(1.0, 2.0, 1.0, "job")}, "how far it has fired")


def _schedule(name: str) -> StoredSchedule:
    template = job("", payload=b"\x81\xa1a\x01", run_at=0.0)
    timing = Timing(interval_seconds=60)
    return StoredSchedule(name=name, job=template, timing=timing, since=NOW, put_at=NOW, put_by="a test")


def _always(one: StoredSchedule, _: StoredSchedule | None) -> StoredSchedule:
    return one


def _never(_: StoredSchedule | None) -> None:
    return None
