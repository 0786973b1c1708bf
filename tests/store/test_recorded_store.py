"""A store whose calls are recorded keeps every obligation of the contract, and each call is recorded with its end."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import pytest
from msgspec import convert
from psycopg import connect

from shiftwork.core.model.job_changes import Cancel, Requeue
from shiftwork.core.model.job_parts import Input, Need, RunOptions, Signal, Step
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.errors import StepsFullError, StoreUnavailableError
from shiftwork.history.lines import ANSWERS, ARGS, Answered, AnyLine, Asked, Failed, decode
from shiftwork.history.recorded_store import RecordedStore
from shiftwork.history.recorder import HistoryRecorder, KeptLines
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import NOW, add, beat, claim_one, job, outcome, succeeded
from tests.store.conformance.lab import StoreFactory
from tests.store.conformance.suite import CHECKS, Check, run_check
from tests.store.servers.postgres import names, server_url


def recorded(store: Store) -> tuple[RecordedStore, KeptLines]:
    lines = KeptLines()
    return RecordedStore(store, HistoryRecorder(lines)), lines


def read(lines: KeptLines) -> list[AnyLine]:
    return [decode(text) for text in lines.texts]


def calls(lines: KeptLines) -> list[tuple[str, Any, Any]]:
    """Each call that was answered: its name, and what was asked and answered, in their types."""
    read_lines = read(lines)
    answers = {line.number: line for line in read_lines if isinstance(line, Answered | Failed)}
    found: list[tuple[str, Any, Any]] = []
    for line in read_lines:
        if isinstance(line, Asked):
            end = answers[line.number]
            assert end.at >= line.at
            answer = convert(end.answer, ANSWERS[line.call]) if isinstance(end, Answered) else end
            found.append((line.call, convert(line.args, ARGS[line.call]), answer))
    return found


async def test_the_life_of_jobs_as_it_is_recorded(factory: StoreFactory) -> None:
    store, lines = recorded(factory()())
    await store.open()
    options = RunOptions(max_retries=7, inputs=(Input("one", ("x",)),)).packed()
    first = job("one", key="k", payload=b"secret", run_at=NOW, head_start=5.0)
    second = job("two", flow="f", needs=(Need("one", whatever=True),), options=options, unique_key="u")
    await add(store, first)
    await store.add([second], NOW)
    await beat(store, "i")
    one = await claim_one(store, "one")
    kept = await store.keep_step("one", one.fence, Step(1, "s", b"secret", NOW, NOW))
    await store.extend("one", one.fence, [job("child", parent="one")], NOW)
    sent = await store.send("two", Signal("go", b"secret", NOW), NOW)
    await store.finish([succeeded(one, result=b"secret"), outcome(one, JobStatus.DEAD)], NOW)
    await store.amend(["two", "none"], Cancel(), NOW)
    held = await store.hold("leader", "i", 1, 15.0, NOW)
    await store.drop("leader", "i")
    await store.leave(["i"], NOW)
    assert (kept, sent, held) == (True, "waiting", True)
    found = {name: (args, answer) for name, args, answer in calls(lines) if name != "add"}
    [(_, added, new), (_, flow, _)] = [call for call in calls(lines) if call[0] == "add"]
    assert [(one.id, one.head_start, one.key, one.needs) for one in added.jobs] == [("one", 5.0, "k", ())]
    assert new.added == [("one", True)]
    assert [(one.needs, one.inputs, one.max_retries, one.unique_key, one.flow) for one in flow.jobs] == [
        ((("one", True),), ("one",), 7, "u", "f")
    ]
    asked, answer = found["claim"]
    assert (asked.instance, asked.pool, asked.n) == ("i", "p", 1)
    assert [(job.id, job.worker, job.fence, job.attempt, job.run_at) for job in answer.jobs] == [
        ("one", "w", one.fence, 1, NOW)
    ]
    assert found["beat"][0].instances == ["i"]
    assert (found["keep_step"][0].step, found["keep_step"][1]) == (1, True)
    assert [one.id for one in found["extend"][0].jobs] == [id for id, _ in found["extend"][1].added] == ["child"]
    assert (found["send"][0].name, found["send"][1]) == ("go", "waiting")
    outcomes, accepted = found["finish"]
    assert [(one.status, one.fence, one.verdict) for one in outcomes.outcomes] == [
        ("completed", one.fence, "success"),
        ("dead", one.fence, "neutral"),
    ]
    assert accepted.accepted == [True, False]
    assert outcomes.outcomes[0].result is not None
    asked, answer = found["amend"]
    assert (asked.change, asked.ids, answer.amended) == ("cancel", ["two", "none"], [(True, "waiting"), (False, None)])
    assert (found["hold"][0].holder, found["hold"][1], found["drop"][0].holder) == ("i", True, "i")
    assert found["leave"][0].names == ["i"]
    assert b"secret" not in b"".join(lines.texts)
    await store.close()


async def test_a_lost_job_is_recorded_with_who_lost_it() -> None:
    store, lines = recorded(MemoryStore())
    await add(store, job("one"))
    await beat(store, "i", "j")
    claimed = await claim_one(store, "one")
    await beat(store, "j", now=NOW + 20.0)
    [reaped] = await store.reap("j", 10, NOW + 20.0)
    await store.amend(["one"], Requeue(NOW + 30.0), NOW + 20.0)
    found = {name: (args, answer) for name, args, answer in calls(lines)}
    [job_reaped] = found["reap"][1].jobs
    assert (job_reaped.instance, job_reaped.begun) == ("i", NOW)
    assert job_reaped.fence == reaped.fence > claimed.fence
    assert (found["amend"][0].change, found["amend"][0].run_at) == ("requeue", NOW + 30.0)


class Away(MemoryStore):
    """A store that cannot be reached, or takes forever."""

    error: BaseException | None = StoreUnavailableError("away")

    async def drop(self, name: str, holder: str) -> None:
        if self.error is None:
            await asyncio.get_running_loop().create_future()
        elif self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("error", "maybe"),
    [(StoreUnavailableError("away"), True), (ValueError("?"), True), (StepsFullError("full"), False)],
)
async def test_a_call_that_raises_may_have_happened_unless_the_contract_says_otherwise(
    error: Exception, *, maybe: bool
) -> None:
    inner = Away()
    inner.error = error
    store, lines = recorded(inner)
    with pytest.raises(type(error)):
        await store.drop("leader", "i")
    [(_, _, failed)] = calls(lines)
    assert (failed.error, failed.maybe) == (type(error).__name__, maybe)


async def test_a_call_that_is_cancelled_may_have_happened() -> None:
    inner = Away()
    inner.error = None
    store, lines = recorded(inner)
    call = asyncio.create_task(store.drop("leader", "i"))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    [(_, _, failed)] = calls(lines)
    assert (failed.error, failed.maybe) == ("CancelledError", True)


async def finish_in_a_transaction(store: RecordedStore, claimed: Claimed, then: Callable[[int], object]) -> None:
    """Finish a job, and do something before the commit, given the pid of the server's process."""
    async with store.transaction() as begun:
        assert await begun.finish(succeeded(claimed), NOW)
        then(begun.connection.info.backend_pid)


