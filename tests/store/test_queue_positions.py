"""Jobs ahead of a place in a queue are counted up to a bound, and beyond that taken from the counters and the ranks."""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from shiftwork.core.health import position
from shiftwork.core.health.position import QueuePlace
from shiftwork.store.postgres.store import PostgresStore
from shiftwork.store.protocol import Store
from shiftwork.store.sqlite import SqliteStore
from tests.store.conformance.acts import NOW, add, job
from tests.store.servers.postgres import names, server_url
from tests.store.test_postgres_plans import place, reads

JOBS = 1_000
OWN, OTHER = 300, 100


@pytest.fixture(params=["sqlite", "postgres"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """A store that counts few jobs, with a queue of many of two workers, a second apart."""
    monkeypatch.setattr(position, "COUNTED_OWN", OWN)
    monkeypatch.setattr(position, "COUNTED_OTHER", OTHER)
    if request.param == "sqlite":
        store: Store = SqliteStore(str(tmp_path / "ahead.db"))
    else:
        store = PostgresStore(place(server_url(names()[0]), f"ahead_{uuid4().hex}"))
    await store.open()
    await add(store, *(job(f"{n:04}", "wv"[n % 2], run_at=NOW + n) for n in range(2 * JOBS)), now=NOW + 2 * JOBS)
    yield store
    await store.close()


async def test_what_is_counted_is_exact(store: Store) -> None:
    [found] = await store.ahead("p", [QueuePlace(NOW + 150, "0150", "w")])
    assert (found.lanes, found.exact) == ({"w": 75, "v": 75}, True)


@pytest.mark.parametrize("place", [700, 1_000, 1_998])
async def test_what_is_not_counted_is_about_right(store: Store, place: int) -> None:
    [found] = await store.ahead("p", [QueuePlace(NOW + place, f"{place:04}", "w")])
    assert not found.exact
    assert found.lanes["w"] == pytest.approx(place / 2, rel=0.02)
    assert found.lanes["v"] == pytest.approx(place / 2, rel=0.02)


async def test_places_that_are_asked_for_together_are_as_if_each_were_asked_for_alone(store: Store) -> None:
    places = [QueuePlace(NOW + n, f"{n:04}", "wv"[n % 2]) for n in (1_999, 3, 150, 700, 699, 1_000, 250)]
    alone = [(await store.ahead("p", [place]))[0] for place in places]
    assert [found.exact for found in alone] == [False, True, True, False, False, False, False]
    assert await store.ahead("p", places) == alone


async def test_a_position_reads_the_jobs_ahead_and_no_others_on_postgres() -> None:
    """Neither those behind it, nor parked ones."""
    url, schema = server_url(names()[0]), f"ahead_{uuid4().hex}"
    store = PostgresStore(place(url, schema))
    await store.open()
    await add(store, *(job(f"{n:05}", "wv"[n % 2], run_at=NOW + n) for n in range(5_000)), now=NOW + 5_000)
    await add(store, *(job(f"parked {n}", "w", key="k") for n in range(5_000)))
    await store.close()
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        before = reads(conn, schema)
        await store.open()
        [found] = await store.ahead("p", [QueuePlace(NOW + 100, "00100", "w")])
        await store.close()
        assert found.lanes == {"w": 51, "v": 50}
        assert reads(conn, schema) - before < 300
        conn.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
