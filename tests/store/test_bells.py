"""Bells within a process: what the conformance suite cannot see from outside."""

import asyncio

from shiftwork.store.bells import Bells
from tests.store.conformance.expect import soon


async def pending(bell_wait: "asyncio.Future[None]") -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not bell_wait.done()


async def test_a_topic_rings_only_those_who_listen_to_it() -> None:
    bells = Bells()
    heard, unheard = bells.listen({"a", "b"}), bells.listen({"c"})
    other = asyncio.ensure_future(unheard.wait())
    bells.ring(["b", "nobody"])
    await soon(heard.wait(), "the bell of b")
    assert await pending(other)
    bells.ring_all()
    await soon(other, "the other bell")
    await soon(heard.wait(), "the bell of b, again")


async def test_many_rings_before_a_wait_are_one() -> None:
    bells = Bells()
    bell = bells.listen({"a"})
    for _ in range(3):
        bells.ring(["a"])
        await asyncio.sleep(0)
    await soon(bell.wait(), "the first wait")
    again = asyncio.ensure_future(bell.wait())
    assert await pending(again)
    bells.ring(["a"])
    await soon(again, "the second wait")


async def test_many_rings_of_another_thread_wake_the_loop_once() -> None:
    bell = Bells().listen({"a"})
    woken: list[object] = []
    loop = bell._loop
    bell._loop = type("Loop", (), {"call_soon_threadsafe": lambda _, wake: woken.append(wake)})()
    for _ in range(3):
        await asyncio.to_thread(bell.ring)
    assert len(woken) == 1
    loop.call_soon_threadsafe(bell._event.set)
    await soon(bell.wait(), "the wait")
    await asyncio.to_thread(bell.ring)
    assert len(woken) == 2


async def test_a_closed_bell_is_forgotten_and_no_wait_on_it_lasts() -> None:
    bells = Bells()
    bell, other = bells.listen({"a", "b"}), bells.listen({"b"})
    bell.close()
    assert bells.topics() == ["b"]
    await soon(bell.wait(), "a wait on a closed bell")
    await soon(bell.wait(), "another wait on a closed bell")
    other.close()
    other.close()
    assert bells.topics() == []


async def test_closing_all_ends_every_wait() -> None:
    bells = Bells()
    waits = [asyncio.ensure_future(bells.listen({topic}).wait()) for topic in ("a", "a", "b")]
    await asyncio.sleep(0)
    bells.close()
    for wait in waits:
        await soon(wait, "a wait on a closed bell")
    assert bells.topics() == []


async def test_a_bell_whose_loop_is_closed_is_forgotten_when_it_rings() -> None:
    bells = Bells()

    async def listen() -> None:
        bells.listen({"a"})

    await asyncio.to_thread(asyncio.run, listen())
    assert bells.topics() == ["a"]
    bells.ring(["a"])
    assert bells.topics() == []
    bells.ring(["a"])