async def test_what_a_transaction_of_the_user_decides_is_recorded_when_it_is_over(postgres_url: str) -> None:
    store, lines = recorded(open_store(postgres_url, namespace=uuid4().hex))
    await store.open()
    await add(store, job("one"), job("two"), job("three"))
    one, three, two = [await claim_one(store, id) for id in ("one", "three", "two")]
    async with store.transaction() as begun:
        assert await begun.keep_step("one", one.fence, Step(0, "", b"", 0.0, 0.0))
        await begun.keep_step("one", one.fence, Step(1, "s", b"r", NOW, NOW))
        await begun.finish(succeeded(one), NOW)
        assert len([line for line in read(lines) if isinstance(line, Answered)]) == 4  # not yet
        assert [added.id for added in await store.add_with(begun.connection, [job("new")], NOW)] == ["new"]
    with pytest.raises(ZeroDivisionError):
        await finish_in_a_transaction(store, two, lambda _: 1 / 0)
    async with store.transaction() as begun:
        assert not await begun.finish(succeeded(one), NOW)
    with connect(postgres_url, autocommit=True) as other, pytest.raises(StoreUnavailableError):
        await finish_in_a_transaction(
            store, three, lambda pid: other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        )
    found = [(name, answer) for name, _, answer in calls(lines) if name != "claim"][1:]
    assert [name for name, _ in found] == ["keep_step", "finish", "add", "finish", "finish", "finish"]
    kept, finished, new, undone, rejected, unknown = (answer for _, answer in found)
    assert (kept, finished.accepted, rejected.accepted) == (True, [True], [False])
    assert (new.error, new.maybe) == ("NotCommitted", True)
    assert (undone.error, undone.maybe) == ("ZeroDivisionError", False)
    assert unknown.maybe
    await store.close()


@pytest.fixture
def postgres_url() -> str:
    return server_url(names()[0])


def test_the_layer_records_every_call_that_changes_something_and_forwards_the_rest() -> None:
    methods = {name for name in vars(Store) if not name.startswith("_")}
    forwarded = {
        *("open", "close", "server_time", "note", "steps", "signal", "parts", "flows", "members", "docs"),
        *("survey", "ahead", "get", "find", "dead", "stats", "instances", "record", "events", "listen"),
        "check",
    }
    assert methods - vars(RecordedStore).keys() - {"url"} == forwarded
    assert methods - forwarded - {"url"} == ARGS.keys()
    assert not hasattr(RecordedStore(MemoryStore(), HistoryRecorder(KeptLines())), "add_with")


KEPT: Final = tuple(check for check in CHECKS if check.__module__.endswith(("claiming", "finishing", "durable")))


@pytest.mark.parametrize("check", KEPT, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(check: Check) -> None:
    lines = KeptLines()

    def place() -> Any:
        inner = MemoryStore()
        return lambda: RecordedStore(inner, HistoryRecorder(lines))

    await run_check(check, place)
    kinds = Counter(type(line) for line in read(lines))
    assert kinds[Asked] == kinds[Answered] + kinds[Failed]
