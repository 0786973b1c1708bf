"""Leading: the states that `runtime.leader.leader` draws, and every way from one to another."""

from collections.abc import Callable
from typing import Any

import pytest

from shiftwork.runtime.leader.leader import LEADER_LEASE, Leadership, LeaderState
from shiftwork.store.memory import MemoryStore

TTL = 15.0


class Events:
    """Stands for a reporter: remembers what was emitted."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def emit(self, name: str, *_: Any, **__: Any) -> None:
        self.names.append(name)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def new(store: MemoryStore, events: Events) -> Callable[[str], Leadership]:
    return lambda node: Leadership(store, events, node=node, ttl=TTL)  # type: ignore[arg-type]


async def test_one_leads_and_the_other_follows(new: Callable[[str], Leadership], events: Events) -> None:
    one, other = new("one"), new("other")
    assert one.state is LeaderState.FOLLOWING
    assert await one.keep(0.0)
    assert not await other.keep(0.0)
    assert (one.state, other.state) == (LeaderState.LEADING, LeaderState.FOLLOWING)
    assert events.names == ["leader.elected"]


async def test_the_lease_is_renewed_when_a_third_of_it_has_passed(new: Callable[[str], Leadership]) -> None:
    one, other = new("one"), new("other")
    assert await one.keep(0.0)
    assert one.renew_at == TTL / 3
    assert await one.keep(TTL / 3 - 0.1)
    assert one.renew_at == TTL / 3, "it was too early to ask the store"
    assert await one.keep(TTL / 3)
    assert not await other.keep(TTL)
    assert await other.keep(TTL * 4 / 3)


async def test_a_leader_that_came_too_late_follows(
    new: Callable[[str], Leadership], events: Events, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = new("one"), new("other")
    await one.keep(0.0)
    assert await other.keep(TTL)
    states = [one.state]
    assert not await one.keep(TTL)
    assert [*states, one.state] == [LeaderState.LEADING, LeaderState.FOLLOWING]
    assert "node one no longer leads" in caplog.text
    assert events.names == ["leader.elected"] * 2


async def test_a_leader_that_resigns_is_followed_at_once_and_never_leads_again(
    new: Callable[[str], Leadership], store: MemoryStore
) -> None:
    one, other = new("one"), new("other")
    await one.keep(0.0)
    await one.resign()
    assert one.state is LeaderState.RESIGNED
    assert await other.keep(0.0)
    await other.resign()
    assert not await one.keep(1.0)
    await one.resign()
    assert await store.hold(LEADER_LEASE, "a third", 1, TTL, 1.0)


async def test_a_follower_that_resigns_takes_nothing_from_the_leader(new: Callable[[str], Leadership]) -> None:
    one, other = new("one"), new("other")
    await one.keep(0.0)
    await other.keep(0.0)
    await other.resign()
    assert not await new("a third").keep(1.0)
    assert await one.keep(TTL / 2)


async def test_a_lease_that_is_granted_after_resigning_is_given_back(
    new: Callable[[str], Leadership], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = new("one")
    genuine = store.hold

    async def slow(*args: Any) -> bool:
        await one.resign()
        return await genuine(*args)

    monkeypatch.setattr(store, "hold", slow)
    assert not await one.keep(0.0)
    assert one.state is LeaderState.RESIGNED
    monkeypatch.undo()
    assert await new("other").keep(0.0)
