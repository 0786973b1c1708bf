"""Durable functions: steps that run once, and waits that hold nothing."""

import asyncio
import importlib
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError

import pytest
from pydantic import TypeAdapter, ValidationError

from shiftwork import (
    ConfigurationError,
    Context,
    CorruptStoreError,
    JobCancelledError,
    JobStateError,
    JobStatus,
    LifecycleError,
    PayloadError,
    Retry,
    StepError,
    UnknownJobError,
    WorkerOrchestrator,
)
from shiftwork.core.observing.beats import Beat
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.testing import make_context
from shiftwork.views.shapes.jobs import whole_job_shape
from tests.runtime.stage import DEADLINE


@dataclass
class Receipt:
    order: int
    file: Path


@pytest.fixture
def app() -> WorkerOrchestrator:
    return WorkerOrchestrator("memory://", tick_interval=0.05)


@pytest.fixture
def ran() -> list[str]:
    """What has run, in order."""
    return []


AGAIN = Retry(delays=[0])


class DeclinedError(Exception):
    """A failure with an attribute, whose class takes other arguments than its exception has."""

    def __init__(self, *, code: int, card: object) -> None:
        super().__init__(f"declined: {code}")
        self.code = code
        self.card = card


class BatchError(ExceptionGroup[Exception]):
    """A group whose class takes other arguments than a group does."""

    size: int

    def __new__(cls, errors: list[Exception], size: int) -> Self:
        error = super().__new__(cls, f"{size} in a batch", errors)
        error.size = size
        return error


def dead_of(test_runs: list[Any]) -> str:
    [run] = test_runs
    assert run.status is JobStatus.DEAD
    return str(run.error)


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("plain", [False, True])
async def test_a_step_runs_once_and_its_result_comes_back_as_it_was(
    app: WorkerOrchestrator, ran: list[str], *, plain: bool
) -> None:
    def charge(order: int, *, currency: str) -> Receipt:
        ran.append(f"charge {order} {currency}")
        return Receipt(order, Path("a.pdf"))

    async def mail(receipt: Receipt) -> None:
        ran.append(f"mail {receipt.order} {receipt.file.suffix}")

    def fail_once(ctx: Context) -> None:
        ran.append(f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ConnectionError

    if plain:

        @app.task(retry=AGAIN)
        def order(ctx: Context, n: int) -> str:
            receipt = ctx.blocking.step("charge", charge, n, currency="EUR")
            fail_once(ctx)
            ctx.blocking.step("mail", lambda: ran.append(f"mail {receipt.order} {receipt.file.suffix}"))
            return str(receipt.file)
    else:

        @app.task(retry=AGAIN)
        async def order(ctx: Context, n: int) -> str:
            receipt = await ctx.step("charge", charge, n, currency="EUR")
            fail_once(ctx)
            await ctx.step("mail", mail, receipt)
            return str(receipt.file)

    async with app.testing() as test:
        job = await order.enqueue(n=7)
        runs = await test.run_pending()
        assert [run.status for run in runs] == [JobStatus.FAILED, JobStatus.COMPLETED]
        assert ran == ["charge 7 EUR", "attempt 1", "attempt 2", "mail 7 .pdf"]
        job, _, parts = await app.control.jobs.get_shown(job.id)
        steps = parts.steps
        assert [(step.number, step.name) for step in steps] == [(1, "charge"), (2, "mail")]
        assert job.record.result is not None


async def test_a_step_that_fails_is_not_kept_and_runs_again(app: WorkerOrchestrator, ran: list[str]) -> None:
    async def flaky() -> int:
        ran.append("flaky")
        if len(ran) == 1:
            raise ConnectionError
        return 3

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> int:
        try:
            return await ctx.step("flaky", flaky)
        except ConnectionError:
            return await ctx.step("flaky", flaky)  # the function may catch it, and try again at once

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending(raise_errors=True)
        assert await job.result(DEADLINE) == 3


@pytest.mark.parametrize("plain", [False, True])
async def test_a_failure_that_the_function_has_caught_is_raised_again_in_later_runs(
    app: WorkerOrchestrator, ran: list[str], *, plain: bool
) -> None:
    def charge(card: str) -> str:
        ran.append(card)
        if card == "stolen":
            raise DeclinedError(code=7, card=object())
        return card

    @app.task(retry=AGAIN)
    async def fulfil(ctx: Context) -> str:
        used = ""
        try:
            await ctx.step("charge", charge, "stolen")
        except DeclinedError as error:
            used = f"{error}, {error.code}, {await ctx.step('charge', charge, 'good')}"
        if ctx.attempt == 1:
            raise ConnectionError
        return used

    @app.task(retry=AGAIN)
    def fulfil_plainly(ctx: Context) -> str:
        used = ""
        try:
            ctx.blocking.step("charge", charge, "stolen")
        except DeclinedError as error:
            used = f"{error}, {error.code}, {ctx.blocking.step('charge', charge, 'good')}"
        if ctx.attempt == 1:
            raise ConnectionError
        return used

    async with app.testing() as test:
        job = await (fulfil_plainly if plain else fulfil).enqueue()
        await test.run_pending()
        assert await job.result(DEADLINE) == "declined: 7, 7, good"
        assert ran == ["stolen", "good"]
        shape = whole_job_shape(*await app.control.jobs.get_shown(job.id))
        assert [(step.kind, step.name, step.result) for step in shape.steps] == [
            ("failed", "charge", "DeclinedError: declined: 7"),
            ("step", "charge", "good"),
        ]


def read_missing_file() -> None:
    Path("/missing/file").stat()


def run_failing_command() -> None:
    raise subprocess.CalledProcessError(1, [Path("/bin/false")])


def decode_broken_text() -> None:
    b"\xff".decode()


def import_missing_module() -> None:
    importlib.import_module("no_such_module")


def fetch_missing_page() -> None:
    raise HTTPError("http://localhost/missing", 404, "Not Found", Message(), None)


async def fail_in_a_task_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(decode_broken_text))


