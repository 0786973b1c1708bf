"""What a job may accumulate: number and bytes of signals and steps, and which failed attempts are kept."""

import asyncio

from msgspec.structs import replace

from shiftwork.core.jobs.durable_functions import seen_parts
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.job_parts import Signal, Step, StepPage
from shiftwork.core.model.jobs import Attempt, JobRecord, JobStatus
from shiftwork.core.values.job_limits import (
    BEGINNING,
    FIRST_ATTEMPTS,
    MOST_ATTEMPTS,
    PAGE_BYTES,
    SHOWN_STEPS,
    SIGNALS,
    STEPS,
    kept_attempts,
)
from shiftwork.errors import SignalsFullError, StepsFullError
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, add, claim_one, finish, get, get_whole, job, outcome, report
from tests.store.conformance.expect import equal, holds, there
from tests.store.conformance.lab import Lab

MIB = 1_048_576
SENDERS = 100
MOST_PAGES = 5


def _step(number: int, result: bytes = b"r") -> Step:
    return Step(number, f"step {number} ☃", result, NOW + number, NOW + number + 0.5)


def _signal(name: str = "go", value: bytes = b"v") -> Signal:
    return Signal(name, value, NOW)


async def _planted(store: Store, steps: tuple[Step, ...] = (), signals: tuple[Signal, ...] = ()) -> JobRecord:
    """A running job with these steps and signals."""
    await add(store, job("1"))
    record = there((await store.get(["1"], whole=True))[0], "the job")
    await store.restore([replace(record, steps=steps, signals=signals)], NOW)
    await claim_one(store, "1")
    return await get_whole(store, "1")


async def _is_refused(store: Store, signal: Signal) -> bool:
    try:
        await store.send("1", signal, NOW)
    except SignalsFullError:
        return True
    return False


async def _is_full(store: Store, fence: int, step: Step) -> bool:
    try:
        await store.keep_step("1", fence, step)
    except StepsFullError:
        return True
    return False


async def check_a_job_keeps_so_many_signals(lab: Lab) -> None:
    store = lab.store
    planted = await _planted(store, signals=tuple(_signal(f"{n}") for n in range(SIGNALS.number - 1)))
    holds(not await _is_refused(store, _signal()), "the last signal is kept")
    holds(await _is_refused(store, _signal()), "one more is refused")
    equal(len((await get_whole(store, "1")).signals), SIGNALS.number, "signals")
    holds(await store.keep_step("1", planted.fence, _step(1), taking="0"), "a signal is taken")
    holds(not await _is_refused(store, _signal("again")), "its place is free")
    holds(await _is_refused(store, _signal()), "and taken again")
    kept = [signal.name for signal in (await get_whole(await lab.restart(), "1")).signals]
    equal((kept[0], kept[-2:], len(kept)), ("1", ["go", "again"], SIGNALS.number), "those that are kept")


