"""The stream of what changes: heard by many, read once, resumable, ended when the server ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.model.event import Event
from shiftwork.errors import StoreUnavailableError
from shiftwork.web import live as live_module
from tests.web.conftest import Web

DEADLINE = 30.0


class Listener:
    """A client that reads a stream, piece by piece."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self.last_id: int | None = None

    async def next(self, kind: str) -> Any:
        """The next piece of this kind."""
        async with asyncio.timeout(DEADLINE):
            async for piece in self._stream:
                for block in piece.decode().strip().split("\n\n"):
                    fields = dict(line.split(": ", 1) for line in block.splitlines())
                    if "id" in fields:
                        self.last_id = int(fields["id"])
                    if fields.get("event") == kind:
                        return json.loads(fields["data"])
        message = f"the stream ended before the next {kind}"
        raise AssertionError(message)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(live_module, "EVENTS_SECONDS", 0.02)


async def test_a_change_made_elsewhere_is_reported(open_web: Web) -> None:
    async with aclosing(open_web.site.live.stream(None)) as stream:
        listener = Listener(stream)
        assert "jobs" in (await listener.next("change"))["topics"]
        await open_web.app.control.jobs.enqueue("resize", {"path": "a.png"})
        while "jobs" not in (await listener.next("change"))["topics"]:
            pass


async def test_an_event_is_reported_with_its_number_and_a_listener_that_comes_back_misses_none(web: Web) -> None:
    await web.app.pause_pool("images")
    async with aclosing(web.site.live.stream(None)) as stream:
        listener = Listener(stream)
        await listener.next("change")
        await listener.next("change")  # by now it knows what was there before
        await web.app.resume_pool("images")
        event = await listener.next("event")
        assert (event["name"], event["seq"]) == ("pool.resumed", listener.last_id)
    await web.app.disable_worker("fetch", "while nobody looked")
    await web.app.enable_worker("fetch")
    async with aclosing(web.site.live.stream(listener.last_id)) as stream:
        back = Listener(stream)
        assert [(await back.next("event"))["name"] for _ in range(2)] == ["worker.disabled", "worker.enabled"]
        await web.app.pause_pool("images")
        assert (await back.next("event"))["name"] == "pool.paused"


async def test_the_store_is_read_once_for_all_viewers_and_not_at_all_without_any(web: Web) -> None:
    streams = [web.site.live.stream(None) for _ in range(20)]
    for stream in streams:
        await Listener(stream).next("change")
    listening = [task for task in asyncio.all_tasks() if task.get_name() == "shiftwork live"]
    assert len(listening) == 1
    for stream in streams:
        await stream.aclose()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "shiftwork live"]


async def test_a_listener_that_cannot_follow_is_dropped(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MOST_WAITING_MESSAGES", 5)
    async with aclosing(web.site.live.stream(None)) as stream:
        await anext(stream)
        (slow,) = web.site.live._streams  # noqa: SLF001 - only its reader knows it
        for _ in range(10):
            slow.put(b": x\n\n")
        async with asyncio.timeout(DEADLINE):
            assert len([piece async for piece in stream]) <= 5
    assert not web.site.live._streams  # noqa: SLF001


async def test_a_listener_that_fails_ends_its_streams_so_that_they_come_back(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = web.site.live.stream(None)
    await Listener(stream).next("change")

    async def broken(after: int = 0, limit: int = 100) -> None:
        message = "nobody foresaw this"
        raise RuntimeError(message)

    monkeypatch.setattr(await web.app.control.store.open(), "events", broken)
    async with asyncio.timeout(DEADLINE):
        async for _ in stream:
            pass
    assert "nobody foresaw this" in caplog.text


async def test_whose_token_is_revoked_hears_no_more(web: Web) -> None:
    visitor = await web.site.access.show(await web.token("wall", "read"))
    async with aclosing(web.site.live.stream(None, lambda: web.site.access.still(visitor))) as stream:
        await Listener(stream).next("change")
        await web.post("tokens/wall/revoke")
        web.site.live.changed("jobs")
        async with asyncio.timeout(DEADLINE):
            assert [piece async for piece in stream] == []


async def test_a_listener_from_another_store_hears_what_happens_in_this_one(web: Web) -> None:
    await web.app.pause_pool("images")
    async with aclosing(web.site.live.stream(4_711)) as stream:
        listener = Listener(stream)
        await listener.next("change")
        await web.app.resume_pool("images")
        assert (await listener.next("event"))["name"] == "pool.resumed"


async def test_a_stream_continues_in_a_store_that_was_emptied(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        await web.app.pause_pool("images")
        await web.app.resume_pool("images")
    kept = await web.app.events()

    async def events(after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        return [one for one in kept if one.seq > after][-limit:]

    monkeypatch.setattr(web.app.control.store.store, "events", events)
    async with aclosing(web.site.live.stream(None)) as stream:
        listener = Listener(stream)
        await listener.next("change")
        await listener.next("change")  # by now it knows what was there before
        kept[:] = [replace(kept[0], seq=1, message="anew")]
        assert (await listener.next("event"))["message"] == "anew"


async def test_closing_ends_every_stream(web: Web) -> None:
    stream = web.site.live.stream(None)
    await Listener(stream).next("change")

    async def rest() -> None:
        async for _ in stream:
            pass

    reading = asyncio.create_task(rest())
    await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE):
        await web.site.close()
        await reading


async def test_a_stream_says_now_and_then_that_it_is_still_there(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "KEEP_ALIVE_SECONDS", 0.01)
    async with aclosing(web.site.live.stream(None)) as stream, asyncio.timeout(DEADLINE):
        async for piece in stream:
            if piece.startswith(b":"):
                break


class Gone:
    """A store whose calls fail, or never end."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.fault: Exception | None = None
        self.hangs = False

    async def events(self, *given: Any) -> Any:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        return await self._store.events(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def state(listener: Listener, wanted: Callable[[Any], bool]) -> Any:
    """The first change that says this about the store."""
    while not wanted(change := await listener.next("change")):
        pass
    return change


async def test_a_store_that_stops_replying_is_reported_with_its_cause_and_since_when(web: Web) -> None:
    gone = Gone(await web.app.control.store.open())

    async def opened() -> Any:
        return gone

    live = live_module.Live(opened, web.app.control.now)
    async with aclosing(live.stream(None)) as stream:
        listener = Listener(stream)
        live.changed("jobs")
        good = await state(listener, lambda change: change["at"] is not None)
        assert (good["store_fault"], good["store_silent_since"]) == (None, None)
        gone.fault = StoreUnavailableError("connection refused by 127.0.0.1:6379")
        told = await state(listener, lambda change: change["store_fault"] is not None)
        assert "connection refused" in told["store_fault"]
        assert told["store_silent_since"] == told["at"] >= good["at"]
        gone.fault = None
        back = await state(listener, lambda change: change["store_fault"] is None)
        assert (back["store_silent_since"], back["at"] > told["at"]) == (None, True)
    await live.close()


async def test_a_store_that_hangs_is_reported_before_its_call_fails(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "STORE_SILENT_SECONDS", 0.1)
    gone = Gone(await web.app.control.store.open())

    async def opened() -> Any:
        return gone

    live = live_module.Live(opened, web.app.control.now)
    async with aclosing(live.stream(None)) as stream:
        listener = Listener(stream)
        gone.hangs = True
        told = await state(listener, lambda change: change["store_fault"] is not None)
        assert told["store_fault"] == live_module.NO_REPLY
        assert told["store_silent_since"] is not None
    await live.close()
