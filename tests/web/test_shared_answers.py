"""One answer for all who ask, no older than it may be."""

import asyncio

import pytest

from shiftwork.web.shared_answers import SharedAnswer


class Source:
    """Something that is asked, by a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self) -> int:
        self.asked += 1
        answer = self.asked
        await self.gate.wait()
        return answer

    def clock(self) -> float:
        return self.now


async def test_it_is_asked_again_when_it_is_old() -> None:
    source = Source()
    shared = SharedAnswer(source.fetch, source.clock, seconds=1.0)
    assert [await shared.get(), await shared.get()] == [1, 1]
    source.now += 1.1
    assert await shared.get() == 2
    source.now -= 3_600  # somebody set the clock back
    assert await shared.get() == 3


async def test_what_takes_long_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 0.5, 10.0, 10.5])  # it takes half a second
    monkeypatch.setattr("shiftwork.web.shared_answers.time.perf_counter", lambda: next(ticks))
    source = Source()
    shared = SharedAnswer(source.fetch, source.clock, seconds=1.0)
    await shared.get()
    source.now += 6.0
    assert await shared.get() == 1
    source.now += 2.0
    assert await shared.get() == 1  # it will do,
    await asyncio.sleep(0)
    assert await shared.get() == 2  # while the next one is fetched


async def test_no_answer_is_older_than_ten_seconds_while_the_store_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 2.0, 10.0, 12.0])
    monkeypatch.setattr("shiftwork.web.shared_answers.time.perf_counter", lambda: next(ticks))
    source = Source()
    shared = SharedAnswer(source.fetch, source.clock, seconds=1.0)
    await shared.get()
    source.gate.clear()
    source.now += 9.5
    assert await shared.get() == 1
    source.now += 1.0
    asking = asyncio.ensure_future(shared.get())
    await asyncio.sleep(0)
    assert not asking.done()
    source.gate.set()
    assert await asking == 2


async def test_a_stale_answer_does_not_hide_that_the_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 0.1, 10.0])
    monkeypatch.setattr("shiftwork.web.shared_answers.time.perf_counter", lambda: next(ticks, 20.0))
    source = Source()

    async def fetch() -> int:
        if source.asked:
            message = "away"
            raise OSError(message)
        return await source.fetch()

    shared = SharedAnswer(fetch, source.clock, seconds=1.0)
    await shared.get()
    source.now += 2.5
    assert await shared.get() == 1
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="away"):
        await shared.get()


async def test_an_answer_that_took_long_is_not_served_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 0.5, 10.0, 10.5, 20.0, 20.5])
    monkeypatch.setattr("shiftwork.web.shared_answers.time.perf_counter", lambda: next(ticks))
    source = Source()
    shared = SharedAnswer(source.fetch, source.clock, seconds=1.0)
    await shared.get()
    source.now += 60.0
    assert await shared.get() == 2
    shared.forget()
    assert await shared.get() == 3  # somebody changed something


async def test_a_change_while_it_is_fetched_is_not_missed() -> None:
    source = Source()
    source.gate.clear()
    shared = SharedAnswer(source.fetch, source.clock)
    before = asyncio.ensure_future(shared.get())
    await asyncio.sleep(0)
    shared.forget()
    after = asyncio.ensure_future(shared.get())
    await asyncio.sleep(0)
    source.gate.set()
    assert [await before, await after, await shared.get()] == [1, 2, 2]


async def test_a_caller_that_gives_up_does_not_take_the_answer_from_others() -> None:
    source = Source()
    source.gate.clear()
    shared = SharedAnswer(source.fetch, source.clock)
    impatient, patient = asyncio.ensure_future(shared.get()), asyncio.ensure_future(shared.get())
    await asyncio.sleep(0)
    impatient.cancel()
    source.gate.set()
    assert (await patient, source.asked) == (1, 1)


async def test_a_failure_is_returned_and_not_kept() -> None:
    source = Source()

    async def fetch() -> int:
        if source.asked == 0:
            source.asked += 1
            message = "away"
            raise OSError(message)
        return await source.fetch()

    shared = SharedAnswer(fetch, source.clock)
    with pytest.raises(OSError, match="away"):
        await shared.get()
    assert await shared.get() == 2