async def check_the_signals_of_a_job_have_so_many_bytes(lab: Lab) -> None:
    store = lab.store
    large = tuple(_signal(f"{n}", b"v" * MIB) for n in range(SIGNALS.bytes // MIB - 1))
    planted = await _planted(store, signals=(*large, _signal("last", b"v" * (MIB - 10))))
    holds(await _is_refused(store, _signal(value=b"v" * 11)), "more bytes than there is room for")
    holds(not await _is_refused(store, _signal(value=b"v" * 10)), "as many as there is room for")
    holds(await _is_refused(store, _signal()), "another one")
    holds(not await _is_refused(store, _signal("empty", b"")), "one without a value")
    holds(await store.keep_step("1", planted.fence, _step(1), taking="3"), "a large signal is taken")
    holds(await _is_refused(store, _signal(value=b"v" * (MIB + 1))), "more bytes than it had")
    holds(not await _is_refused(store, _signal(value=b"v" * MIB)), "as many as it had")


async def check_many_senders_do_not_pass_the_limit(lab: Lab) -> None:
    store, room = lab.store, 40
    stores = [store, *[await lab.another() for _ in range(3)]]
    await _planted(store, signals=tuple(_signal(f"{n}") for n in range(SIGNALS.number - room)))
    refused = await asyncio.gather(
        *(_is_refused(stores[n % len(stores)], _signal(value=b"%d" % n)) for n in range(SENDERS))
    )
    equal(refused.count(False), room, "signals that were kept")
    equal(len((await get_whole(store, "1")).signals), SIGNALS.number, "signals of the job")


async def check_a_full_job_that_ended_says_that_it_ended(lab: Lab) -> None:
    store = lab.store
    planted = await _planted(store, signals=tuple(_signal(f"{n}") for n in range(SIGNALS.number)))
    await finish(store, outcome(planted.claimed()))
    equal(await store.send("1", _signal(), NOW), JobStatus.COMPLETED, "the status")


async def check_a_step_takes_the_first_signal_of_a_name(lab: Lab) -> None:
    store = lab.store
    sent = (_signal("a", b"1"), _signal("b", b"2"), _signal("a", b"3"))
    fence = (await _planted(store, signals=sent)).fence
    equal(await store.signal("1", "a"), sent[0], "the first signal")
    holds(await store.keep_step("1", fence, _step(1), taking="a"), "the step is kept")
    holds(await store.keep_step("1", fence, _step(1), taking="a"), "a repeated call is harmless")
    equal((await get_whole(store, "1")).signals, sent[1:], "the signals that are left")
    equal(await store.signal("1", "a"), sent[2], "the next signal of the name")
    holds(not await store.keep_step("1", fence - 1, _step(2), taking="a"), "a stale step")
    holds(await store.keep_step("1", fence, _step(2), taking="none"), "a step that finds no signal")
    await store.send("1", _signal("a", b"4"), NOW)
    equal((await get_whole(await lab.restart(), "1")).signals, (*sent[1:], _signal("a", b"4")), "the order")
    equal([await lab.store.signal("1", "c"), await lab.store.signal("none", "a")], [None, None], "where there is none")


async def check_a_job_keeps_so_many_steps(lab: Lab) -> None:
    store = lab.store
    fence = (await _planted(store, tuple(map(_step, range(1, STEPS.number))), (_signal(),))).fence
    holds(not await _is_full(store, fence, _step(STEPS.number)), "the last step is kept")
    holds(not await _is_full(store, fence, _step(STEPS.number)), "a repeated call is harmless")
    holds(await _is_full(store, fence, _step(STEPS.number + 1)), "one more is refused")
    holds(not await _is_full(store, fence - 1, _step(STEPS.number + 1)), "a stale run learns that it is stale")
    seen = await store.parts("1")
    equal((seen.step_count, seen.signal_count, len(seen.steps)), (STEPS.number, 1, SHOWN_STEPS), "what is kept")


async def check_the_steps_of_a_job_have_so_many_bytes(lab: Lab) -> None:
    store = lab.store
    large = tuple(_step(n, b"r" * (4 * MIB)) for n in range(1, STEPS.bytes // (4 * MIB)))
    fence, next_one = (await _planted(store, large)).fence, len(large) + 1
    holds(await _is_full(store, fence, _step(next_one, b"r" * (4 * MIB + 1))), "more bytes than there is room for")
    holds(not await _is_full(store, fence, _step(next_one, b"r" * (4 * MIB))), "as many as there is room for")
    holds(await _is_full(store, fence, _step(next_one + 1)), "another one")
    holds(not await _is_full(store, fence, _step(next_one + 1, b"")), "one without a result")


async def check_a_run_reads_steps_in_pages(lab: Lab) -> None:
    store = lab.store
    sizes = (10, PAGE_BYTES - 10, 1, 1, PAGE_BYTES + 1, 5, PAGE_BYTES * 3, 7, 0)
    steps = tuple(_step(n, b"r" * size) for n, size in enumerate(sizes, 1))
    fence, read, pages = (await _planted(store, steps)).fence, list[Step](), 0
    while True:
        page = there(await store.steps("1", fence, len(read)), "the steps of the running job")
        holds(sum(len(one.result) for one in page.steps[:-1]) <= PAGE_BYTES, "a page is no longer than it may be")
        read, pages = [*read, *page.steps], pages + 1
        if not page.more:
            break
    equal(tuple(read), steps, "all steps")
    holds(pages <= MOST_PAGES, f"small steps share a page: {pages} pages")
    equal((await store.steps("1", fence, len(read))), StepPage([]), "behind the last one")
    equal([await store.steps("1", fence - 1, 0), await store.steps("none", 1, 0)], [None, None], "of a stale run")


async def check_people_see_beginnings_of_steps_and_signals(lab: Lab) -> None:
    store = lab.store
    around = (0, 1, BEGINNING - 1, BEGINNING, BEGINNING + 1, 2 * BEGINNING, 3 * BEGINNING, 100_000)
    long = "☃" * 200
    steps = tuple(_step(n, bytes(range(256)) * (size // 256) + b"r" * (size % 256)) for n, size in enumerate(around, 1))
    steps += (Step(len(steps) + 1, f":failed {long}", b"r" * 100_000, NOW, NOW),)
    signals = tuple(_signal(long, b"v" * size) for size in around)
    planted = await _planted(store, steps, signals)
    equal(await store.parts("1"), seen_parts(planted), "what people see")
    equal(await store.parts("1", steps=1, signals=2), seen_parts(planted, 1, 2), "a part of it")
    equal(await store.parts("1", steps=0, signals=0), seen_parts(planted, 0, 0), "numbers alone")
    plain = await get(store, "1")
    equal((plain.steps, plain.signals), ((), ()), "what they read with the job")
    equal(replace(plain, steps=steps, signals=signals), planted, "the rest of the job")
    equal((await store.parts("none")).steps, [], "of an unknown job")


async def check_lists_have_beginnings_of_payloads_and_results(lab: Lab) -> None:
    store = lab.store
    sizes = (1, BEGINNING, BEGINNING + 1, 100_000)
    await add(store, *(job(f"{n}", payload=b"p" * size) for n, size in enumerate(sizes)))
    for n, size in enumerate(sizes):
        claimed = await claim_one(store, f"{n}")
        await finish(store, outcome(claimed, result=b"r" * size))
    found = {one.id: one for one in await store.find(JobFilter())}
    for n, size in enumerate(sizes):
        one, cut = found[f"{n}"], size if size > BEGINNING else None
        equal((one.payload, one.payload_size), (b"p" * min(size, BEGINNING), cut), f"a payload of {size} bytes")
        equal((one.result, one.result_size), (b"r" * min(size, BEGINNING), cut), f"a result of {size} bytes")
    whole = {one.id: one for one in await store.find(JobFilter(whole=True))}
    got = {f"{n}": there(one, "a job") for n, one in enumerate(await store.get([*map(str, range(len(sizes)))]))}
    equal({id: replace(one, attempts=()) for id, one in got.items()}, whole, "whole payloads and results")
    equal([got[f"{n}"].payload_size for n in range(len(sizes))], [None] * len(sizes), "what is not cut")


async def check_the_first_and_the_last_attempts_are_kept(lab: Lab) -> None:
    store, attempts = lab.store, tuple[Attempt, ...]()
    await add(store, job("1"))
    for n in range(MOST_ATTEMPTS + 3):
        claimed = await claim_one(store, "1")
        one = report(claimed, error=f"e {n}")
        attempts = kept_attempts(attempts, one)
        await finish(store, outcome(claimed, JobStatus.QUEUED, attempt=0, report=one))
        if n in {0, FIRST_ATTEMPTS, MOST_ATTEMPTS - 1, MOST_ATTEMPTS}:
            equal((await get(store, "1")).attempts, attempts, f"the attempts after {n + 1}")
    kept = [int(one.error[2:]) for one in (await get(await lab.restart(), "1")).attempts]
    equal(kept, [*range(FIRST_ATTEMPTS), *range(FIRST_ATTEMPTS + 3, MOST_ATTEMPTS + 3)], "which are kept")
