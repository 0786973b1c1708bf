"""The loop that everything runs in, the clocks that it runs by, and the way in from outside."""

import asyncio
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from shiftwork import LifecycleError, StoreUnavailableError
from shiftwork.control.calling import Portal
from shiftwork.runtime.clock import ManualClock, SystemClock, until_idle
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.store.bells import Bells
from tests.runtime.stage import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Callable


class Poll:
    """A poll that notes when it was called, and answers or raises what the test wants."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.error: Exception | None = None
        self.answer: Callable[[float], float | None] = lambda now: None

    async def __call__(self) -> float | None:
        self.times.append(self.clock.now())
        if self.error is not None:
            raise self.error
        return self.answer(self.clock.now())

    def since(self, start: float) -> list[float]:
        return [round(at - start, 3) for at in self.times]


class Player:
    def __init__(self, longest_sleep: float = 5.0) -> None:
        self.clock = ManualClock()
        self.start = self.clock.now()
        self.poll = Poll(self.clock)
        self.bell = Bells().listen({"topic"})
        self.outages = OutageLog(self.clock.monotonic)
        self.duty = Duty(
            "test", self.poll, clock=self.clock, bell=self.bell, longest_sleep=longest_sleep, outages=self.outages
        )

    def times(self) -> list[float]:
        return self.poll.since(self.start)


async def test_a_duty_polls_at_once_then_when_it_wants_but_never_sleeps_too_long() -> None:
    player = Player()
    player.duty.start()
    await player.clock.advance(11)
    assert player.times() == [0, 5, 10]
    player.poll.answer = lambda now: now + 2
    await player.clock.advance(8)
    assert player.times()[3:] == [15, 17, 19]
    player.poll.answer = lambda now: now + 100
    await player.clock.advance(10)
    assert player.times()[6:] == [21, 26]
    await player.duty.stop()


async def test_a_ring_is_answered_at_once_and_many_are_one() -> None:
    player = Player()
    player.duty.start()
    await player.clock.advance(1)
    for _ in range(10):
        player.duty.ring()
    await player.clock.advance(1)
    assert player.times() == [0, 1]
    await player.duty.stop()


async def test_a_duty_that_fails_backs_off_and_recovers(caplog: pytest.LogCaptureFixture) -> None:
    player = Player(longest_sleep=60)
    player.poll.error = StoreUnavailableError("away")
    player.duty.start()
    await player.clock.advance(60)
    waits = [round(later - sooner, 3) for sooner, later in pairwise(player.times())]
    assert waits[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10]
    assert set(waits[8:]) == {10.0}
    assert caplog.messages == ["store: unavailable: away; running jobs go on, no job starts until it is back"]
    player.poll.error = None
    await player.clock.advance(10)
    count = len(player.times())
    player.duty.ring()
    await until_idle()
    assert len(player.times()) == count + 1
    await player.duty.stop()


async def test_a_duty_that_fails_does_not_let_itself_be_rung_into_a_storm() -> None:
    player = Player(longest_sleep=60)
    player.poll.error = StoreUnavailableError("away")
    player.duty.start()
    for _ in range(100):
        player.duty.ring()
        await player.clock.advance(0.01)
    assert len(player.times()) <= 5
    await player.duty.stop()


async def test_a_surprise_is_logged_with_its_traceback(tolerated: list[str], caplog: pytest.LogCaptureFixture) -> None:
    tolerated.append("test failed unexpectedly")
    player = Player()
    player.poll.error = ZeroDivisionError("a bug")
    player.duty.start()
    await player.clock.advance(1)
    assert "ZeroDivisionError: a bug" in caplog.text
    assert len(player.times()) > 2
    async with asyncio.timeout(DEADLINE):
        await player.duty.stop()


async def test_a_stop_lets_the_poll_in_progress_end() -> None:
    player = Player()
    go, ended = asyncio.Event(), []

    async def slow() -> None:
        await go.wait()
        ended.append(True)

    duty = Duty("slow", slow, clock=player.clock, bell=player.bell, longest_sleep=5, outages=player.outages)
    duty.start()
    await until_idle()
    stopping = asyncio.create_task(duty.stop())
    await until_idle()
    assert not stopping.done()
    go.set()
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert ended == [True]


# ── clocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_manual_clock_stops_at_every_timer_in_order() -> None:
    clock = ManualClock(100)
    seen: list[tuple[str, float]] = []
    clock.call_at(105, lambda: seen.append(("b", clock.now())))

    def first() -> None:
        seen.append(("a", clock.now()))
        clock.call_at(103, lambda: seen.append(("c", clock.now())))

    clock.call_at(102, first)
    called_off = clock.call_at(104, lambda: seen.append(("never", 0)))
    called_off.cancel()
    clock.call_at(50, lambda: seen.append(("past", clock.now())))
    await clock.advance(10)
    assert seen == [("past", 100), ("a", 102), ("c", 103), ("b", 105)]
    assert clock.now() == 110


async def test_the_system_clock_follows_the_stores() -> None:
    clock = SystemClock()
    at = clock.monotonic()
    clock.follow(1_000.0, at, at)
    assert 1_000.0 <= clock.now() < 1_001.0
    late = clock.monotonic() + 60
    clock.follow(1_010.0, at, late)  # it agrees with the clock, though it was heard a minute after the question
    assert 1_000.0 <= clock.now() < 1_001.0
    clock.follow(2_000.0, at, at + 2)
    assert 1_999.0 <= clock.now() < 2_000.0
    called = asyncio.Event()
    clock.call_at(clock.now() - 5, called.set)
    async with asyncio.timeout(DEADLINE):
        await called.wait()
    never = clock.call_at(clock.now() + 1000, called.set)
    never.cancel()


# ── from outside ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def ident() -> int:
    return threading.get_ident()


def test_a_portal_has_one_thread_and_closes_it() -> None:
    portal = Portal()
    (own,) = {portal.call(ident, "await it()") for _ in range(3)}
    assert own != threading.get_ident()
    (thread,) = [thread for thread in threading.enumerate() if thread.ident == own]
    assert thread.name == "shiftwork portal"
    portal.close()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert portal.call(ident, "await it()") is not None
    portal.close()
    portal.close()


def test_a_portal_hands_on_what_is_raised() -> None:
    async def bad() -> None:
        raise ValueError("from inside")

    portal = Portal()
    with pytest.raises(ValueError, match="from inside"):
        portal.call(bad, "await it()")
    portal.close()


async def test_a_portal_runs_on_the_given_loop_and_refuses_to_block_one() -> None:
    portal = Portal()
    portal.loop = asyncio.get_running_loop()
    assert await asyncio.to_thread(lambda: portal.call(ident, "await it()")) == threading.get_ident()
    with pytest.raises(LifecycleError, match="would stop this thread's event loop"):
        portal.call(ident, "await it()")
