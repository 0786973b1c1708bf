"""Round trips: one for each call, whatever the size of the batch, and one for many callers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.model.jobs import JobStatus
from shiftwork.errors import ShiftworkError, StoreUnavailableError
from shiftwork.store.protocol import Store
from shiftwork.store.redis.add import LEAST_SHARE
from shiftwork.store.redis.server.pipeline import ConnectionLostError, Pipeline
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import NOW, add, claim, claim_one, finish, job, signs, statuses, succeeded
from tests.store.conformance.expect import soon
from tests.store.proxy import Proxy
from tests.store.servers.redis import Plain, Server, namespace


@pytest.fixture
async def store(valkey_url: str) -> AsyncIterator[Store]:
    opened = open_store(valkey_url, namespace=namespace())
    await opened.open()
    yield opened
    await opened.close()


@contextmanager
def asked(server: Server) -> Iterator[list[str]]:
    """Collect the commands that clients send meanwhile, by MONITOR, without those of scripts."""
    commands: list[str] = []
    with Plain(server.port) as monitor:
        monitor.ask("MONITOR")
        yield commands
        server.ask("ECHO", "the end")
        while b'"the end"' not in (line := monitor.hear()):
            where, _, command = line.decode().partition("] ")
            if not where.endswith("lua"):
                commands.append(command.split()[0].strip('"'))


@pytest.mark.parametrize("many", [1, 300])
async def test_each_call_is_one_round_trip_whatever_the_batch(store: Store, valkey_server: Server, many: int) -> None:
    mixed = [job(f"{n}", key=f"{n % 7}" if n % 3 == 0 else None, unique_key=f"{n}") for n in range(many)]
    with asked(valkey_server) as adding:
        await store.add(mixed, NOW)
    with asked(valkey_server) as claiming:
        claimed = await claim(store, many)
    with asked(valkey_server) as finishing:
        await finish(store, *(succeeded(one, result=b"r") for one in claimed))
    with asked(valkey_server) as beating:
        await store.beat([signs(f"i{n}", "p") for n in range(many)], 15, NOW)
    assert adding == claiming == finishing == beating == ["EVALSHA"]
    assert claimed


async def test_a_script_makes_as_many_calls_for_many_plain_jobs_as_for_few(store: Store, valkey_server: Server) -> None:
    def calls() -> int:
        told = valkey_server.ask("INFO", "commandstats").decode().splitlines()
        numbers = (line.partition("calls=")[2].partition(",")[0] for line in told if "cmdstat_info" not in line)
        return sum(int(number or 0) for number in numbers)

    async def cycle(many: int) -> list[int]:
        found = [calls()]
        await store.add([job(f"{many} {n}") for n in range(many)], NOW)
        found.append(calls())
        claimed = await claim(store, many)
        found.append(calls())
        await finish(store, *(succeeded(one, keep_until=NOW, marks="m") for one in claimed))
        found.append(calls())
        assert await store.prune(many, NOW) == many
        return [after - before for before, after in pairwise([*found, calls()])]

    await cycle(10)  # what is made once is there
    assert await cycle(400) == await cycle(10)


async def test_what_is_sent_in_one_turn_of_the_loop_is_written_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, job("1"), job("2"))
    [first] = await claim(store, 1)
    writes: list[int] = []
    write = Pipeline.flush

    def flush(pipeline: Pipeline) -> None:
        writes.append(len(pipeline._unsent))
        write(pipeline)

    monkeypatch.setattr(Pipeline, "flush", flush)
    _, claimed = await asyncio.gather(store.finish([succeeded(first)], NOW), claim(store, 1))
    assert [one.id for one in claimed] == ["2"]
    assert writes == [2]


async def test_a_lone_caller_does_not_wait_for_a_turn_of_the_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, job("before"))
    await asyncio.sleep(0)
    writes: list[Pipeline] = []
    write = Pipeline.flush

    def flush(pipeline: Pipeline) -> None:
        writes.append(pipeline)
        write(pipeline)

    monkeypatch.setattr(Pipeline, "flush", flush)
    adding = asyncio.ensure_future(store.add([job("1")], NOW))
    await asyncio.sleep(0)  # it runs until it waits
    assert writes
    assert (await adding)[0].created


def test_a_command_for_a_connection_that_is_being_closed_fails_as_one_that_was_lost(valkey_server: Server) -> None:
    """What asyncio only logs, uvloop raises at once."""
    uvloop = pytest.importorskip("uvloop")
    surprises: list[dict[str, Any]] = []

    async def ask_too_late() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, surprise: surprises.append(surprise))
        _, pipeline = await loop.create_connection(lambda: Pipeline(5.0), "127.0.0.1", valkey_server.port)
        pipeline.close()
        with pytest.raises(ConnectionLostError):
            await pipeline.ask("PING")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask_too_late())
    assert surprises == []


async def test_many_callers_share_round_trips(store: Store, valkey_server: Server) -> None:
    async def caller(name: str) -> None:
        for n in range(5):
            [added] = await store.add([job(f"{name} {n}")], NOW)
            assert (added.id, added.created) == (f"{name} {n}", True)

    with asked(valkey_server) as commands:
        await asyncio.gather(*(caller(f"{number}") for number in range(100)))
    assert len(commands) <= 500 / LEAST_SHARE
    assert len(await store.find(JobFilter(limit=1_000))) == 500


async def test_callers_who_share_a_round_trip_get_their_own_answers(store: Store) -> None:
    await add(store, job("there", unique_key="u"))
    answers = await asyncio.gather(
        store.add([job("1"), job("2")], NOW),
        store.add([job("there")], NOW),
        store.add([], NOW),
        store.add([job("twin", unique_key="u"), job("3")], NOW),
        store.add([job("3")], NOW + 1),
        store.add([job("4", run_at=NOW + 1)], NOW),
        store.add([job("5", run_at=NOW + 1)], NOW + 1),
    )
    assert [[(added.id, added.created) for added in answer] for answer in answers] == [
        [("1", True), ("2", True)],
        [("there", False)],
        [],
        [("there", False), ("3", True)],
        [("3", False)],
        [("4", True)],
        [("5", True)],
    ]
    assert await statuses(store, "4", "5") == ["scheduled", "queued"], "each by the time of who added it"


async def test_nothing_overtakes_jobs_that_wait_to_be_sent_together(store: Store) -> None:
    adding = [asyncio.ensure_future(store.add([job(f"{n}")], NOW)) for n in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    adding.append(asyncio.ensure_future(store.add([job("3")], NOW)))
    claiming = asyncio.ensure_future(claim(store))
    assert [claimed.id for claimed in await claiming] == ["0", "1", "2", "3"]
    await asyncio.gather(*adding)


async def test_a_caller_who_gives_up_does_not_harm_the_others(store: Store) -> None:
    callers = [asyncio.ensure_future(store.add([job(f"{n}")], NOW)) for n in range(10)]
    await asyncio.sleep(0)
    callers[0].cancel()
    callers[5].cancel()
    done = await asyncio.gather(*callers, return_exceptions=True)
    assert sum(isinstance(one, asyncio.CancelledError) for one in done) == 2
    assert await soon(store.add([job("later")], NOW), "an add after that")
    assert await statuses(store, "1", "9", "later") == ["queued"] * 3


async def test_a_job_that_cannot_be_sent_fails_for_its_caller_alone(store: Store) -> None:
    told = await asyncio.gather(
        *(store.add([job(id)], NOW) for id in ("1", "no text: \ud800", "2")), return_exceptions=True
    )
    assert [isinstance(one, UnicodeEncodeError) for one in told] == [False, True, False]
    assert await statuses(store, "1", "2") == ["queued"] * 2


async def test_closing_leaves_no_caller_waiting(store: Store) -> None:
    callers = [asyncio.ensure_future(store.add([job(f"{n}")], NOW)) for n in range(3)]
    await asyncio.sleep(0)
    callers += [asyncio.ensure_future(store.add([job("late")], NOW))]
    await store.close()
    told = await soon(asyncio.gather(*callers, return_exceptions=True), "an answer for everybody")
    assert all(isinstance(one, list | ShiftworkError) for one in told)


async def test_a_lost_answer_is_lost_for_all_who_shared_it(valkey_server: Server, valkey_url: str) -> None:
    async with Proxy(valkey_server.port) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", namespace=namespace())
        await store.open()
        proxy.lose_the_next_answer()
        lost = await asyncio.gather(*(store.add([job(f"{n}")], NOW) for n in range(20)), return_exceptions=True)
        assert {type(error) for error in lost} == {StoreUnavailableError}
        again = await asyncio.gather(*(store.add([job(f"{n}")], NOW) for n in range(20)))
        assert [added.created for [added] in again] == [False] * 20
        await store.close()


async def test_scripts_that_the_server_forgot_are_sent_again_for_all(store: Store, valkey_server: Server) -> None:
    valkey_server.ask("SCRIPT", "FLUSH")
    added = await asyncio.gather(*(store.add([job(f"{n}")], NOW) for n in range(20)))
    assert all(one.created for [one] in added)


async def test_only_the_writer_hears_what_it_alone_listens_for(store: Store, valkey_server: Server) -> None:
    def published() -> int:
        told = valkey_server.ask("INFO", "commandstats").decode()
        return int(told.partition("cmdstat_spublish:calls=")[2].partition(",")[0] or 0)

    before = published()
    await add(store, job("1"))
    assert published() == before
    other = open_store(store.url, namespace="another")
    await other.open()
    await add(store, job("2"))
    assert published() == before, "other namespaces are others"
    await other.close()


async def test_pages_and_runs_get_no_more_of_a_job_from_the_server_than_they_show_or_need(
    store: Store, valkey_server: Server
) -> None:
    large = b"x" * 500_000
    await add(store, job("1", payload=b"p" * 10_000))
    claimed = await claim_one(store, "1")
    for n in range(1, 11):
        await store.keep_step("1", claimed.fence, Step(n, "step", large, NOW, NOW))
    for name in ("go", *("other",) * 9):
        await store.send("1", Signal(name, large, NOW), NOW)

    async def size_of(call: Awaitable[Any]) -> int:
        before = sent_by(valkey_server)
        await call
        return sent_by(valkey_server) - before

    assert await size_of(store.parts("1")) < 20 * 5_000
    assert await size_of(store.find(JobFilter())) < 8_000
    assert await size_of(store.signal("1", "go")) < 2 * len(large)
    assert await size_of(store.steps("1", claimed.fence, 0)) < 4 * len(large)


def sent_by(server: Server) -> int:
    """Return how many bytes a server has sent to its clients."""
    said = dict(line.split(":") for line in server.ask("INFO", "stats").decode().splitlines() if ":" in line)
    return int(said["total_net_output_bytes"])


async def test_the_jobs_of_a_key_are_found_at_once_among_very_many(store: Store, valkey_server: Server) -> None:
    """An explanation of a job asks for them: without the index of the key, each of a long queue is looked at."""
    await add(store, *(job(f"{n:05}", key=f"{n % 500}") for n in range(6_000)))
    [running] = await claim(store, 1)
    wanted = JobFilter(worker="w", key="0", status=(JobStatus.PROCESSING, JobStatus.QUEUED), limit=100)
    with asked(valkey_server) as finding:
        found = await store.find(wanted)
    assert finding == ["EVALSHA"]
    assert [one.id for one in found] == [f"{n:05}" for n in range(5_500, -1, -500)]
    assert found[-1].id == running.id
    assert [one.id for one in await store.find(replace(wanted, status=(JobStatus.QUEUED,), limit=2))] == [
        "05500",
        "05000",
    ]