def fail_with_a_group_of_its_own() -> None:
    raise BatchError([BatchError([KeyError("a")], 1), DeclinedError(code=7, card="visa")], 2)


@pytest.mark.parametrize(
    ("fail", "look"),
    [
        (read_missing_file, lambda error: (str(error), error.errno, str(error.filename))),
        (run_failing_command, lambda error: (str(error), error.returncode, str(error.cmd[0]))),
        (decode_broken_text, lambda error: (str(error), error.start, error.object)),
        (import_missing_module, lambda error: (str(error), error.name)),
        (fetch_missing_page, lambda error: (str(error), error.code)),
        (partial(sys.exit, 3), lambda error: (str(error), error.code)),
        (fail_in_a_task_group, lambda error: (str(error), str(error.exceptions[0]), type(error.exceptions[0]))),
        (
            fail_with_a_group_of_its_own,
            lambda error: (str(error), error.size, repr(error.subgroup(KeyError)), error.exceptions[1].code),
        ),
    ],
)
async def test_a_caught_failure_is_the_same_in_later_runs(
    app: WorkerOrchestrator, fail: Callable[[], Any], look: Callable[[Any], object]
) -> None:
    seen = []

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> None:
        try:
            await ctx.step("fail", fail)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises
            seen.append(look(error))
        await ctx.step("next", int)
        if ctx.attempt == 1:
            raise ConnectionError

    async with app.testing() as test:
        await work.enqueue()
        await test.run_pending()
        first, second = seen
        assert first == second


async def test_a_caught_failure_names_the_attribute_that_was_not_kept(app: WorkerOrchestrator) -> None:
    def charge() -> None:
        raise DeclinedError(code=7, card=object())

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> None:
        try:
            await ctx.step("charge", charge)
        except DeclinedError as error:
            await ctx.step("note", str, type(error.card).__name__)
        raise ConnectionError

    async with app.testing() as test:
        await work.enqueue()
        second = (await test.run_pending())[1]
        assert "step 'charge' failed in an earlier run, and 'card' of its DeclinedError was not kept" in str(
            second.error
        )


@pytest.mark.parametrize("in_group", [False, True])
async def test_a_failure_that_no_later_run_could_raise_is_refused_when_the_function_continues(
    app: WorkerOrchestrator, ran: list[str], *, in_group: bool
) -> None:
    class HiddenError(Exception):
        pass

    with pytest.raises(ValidationError) as invalid:
        TypeAdapter(int).validate_python("text")
    errors = {"hidden": HiddenError(), "invalid": invalid.value}

    def fail(error: Exception) -> None:
        raise ExceptionGroup("one", [error]) if in_group else error

    @app.task
    async def work(ctx: Context, name: str) -> None:
        try:
            await ctx.step("first", fail, errors[name])
        except (HiddenError, ValidationError, ExceptionGroup):
            await ctx.step("second", ran.append, "second")

    async with app.testing() as test:
        await work.enqueue(name="hidden")
        dead = dead_of(await test.run_pending())
        assert "HiddenError cannot be raised again in a later run: define it at the top level of a module" in dead
        await work.enqueue(name="invalid")
        dead = dead_of(await test.run_pending())
        assert re.search(
            r"(Error|Group) cannot be made again in a later run \(.*ValidationError.*\): decide inside", dead
        )
        assert "top level" not in dead
        assert ran == []


async def test_a_time_limit_around_a_step_ends_it_in_later_runs_too(app: WorkerOrchestrator, ran: list[str]) -> None:
    async def slow() -> None:
        ran.append("slow")
        await asyncio.Event().wait()

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                await ctx.step("slow", slow)
        except TimeoutError:
            await ctx.step("instead", ran.append, "instead")
        if ctx.attempt == 1:
            raise ConnectionError
        return "done"

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending()
        assert await job.result(DEADLINE) == "done"
        assert ran == ["slow", "instead"]


async def test_a_step_that_cancelled_itself_is_cancelled_in_later_runs_too(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    async def give_up() -> None:
        ran.append("give up")
        other = asyncio.create_task(asyncio.Event().wait())
        other.cancel()
        await other

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> str:
        try:
            await ctx.step("give up", give_up)
        except asyncio.CancelledError:
            await ctx.step("instead", ran.append, "instead")
        if ctx.attempt == 1:
            raise ConnectionError
        return "done"

    async with app.testing() as test:
        job = await work.enqueue()
        async with asyncio.timeout(DEADLINE):
            await test.run_pending()
        assert await job.result(DEADLINE) == "done"
        assert ran == ["give up", "instead"]


async def test_a_function_that_continues_although_its_steps_could_not_be_read_starts_over(
    app: WorkerOrchestrator, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> int:
        for name in ("a", "b"):
            try:
                await ctx.step(name, ran.append, name)
            except CorruptStoreError:
                ran.append("caught")
        await ctx.sleep(60)
        return len(ran)

    async with app.testing() as test:
        store = await app.control.store.open()
        steps, away = store.steps, [True]

        async def fail_once(*args: Any) -> Any:
            if away:
                away.clear()
                raise CorruptStoreError("away")
            return await steps(*args)

        job = await work.enqueue()
        monkeypatch.setattr(store, "steps", fail_once)
        await test.advance(minutes=2)
        assert await job.result(DEADLINE) == 3
        assert ran == ["caught", "a", "b"]


async def test_a_function_that_continues_although_its_step_may_not_be_kept_starts_over(
    app: WorkerOrchestrator, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work(ctx: Context) -> int:
        try:
            await ctx.step("charge", ran.append, "charge")
        except CorruptStoreError:
            await ctx.step("instead", ran.append, "instead")
        return len(ran)

    async with app.testing() as test:
        store = await app.control.store.open()
        keep_step, lost = store.keep_step, [True]

        async def lose_the_reply(*args: Any, **taking: Any) -> bool:
            kept = await keep_step(*args, **taking)
            if lost:
                lost.clear()
                raise CorruptStoreError("the reply was lost")
            return kept

        monkeypatch.setattr(store, "keep_step", lose_the_reply)
        job = await work.enqueue()
        await test.advance(minutes=1)
        assert await job.result(DEADLINE) == 1
        assert ran == ["charge"]


async def test_a_dead_job_that_a_person_retries_continues_behind_its_steps(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    broken = [True]

    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        await ctx.step("first", ran.append, "first")
        if broken:
            raise ConnectionError
        await ctx.step("second", ran.append, "second")

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending()
        broken.clear()
        await app.retry_job(job.id)
        await test.run_pending(raise_errors=True)
        assert ran == ["first", "second"]


async def test_steps_that_changed_since_are_refused_with_a_reason_and_run_nothing(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    order = ["charge", "mail"]

    @app.task(retry=AGAIN)
    async def work(ctx: Context) -> None:
        for name in order:
            await ctx.step(name, ran.append, name)
        if ctx.attempt == 1:
            order.reverse()
            raise ConnectionError

    async with app.testing() as test:
        await work.enqueue()
        first, second = await test.run_pending()
        assert first.status is JobStatus.FAILED
        assert "step 1 was 'charge' when it ran, and is 'mail' now" in dead_of([second])
        assert ran == ["charge", "mail"]


async def test_steps_at_the_same_time_are_refused(app: WorkerOrchestrator, ran: list[str]) -> None:
    async def slow(name: str) -> None:
        ran.append(name)
        await asyncio.sleep(0)

    @app.task
    async def both(ctx: Context) -> None:
        await asyncio.gather(ctx.step("a", slow, "a"), ctx.step("b", slow, "b"))

    @app.task
    async def inside(ctx: Context) -> None:
        await ctx.step("outer", ctx.sleep, 5)

    async with app.testing() as test:
        await both.enqueue()
        assert "step 'b' begins while step 'a' is running: steps run one after another" in dead_of(
            await test.run_pending()
        )
        assert ran == ["a"]
        await inside.enqueue()
        assert "step 'sleep' begins while step 'outer' is running" in dead_of(await test.run_pending())


async def test_results_that_cannot_be_kept_are_refused_in_words(app: WorkerOrchestrator) -> None:
    def changed() -> int:
        return "text"  # type: ignore[return-value]

    @app.task
    async def work(ctx: Context, kind: str) -> None:
        values: dict[str, Any] = {"object": threading.Lock, "large": lambda: "x" * 2_000_000, "misfit": changed}
        await ctx.step(kind, values[kind])

    async with app.testing() as test:
        for kind, words in (
            ("object", "step 'object' of work returned lock, which cannot be kept"),
            ("large", "step 'large' of work returned 2,000,005 bytes; 1,048,576 are allowed"),
            ("misfit", "the result of step 'misfit' of work is not what its function is annotated to return"),
        ):
            await work.enqueue(kind)
            assert words in dead_of(await test.run_pending())


async def test_a_thread_that_was_told_to_stop_begins_no_other_step(ran: list[str]) -> None:
    app = WorkerOrchestrator("memory://", tick_interval=0.05)
    timed_out, ended = threading.Event(), threading.Event()

    @app.task(timeout_seconds=0.1, max_retries=0)
    def work(ctx: Context) -> None:
        timed_out.wait(DEADLINE)
        try:
            ctx.blocking.step("late", ran.append, "late")
        except JobCancelledError as error:
            ran.append(str(error))
        ended.set()

    await app.start()
    job = await work.enqueue()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    timed_out.set()
    assert await asyncio.to_thread(ended.wait, DEADLINE)
    assert ran == [f"job {job.id} was told to stop: it begins no other step"]
    await app.stop()


@pytest.mark.parametrize("inside", [False, True])
async def test_a_stop_that_leaves_out_a_step_hands_the_job_back_though_the_function_returns(
    app: WorkerOrchestrator, ran: list[str], *, inside: bool
) -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        try:
            await (ctx.step("slow", hang) if inside else hang())
        except asyncio.CancelledError:
            ran.append("stopped")
        if not inside:
            with suppress(Exception):
                await ctx.step("late", ran.append, "late")

    await app.start()
    job = await work.enqueue()
    async with asyncio.timeout(DEADLINE):
        await begun.wait()
    await app.stop(0)
    record = (await app.get_job(job.id)).record
    assert (record.status, record.attempt, ran) == (JobStatus.QUEUED, 0, ["stopped"])
    await app.close()


async def test_a_timeout_does_not_become_a_part_of_the_steps(ran: list[str]) -> None:
    clock = ManualClock()
    app = WorkerOrchestrator("memory://", clock=clock)

    async def slow(attempt: int) -> None:
        if attempt == 1:
            await asyncio.Event().wait()

    @app.task(timeout_seconds=30, retry=AGAIN)
    async def work(ctx: Context) -> None:
        try:
            await ctx.step("slow", slow, ctx.attempt)
        finally:
            await ctx.step("tidy", ran.append, f"attempt {ctx.attempt}")

    await app.start()
    job = await work.enqueue()
    await until_idle()
    await clock.advance(31)
    assert await job.ended(DEADLINE) is JobStatus.COMPLETED
    assert ran == ["attempt 2"]
    await app.stop()


async def lose_the_job(app: WorkerOrchestrator, job_id: str) -> None:
    """Let another instance take a job away from its run."""
    store, now = app.control.store.store, app.control.now()
    await store.beat([Beat(instance="thief", node="n", pool="default", slots=1)], 15, now)
    await store.leave([(await app.get_job(job_id)).instance or ""], now)
    await store.reap("thief", 10, now)


async def test_a_stale_run_keeps_no_step(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        await ctx.step("before", lambda: None)
        await lose_the_job(app, ctx.job_id)
        await ctx.step("after", lambda: None)

    async with app.testing() as test:
        job = await work.enqueue()
        [run] = await test.run_pending()
        assert isinstance(run.exception, JobStateError)
        assert "is stale: another run has taken over" in str(run.exception)
        assert [step.name for step in (await app.control.jobs.get_shown(job.id))[2].steps] == ["before"]


async def test_a_stale_run_does_not_complete_its_job_though_the_function_returns(
    app: WorkerOrchestrator, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        await lose_the_job(app, ctx.job_id)
        with suppress(JobStateError):
            await ctx.step("after", lambda: None)

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending()
        assert f"the outcome 'queued' of job {job.id} was rejected" in caplog.text


async def test_a_stale_run_begins_no_other_step_though_the_function_continues(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        await ctx.step("first", lambda: None)
        await lose_the_job(app, ctx.job_id)
        for name in ("second", "third"):
            with suppress(JobStateError):
                await ctx.step(name, ran.append, name)

    async with app.testing() as test:
        await work.enqueue()
        await test.run_pending()
        assert ran == ["second"], "that was when it learned that another run has taken over"


# ── waits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_sleep_holds_no_slot_and_no_attempt_and_what_came_before_runs_once(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.task(max_retries=0, timeout_seconds=5)
    async def trial(ctx: Context, user: str) -> int:
        await ctx.step("welcome", ran.append, f"welcome {user}")
        await ctx.sleep(days=3)
        await ctx.step("remind", ran.append, f"remind {user}")
        await ctx.sleep(timedelta(hours=1), minutes=30)
        return ctx.attempt

    async with app.testing() as test:
        job = await trial.enqueue("jo")
        [run] = await test.run_pending()
        assert (run.status, run.error) == (JobStatus.SCHEDULED, None)
        record = (await job.refresh()).record
        assert (record.attempt, record.run_at) == (0, test.clock.now() + 3 * 86_400)
        assert (await app.control.store.store.stats(test.clock.now())).pools["default"].processing == 0
        assert await test.advance(days=3, seconds=-1) == []
        assert len(await test.advance(seconds=1)) == 1
        assert len(await test.advance(minutes=90)) == 1
        assert ran == ["welcome jo", "remind jo"]
        assert await job.result(DEADLINE) == 1
        assert (await job.refresh()).history == ()


@pytest.mark.parametrize("plain", [False, True])
async def test_a_signal_wakes_the_job_that_waits_for_it(
    app: WorkerOrchestrator, ran: list[str], *, plain: bool
) -> None:
    if plain:

        @app.task
        def publish(ctx: Context) -> Any:
            ctx.blocking.step("draft", ran.append, "draft")
            ctx.blocking.sleep("5m")
            return ctx.blocking.wait_for("approval", timeout_seconds=3600)
    else:

        @app.task
        async def publish(ctx: Context) -> Any:
            await ctx.step("draft", ran.append, "draft")
            await ctx.sleep("5m")
            return await ctx.wait_for("approval", timeout_seconds=3600)

    async with app.testing() as test:
        job = await publish.enqueue()
        assert len(await test.advance(minutes=5)) == 2
        assert await test.run_pending() == []
        await app.send(job.id, "other", 1)
        assert await test.run_pending() == []
        await app.send(job.id, "approval", {"by": "ann", "ok": True})
        await test.run_pending(raise_errors=True)
        assert await job.result(DEADLINE) == {"by": "ann", "ok": True}
        assert ran == ["draft"]


async def test_signals_that_come_early_are_taken_in_order_one_for_each_wait(app: WorkerOrchestrator) -> None:
    @app.task
    async def work(ctx: Context) -> list[Any]:
        return [await ctx.wait_for("n") for _ in range(3)]

    async with app.testing() as test:
        job = await work.with_options(delay_seconds=60).enqueue()
        await app.send(job.id, "n", 1)
        await app.send(job.id, "n", 2)
        await test.advance(minutes=1)
        assert (await job.refresh()).status is JobStatus.SCHEDULED
        await app.send(job.id, "n")
        await test.run_pending(raise_errors=True)
        assert await job.result(DEADLINE) == [1, 2, None]
        with pytest.raises(JobStateError, match="is completed: it accepts no more signals"):
            await app.send(job.id, "n", 4)


async def test_a_wait_that_takes_too_long_raises_and_the_function_may_continue(app: WorkerOrchestrator) -> None:
    @app.task
    async def work(ctx: Context) -> str:
        try:
            return str(await ctx.wait_for("approval", timeout_seconds="1h"))
        except TimeoutError as error:
            await ctx.sleep(60)
            return f"{error}; {await ctx.wait_for('late')}"

    async with app.testing() as test:
        job = await work.enqueue()
        await test.advance(hours=1)
        await app.send(job.id, "approval", "too late")  # the timeout has been kept: it stays what it was
        await app.send(job.id, "late", "ok")
        await test.advance(minutes=1)
        assert await job.result(DEADLINE) == "signal 'approval' did not arrive in time; ok"


async def test_a_signal_that_comes_after_a_timeout_ends_the_next_wait(app: WorkerOrchestrator, ran: list[str]) -> None:
    @app.task
    async def work(ctx: Context) -> str:
        for _ in range(5):
            try:
                return str(await ctx.wait_for("approval", timeout_seconds="1d"))
            except TimeoutError:
                await ctx.step("remind", ran.append, "remind")
        return "never"

    async with app.testing() as test:
        job = await work.enqueue()
        await test.advance(days=2)
        await app.send(job.id, "approval", "yes")
        await test.run_pending(raise_errors=True)
        assert await job.result(DEADLINE) == "yes"
        assert ran == ["remind", "remind"]
        shape = whole_job_shape(*await app.control.jobs.get_shown(job.id))
        ends = ["step", "timeout", "signal"]
        assert [step.kind for step in shape.steps if step.kind in ends] == [
            "timeout",
            "step",
            "timeout",
            "step",
            "signal",
        ]


async def test_what_cannot_be_sent_or_waited_for_is_refused_in_words(app: WorkerOrchestrator) -> None:
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    for name, value, error in [
        ("", 1, "the name of a signal is a text of 1 to 200 characters, not ''"),
        (5, 1, "a text of 1 to 200 characters, not 5"),
        ("a", object(), "the value of signal 'a' cannot be encoded"),
        ("a", "x" * 2_000_000, "2,000,005 bytes; 1,048,576 are allowed"),
        ("a", deep, "nested more than 100 levels deep"),
    ]:
        with pytest.raises(PayloadError, match=error):
            await app.send("job", name, value)  # type: ignore[arg-type]
    with pytest.raises(UnknownJobError):
        await app.send("none", "a")
    for seconds in ("soon", -5, float("inf")):
        with pytest.raises(ConfigurationError, match=r"the time of ctx\.sleep must be a time of 0 or more, such as 90"):
            await make_context().sleep(seconds)
        with pytest.raises(ConfigurationError, match="timeout_seconds must be a time of 0 or more"):
            await make_context().wait_for("a", timeout_seconds=seconds)
    await app.close()


async def test_a_step_that_cannot_work_is_refused_in_words(app: WorkerOrchestrator) -> None:
    async def charge() -> int:
        return 1

    mistakes: list[tuple[Callable[[Any], Any], str]] = [
        (lambda ctx: ctx.step("", charge), "the name of a step is a text of 1 to 200 characters, not ''"),
        (lambda ctx: ctx.wait_for(""), "the name of a signal is a text of 1 to 200 characters, not ''"),
        (lambda ctx: ctx.step("a", charge()), "write the function without parentheses"),
        (lambda ctx: ctx.blocking.step("a", 5), "needs a function and its arguments, ctx.step"),
        (lambda ctx: ctx.step("a", charge), "a plain function cannot do; use ctx.blocking.step"),
        (lambda ctx: ctx.sleep(5), "use ctx.blocking.sleep"),
        (lambda ctx: ctx.wait_for("a"), "use ctx.blocking.wait_for"),
        (lambda ctx: ctx.enqueue_flow(), "use ctx.blocking.enqueue_flow"),
    ]

    def plain(ctx: Context, n: int) -> None:
        mistakes[n][0](ctx)

    async def awaits(ctx: Context, n: int) -> None:
        await mistakes[n][0](ctx)

    workers = [
        app.register_worker(one.__name__, one, execution_mode="triggered", max_retries=0) for one in (awaits, plain)
    ]
    async with app.testing() as test:
        for n, (_, error) in enumerate(mistakes):
            await workers[n > 2].enqueue(n=n)
            with pytest.raises((StepError, LifecycleError), match=error):
                await test.run_pending(raise_errors=True)


async def test_a_wait_passes_through_what_catches_exceptions_and_through_what_is_around_the_job(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.around_job
    def plain(ctx: Context) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001 - as a user's error reporting does
            ran.append("reported")

    @app.around_job
    async def other(ctx: Context) -> AsyncIterator[None]:
        ran.append("in")
        try:
            yield
        finally:
            ran.append("out")

    @app.task
    async def work(ctx: Context) -> None:
        try:
            await ctx.sleep(60)
        except Exception:  # noqa: BLE001 - as careless code does
            ran.append("caught")

    @app.task
    def work_in_thread(ctx: Context) -> None:
        try:
            ctx.blocking.sleep(60)
        except Exception:  # noqa: BLE001 - as careless code does
            ran.append("caught")

    async with app.testing() as test:
        for worker in (work, work_in_thread):
            ran.clear()
            job = await worker.enqueue()
            await test.run_pending(raise_errors=True)
            assert ran == ["in", "out"]
            assert (await job.refresh()).status is JobStatus.SCHEDULED
            await test.advance(minutes=1, raise_errors=True)
            assert (await job.refresh()).status is JobStatus.COMPLETED


async def test_a_function_that_catches_everything_still_runs_nothing_early(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.task
    async def work(ctx: Context) -> None:
        try:
            await ctx.sleep(60)
        except BaseException:  # noqa: BLE001 - as careless code does
            ran.append("caught")
        await ctx.step("later", ran.append, "later")

    async with app.testing() as test:
        await work.enqueue()
        await test.run_pending()
        assert ran == ["caught"]
        await test.advance(minutes=1)
        assert ran == ["caught", "later"]


@pytest.mark.parametrize("call", ["step", "sleep", "wait_for", "enqueue_flow"])
async def test_what_a_function_forgets_to_await_is_named(app: WorkerOrchestrator, call: str) -> None:
    forgotten: list[Any] = []
    arguments: dict[str, tuple[Any, ...]] = {"step": ("charge", int), "sleep": (60,), "wait_for": ("approval",)}

    @app.task
    async def work(ctx: Context) -> None:
        await ctx.step("first", int)
        forgotten.append(getattr(ctx, call)(*arguments.get(call, (work.call(),))))

    async with app.testing() as test:
        await work.enqueue()
        error = dead_of(await test.run_pending())
        assert re.match(rf"StepError: ctx\.{call}\(.*\) was not awaited: write await ctx\.{call}", error)
    forgotten[0].close()


async def test_a_step_that_is_still_running_when_the_function_returns_is_named(app: WorkerOrchestrator) -> None:
    tasks: list[asyncio.Task[Any]] = []

    @app.task
    async def work(ctx: Context) -> None:
        tasks.append(asyncio.create_task(ctx.step("slow", asyncio.Event().wait)))
        await asyncio.sleep(0)

    async with app.testing() as test:
        await work.enqueue()
        assert "ctx.step('slow', …) was not awaited" in dead_of(await test.run_pending())
    tasks[0].cancel()


async def close_a_sleep(ctx: Context) -> None:
    ctx.sleep(60).close()


async def allow_no_time(ctx: Context) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(ctx.step("a", int), 0)  # noqa: TID251 - as users write it


async def leave_a_group(ctx: Context) -> None:
    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.step("a", int))
            raise ConnectionError


async def cancel_while_it_runs(ctx: Context) -> None:
    task = asyncio.create_task(ctx.step("a", asyncio.Event().wait))
    await asyncio.wait({task}, timeout=0)
    task.cancel()


async def cancel_before_it_begins(ctx: Context) -> None:
    asyncio.create_task(ctx.step("a", int)).cancel()


@pytest.mark.parametrize(
    "act", [close_a_sleep, allow_no_time, leave_a_group, cancel_while_it_runs, cancel_before_it_begins]
)
async def test_a_step_that_the_function_cancels_is_not_forgotten(
    app: WorkerOrchestrator, act: Callable[[Context], Any]
) -> None:
    work = app.task(act)
    async with app.testing() as test:
        await work.enqueue()
        assert [run.status for run in await test.run_pending(raise_errors=True)] == [JobStatus.COMPLETED]


async def test_a_function_may_sleep_within_a_task_group(app: WorkerOrchestrator, ran: list[str]) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        async with asyncio.TaskGroup():
            await ctx.sleep(60)
        ran.append("slept")

    async with app.testing() as test:
        await work.enqueue()
        await test.run_pending(raise_errors=True)
        await test.advance(minutes=1)
        assert ran == ["slept"]


async def test_a_function_that_catches_what_ends_its_run_and_returns_has_not_completed_its_job(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    names = ["old"]

    @app.task
    async def work(ctx: Context) -> None:
        try:
            await ctx.step(names[0], ran.append, "step")
            await ctx.sleep(60)
        except BaseException as error:  # noqa: BLE001 - as careless code does
            ran.append(type(error).__name__)

    async with app.testing() as test:
        first, second = await work.enqueue(), await work.enqueue()
        await test.run_pending()
        assert (await first.refresh()).status is JobStatus.SCHEDULED
        names[0] = "new"
        await test.advance(minutes=1)
        assert (await second.refresh()).status is JobStatus.DEAD
        assert "StepError: step 1 was 'old' when it ran, and is 'new' now" in str(second.error)
        assert ran == ["step", "Suspended"] * 2 + ["StepError"] * 2


async def test_ctx_blocking_on_an_event_loop_says_what_to_use_instead(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        ctx.blocking.sleep(5)

    async with app.testing() as test:
        await work.enqueue()
        assert "use `await ctx.sleep(…)` instead" in dead_of(await test.run_pending())


async def test_a_job_that_waits_says_for_what_and_until_when(app: WorkerOrchestrator) -> None:
    @app.task
    async def work(ctx: Context, *, patient: bool = True) -> None:
        await ctx.sleep(60)
        await ctx.wait_for("approval", timeout_seconds=None if patient else "1h")

    async with app.testing(now=86_400) as test:
        job, hasty = await work.enqueue(), await work.enqueue(patient=False)
        await test.run_pending()
        why = await app.explain_job(job.id)
        assert why.text == "waits: its function sleeps, since 1970-01-02 00:00:00Z, until 1970-01-02 00:01:00Z"
        await test.advance(minutes=1)
        words = "waits: its function waits for the signal 'approval': send it with `shiftwork send {} approval`, "
        why = await app.explain_job(job.id)
        assert why.text == words.format(job.id) + "since 1970-01-02 00:01:00Z"
        assert (why.waits[0].code, why.waits[0].by) == ("signal", "approval")
        assert (why.estimate, why.estimate_basis) == (None, "no estimate: its function waits for a signal")
        assert whole_job_shape(await app.get_job(job.id), why).run_at is None
        why = await app.explain_job(hasty.id)
        assert why.text.endswith("until 1970-01-02 01:01:00Z")
        assert whole_job_shape(await app.get_job(hasty.id), why).run_at == "1970-01-02T01:01:00.000000Z"


# ── the real thing ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_running_orchestrator_frees_the_slot_of_a_job_that_waits(ran: list[str]) -> None:
    app = WorkerOrchestrator("memory://", tick_interval=0.05, max_concurrent=1)

    @app.task
    async def approve(ctx: Context) -> str:
        await ctx.step("ask", ran.append, "asked")
        await ctx.sleep(0.05)
        return str(await ctx.wait_for("answer"))

    @app.task
    def other() -> int:
        return 1

    await app.start()
    try:
        job = await approve.enqueue()
        while (await job.refresh()).record.wait is None:
            assert await (await other.enqueue()).result(DEADLINE) == 1
        await app.send(job.id, "answer", "yes")
        assert await job.result(DEADLINE) == "yes"
        assert ran == ["asked"]
        assert job.attempt == 1
    finally:
        await app.stop()
