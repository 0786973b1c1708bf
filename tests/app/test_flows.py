"""Flows: calls that need each other, added in one step, and carried out in order."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, cast

import pytest
from msgspec.structs import replace

from shiftwork import (
    Context,
    Flow,
    FlowError,
    FlowFailure,
    JobCancelledError,
    JobFailedError,
    JobPriority,
    JobStateError,
    JobStatus,
    PayloadTypeError,
    ResultTimeoutError,
    Secret,
    WorkerOrchestrator,
)
from shiftwork.control.jobs.submission import Submission
from shiftwork.core.model.job_changes import Cancel, Requeue
from shiftwork.handles.flow import MOST_FLOW_BYTES, MOST_FLOW_JOBS, FlowStatus
from tests.runtime.stage import DEADLINE


@pytest.fixture
def app() -> WorkerOrchestrator:
    return WorkerOrchestrator("memory://", tick_interval=0.05)


@pytest.fixture
def ran() -> list[str]:
    """What has run, in order."""
    return []


def statuses(flow: Flow[Any]) -> dict[str, str]:
    return {job.worker: str(job.status) for job in flow.jobs}


async def refreshed(flow: Flow[Any]) -> dict[str, str]:
    for job in flow.jobs:
        await job.refresh()
    return statuses(flow)


def names(test_runs: list[Any]) -> list[str]:
    return [run.worker for run in test_runs]


# ── chains, fan-outs and fan-ins ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_chain_hands_results_over_and_runs_in_order(app: WorkerOrchestrator) -> None:
    @app.task
    async def resize(path: str, width: int) -> str:
        return f"{path}@{width}"

    @app.task
    def upload(image: str) -> dict[str, str]:
        return {"url": f"https://cdn/{image}"}

    @app.task
    async def notify(to: str) -> None: ...

    async with app.testing() as test:
        image = resize.call(path="a.png", width=320)
        stored = upload.call(image=image.output)
        flow = await app.enqueue_flow(notify.call(to="jo").after(stored))
        assert await refreshed(flow) == {"resize": "queued", "upload": "waiting", "notify": "waiting"}
        assert (await flow.status()).counts == {"waiting": 2, "queued": 1}
        runs = await test.run_pending(raise_errors=True)
        assert [(run.worker, run.result) for run in runs] == [
            ("resize", "a.png@320"),
            ("upload", {"url": "https://cdn/a.png@320"}),
            ("notify", None),
        ]
        assert [await flow.result(timeout_seconds="30s")] == [None]  # type: ignore[func-returns-value]
        assert (await flow.status()).state == "completed"


async def test_a_hundred_pages_are_merged_wherever_their_outputs_stand(app: WorkerOrchestrator) -> None:
    @app.task
    async def render(page: int) -> str:
        return f"page {page}"

    @app.task
    async def merge(pages: list[str], extra: dict[str, tuple[str, int]], title: str = "none") -> list[Any]:
        return [len(pages), pages[99], extra["cover"], title]

    async with app.testing() as test:
        pages = [render.call(page=n) for n in range(100)]
        cover = render.call(page=-1)
        book = merge.call(pages=[page.output for page in pages], extra={"cover": (cover.output, 7)}, title="t")
        flow = await app.enqueue_flow(book)
        await test.run_pending(raise_errors=True)
        assert await flow.result(DEADLINE) == [100, "page 99", ["page -1", 7], "t"]
        assert len(flow.jobs) == 102


async def test_a_job_that_returned_nothing_hands_over_none(app: WorkerOrchestrator) -> None:
    @app.task
    async def nothing() -> None: ...

    @app.task
    async def take(value: str | None) -> bool:
        return value is None

    async with app.testing() as test:
        flow = await app.enqueue_flow(take.call(value=nothing.call().output))
        await test.run_pending(raise_errors=True)
        assert await flow.result(DEADLINE) is True


async def test_several_calls_have_their_results_in_a_tuple_and_shared_needs_run_once(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.task
    async def load() -> int:
        ran.append("load")
        return 20

    @app.task
    async def add(n: int, to: int) -> int:
        return n + to

    async with app.testing() as test:
        loaded = load.call()
        flow = await app.enqueue_flow(*(add.call(n=n, to=loaded.output) for n in (1, 2)))
        await test.run_pending(raise_errors=True)
        assert await flow.result(DEADLINE) == (21, 22)
        assert ran == ["load"]


async def test_a_released_job_may_have_a_time_of_its_own(app: WorkerOrchestrator) -> None:
    @app.task
    async def step(n: int) -> None: ...

    async with app.testing() as test:
        later = step.with_options(delay_seconds=3600).call(2).after(step.call(1))
        flow = await app.enqueue_flow(later)
        assert len(await test.run_pending()) == 1
        assert [str((await job.refresh()).status) for job in flow.jobs] == ["completed", "scheduled"]
        assert (await flow.status()).state == "running"
        assert len(await test.advance(hours=1)) == 1


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_calls_that_cannot_be_a_flow_are_refused_and_nothing_is_added(app: WorkerOrchestrator) -> None:
    other = WorkerOrchestrator("memory://")

    @app.task
    async def mine(n: int = 0) -> int:
        return n

    @other.task
    async def foreign() -> int:
        return 0

    first, second = mine.call(), mine.call()
    first.after(second.after(first))
    unique = mine.with_options(unique_key="k").call()
    async with app.testing():
        for calls, words in (
            ([first], "these calls wait for each other: mine → mine → mine"),
            ([mine.call(n=foreign.call().output)], "foreign is a worker of another app"),
            ([mine.call().after(unique)], "mine: a call of a flow cannot have a unique_key"),
            ([], "a flow needs at least one call"),
            ([[mine.call()]], r"one by one, not \[<Call of mine>\]"),
            ([mine], "one by one, not <Worker mine"),
        ):
            with pytest.raises(FlowError, match=words):
                await app.enqueue_flow(*calls)
        with pytest.raises(FlowError, match="this call needs other calls: add all of them with enqueue_flow"):
            await app.enqueue_many([mine.call().after(mine.call())])
        with pytest.raises(FlowError, match="add all of them with enqueue_flow"):
            await mine.enqueue(n=mine.call().output)
        with pytest.raises(PayloadTypeError, match=r"takes calls, as WORKER\.call"):
            mine.call().after(mine)  # type: ignore[arg-type]
        assert await app.find_jobs() == []


def test_an_output_is_passed_on_and_nothing_else(app: WorkerOrchestrator) -> None:
    @dataclass
    class Page:
        text: str

    @app.task
    async def render(text: str = "") -> str:
        return text

    @app.task
    async def merge(pages: list[str]) -> str:
        return "".join(pages)

    @app.task
    async def store(page: Page) -> None: ...

    output: Any = render.call().output
    for use in (
        lambda: f"<{output}>",
        lambda: str(output),
        lambda: output + "!",
        lambda: output[0],
        lambda: list(output),
        lambda: bool(output),
        lambda: output == "",
        lambda: {output},
    ):
        with pytest.raises(FlowError, match="the output of render is known only when that job has run"):
            use()
    with pytest.raises(AttributeError, match="the output of render is known only when"):
        output.upper()
    for worker, arguments in ((render, {"text": render.call()}), (merge, {"pages": [render.call()]})):
        with pytest.raises(PayloadTypeError, match=r"is a call, which has no value; pass its output: \w+=CALL\.output"):
            cast("Any", worker).call(**arguments)
    with pytest.raises(
        PayloadTypeError, match="store: <the output of render> is not a value yet: it may stand in lists"
    ):
        store.call(page=Page(output))
    for key in (1.5, None, True, b"k", (1, 2)):
        with pytest.raises(FlowError, match=r"output of render> is in a dict under the key .* must be a string or"):
            cast("Any", merge).call(pages=[{key: output}])


async def test_a_worker_with_options_is_of_this_app_also_when_its_pool_has_changed_its_timeout(
    app: WorkerOrchestrator,
) -> None:
    app.register_pool("p", job_timeout=5)

    @app.task(pool="p")
    async def work() -> int:
        return 1

    urgent = work.with_options(priority=JobPriority.HIGH)
    async with app.testing() as test:
        await test.run_pending()
        flow = await app.enqueue_flow(urgent.call())
        await test.run_pending()
        assert await flow.result(DEADLINE) == 1


async def test_a_flow_that_is_too_large_is_refused_in_words(app: WorkerOrchestrator) -> None:
    @app.task
    async def leaf() -> None: ...

    with pytest.raises(
        FlowError, match=f"a flow of 20,002 jobs is too large: {MOST_FLOW_JOBS:,} can be added together"
    ):
        await app.enqueue_flow(leaf.call().after(*(leaf.call() for _ in range(MOST_FLOW_JOBS + 1))))


async def test_wrong_types_are_refused_now_where_they_are_known_and_when_the_job_runs_otherwise(
    app: WorkerOrchestrator,
) -> None:
    @app.task
    async def number() -> int:
        return 7

    @app.task
    async def text(value: str, times: int) -> str:
        return value * times

    with pytest.raises(PayloadTypeError, match="text: argument 'times': Expected `int`, got `str`"):
        text.call(value=number.call().output, times="three")  # type: ignore[arg-type]

    @app.task(concurrency_key="{value}-{times}")
    async def keyed(value: int, times: int) -> None: ...

    with pytest.raises(PayloadTypeError, match="'value' is the output of another call, which is not known by then"):
        keyed.call(value=number.call().output, times=1)
    with pytest.raises(PayloadTypeError, match="colour"):
        text.call(value=number.call().output, times=1, colour="red")  # type: ignore[call-arg,arg-type]

    @app.task(concurrency_key="{times}")
    async def keyed_otherwise(value: int, times: int) -> None: ...

    async with app.testing() as test:
        keyed_flow = await app.enqueue_flow(keyed_otherwise.call(value=number.call().output, times=3))
        assert {(await job.refresh()).record.key for job in keyed_flow.jobs} == {None, "3"}
        await test.run_pending()
        flow = await app.enqueue_flow(text.call(value=number.call().output, times=1))  # type: ignore[arg-type]
        runs = await test.run_pending()
        assert [run.status for run in runs] == [JobStatus.COMPLETED, JobStatus.DEAD]
        assert "the payload does not fit text: argument 'value': Expected `str`, got `int`" in str(runs[1].error)
        with pytest.raises(JobFailedError, match="does not fit text"):
            await flow.result(DEADLINE)


async def test_a_job_that_takes_results_keeps_its_arguments_when_it_is_retried(app: WorkerOrchestrator) -> None:
    @app.task
    async def number() -> int:
        return 7

    @app.task
    async def half(n: int) -> float:
        return n / 2

    async with app.testing() as test:
        flow = await app.enqueue_flow(half.call(n=number.call().output))
        await app.cancel_job(flow.jobs[1].id)
        with pytest.raises(JobStateError, match="its arguments are results of other jobs"):
            await app.retry_job(flow.jobs[1].id, payload={"n": 8})
        await app.retry_job(flow.jobs[1].id)
        await test.run_pending(raise_errors=True)
        assert await flow.result(DEADLINE) == 3.5


async def test_a_payload_without_a_place_for_the_result_is_dead_with_a_reason_and_stops_nothing(
    app: WorkerOrchestrator,
) -> None:
    @app.task
    async def number() -> int:
        return 7

    @app.task
    async def half(n: list[int]) -> float:
        return n[0] / 2

    async with app.testing() as test:
        flow = await app.enqueue_flow(half.call(n=[number.call().output]))
        damaged = flow.jobs[1].id
        store = app.control.store.store
        await store.amend([damaged], Cancel(), test.clock.now())
        await store.amend([damaged], Requeue(test.clock.now(), b"\x81\xa1n\x90"), test.clock.now())
        await number.enqueue()
        runs = await test.run_pending()
        assert "its payload has no place for the results of other jobs" in str((await app.get_job(damaged)).error)
        assert names(runs) == ["number", "number"]


# ── what breaks ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_dead_job_holds_what_needs_it_until_the_flow_is_retried(app: WorkerOrchestrator) -> None:
    broken = [True]

    @app.task(max_retries=0)
    async def fetch() -> int:
        if broken:
            raise ConnectionError("the shop is closed")
        return 5

    @app.task
    async def report(n: int) -> str:
        return f"{n} orders"

    @app.task
    async def tidy() -> None: ...

    async with app.testing() as test:
        fetched = fetch.call()
        flow = await app.enqueue_flow(report.call(n=fetched.output), tidy.call().after(fetched, whatever=True))
        assert names(await test.run_pending()) == ["fetch", "tidy"]
        assert await refreshed(flow) == {"fetch": "dead", "report": "waiting", "tidy": "completed"}
        assert (await flow.status()).state == "broken"
        with pytest.raises(FlowError, match=r"job \w+ of fetch is dead: ConnectionError: the shop is closed.*--flow"):
            await flow.result(DEADLINE)
        broken.clear()
        assert await flow.retry() == 1
        assert names(await test.run_pending()) == ["fetch", "report"]
        assert await flow.result(DEADLINE) == ("5 orders", None)
        assert await flow.retry() == 0


async def test_a_clean_up_behind_a_broken_chain_runs_and_is_handed_what_failed(app: WorkerOrchestrator) -> None:
    handed: list[tuple[str, tuple[FlowFailure, ...]]] = []
    broken = [True]

    @app.task(max_retries=0)
    async def fetch(token: Annotated[str, Secret]) -> int:
        if broken:
            raise ConnectionError(f"{token} was refused")
        return 5

    @app.task
    async def total(n: int) -> int:
        return n

    @app.task
    async def clean_up(ctx: Context) -> None:
        handed.append((ctx.name, ctx.flow_failures))

    @app.task
    def tidy(ctx: Context) -> None:
        handed.append((ctx.name, ctx.flow_failures))

    async with app.testing() as test:
        fetched, idle = fetch.call(token="hunter2"), fetch.with_options(delay_seconds=600).call(token="x")
        summed = total.call(n=fetched.output)
        last = tidy.call().after(clean_up.call().after(summed, idle, whatever=True))
        flow = await app.enqueue_flow(last, tidy.call().after(summed, fetched, whatever=True))
        await app.cancel_job(next(job.id for job in flow.jobs if job.status is JobStatus.SCHEDULED))
        assert names(await test.run_pending()) == ["fetch", "clean_up", "tidy", "tidy"]
        dead, cancelled = (job for job in flow.jobs if job.worker == "fetch")
        failure = FlowFailure("fetch", dead.id, "ConnectionError: ••• was refused")
        other = FlowFailure("fetch", cancelled.id, "cancelled")
        wanted = [("clean_up", {failure, other}), ("tidy", {failure}), ("tidy", set())]
        seen = [(name, set(failures)) for name, failures in handed]  # the first two run side by side
        assert [one for one in wanted if one not in seen] == []
        assert len(seen) == len(wanted)
        broken.clear()
        assert await flow.retry() == 2
        assert names(await test.run_pending()) == ["fetch", "fetch", "total"], "what has run stays so"


async def test_a_job_is_handed_no_more_than_a_hundred_failures(
    app: WorkerOrchestrator,
) -> None:
    handed: list[tuple[FlowFailure, ...]] = []

    @app.task(max_retries=0)
    async def visit(page: int) -> None:
        raise ValueError("x" * 5_000)

    @app.task
    async def sum_up(ctx: Context) -> None:
        handed.append(ctx.flow_failures)

    async with app.testing() as test:
        flow = await app.enqueue_flow(sum_up.call().after(*(visit.call(page) for page in range(120)), whatever=True))
        await test.run_pending()
        [failures] = handed
        assert len(failures) == 100
        assert {len(one.error) for one in failures} == {1_000}
        assert {one.job_id for one in failures} <= {job.id for job in flow.jobs}


async def test_each_of_very_many_jobs_is_handed_what_failed_before_it() -> None:
    """All of them are claimed at once, each behind a stranded job of its own; one needs more jobs than all others."""
    app = WorkerOrchestrator("memory://", tick_interval=0.05, max_concurrent=500)
    handed: list[tuple[str, ...]] = []

    @app.task(max_retries=0)
    async def fetch() -> None:
        raise ConnectionError

    @app.task
    async def total(n: int) -> int:
        return n

    @app.task
    async def clean_up(ctx: Context) -> None:
        handed.append(tuple(failure.worker for failure in ctx.flow_failures))

    fetched = fetch.call()
    totals = [total.call(n).after(fetched) for n in range(300)]
    last = clean_up.call().after(*totals, whatever=True)
    flow = await app.enqueue_flow(last, *(clean_up.call().after(one, whatever=True) for one in totals))
    await app.start()
    try:
        await asyncio.gather(*(job.ended(DEADLINE) for job in flow.jobs if job.worker == "clean_up"))
    finally:
        await app.stop()
    assert handed == [("fetch",)] * 301
    assert await flow.status() == FlowStatus("broken", {"completed": 301, "waiting": 300, "dead": 1}, 300)


async def test_a_retried_failure_holds_no_less_than_a_running_job(app: WorkerOrchestrator) -> None:
    failures = [1]

    @app.task(max_retries=1)
    async def fetch() -> None:
        if failures:
            failures.pop()
            raise ConnectionError

    @app.task
    async def report() -> None: ...

    async with app.testing() as test:
        flow = await app.enqueue_flow(report.call().after(fetch.call(), whatever=True))
        assert names(await test.run_pending()) == ["fetch"]
        with pytest.raises(ResultTimeoutError, match=r"is not finished after 0.01 s: 1 waiting, 1 failed"):
            await flow.result(0.01)
        assert names(await test.advance(minutes=1)) == ["fetch", "report"]


async def test_a_cancelled_flow_does_nothing_more_and_can_be_retried(app: WorkerOrchestrator) -> None:
    @app.task
    async def first() -> int:
        return 1

    @app.task
    async def second(n: int) -> int:
        return n + 1

    async with app.testing() as test:
        flow = await app.enqueue_flow(second.call(n=first.call().output))
        assert await flow.cancel() == 2
        assert await test.run_pending() == []
        assert (await flow.status()).state == "cancelled"
        with pytest.raises(JobCancelledError):
            await flow.result(DEADLINE)
        [event] = [event for event in await app.events() if event.name == "flow.cancelled"]
        assert event.message == f"flow {flow.id} was cancelled: 2 jobs"
        assert await flow.retry() == 2
        await test.run_pending(raise_errors=True)
        assert await flow.result(DEADLINE) == 2


async def test_a_job_that_another_one_waits_for_cannot_be_discarded(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def fail() -> None:
        raise ValueError

    @app.task
    async def after() -> None: ...

    async with app.testing() as test:
        flow = await app.enqueue_flow(after.call().after(fail.call()))
        await test.run_pending()
        with pytest.raises(JobStateError, match="another job of its flow waits for it"):
            await app.discard_job(flow.jobs[0].id)


async def test_results_are_kept_while_the_flow_needs_them(app: WorkerOrchestrator) -> None:
    @app.task(keep_completed_seconds=1)
    async def number() -> int:
        return 7

    @app.task
    async def half(n: int) -> float:
        return n / 2

    async with app.testing() as test:
        needed = number.call()
        flow = await app.enqueue_flow(half.with_options(delay_seconds=86_400).call(n=needed.output))
        alone = await number.enqueue()
        await test.advance(hours=12)
        await app.control.store.store.prune(10, test.clock.now())
        assert [job.id for job in await app.find_jobs(worker="number")] == [flow.jobs[0].id], alone.id
        await test.advance(hours=12)
        assert await flow.result(DEADLINE) == 3.5


# ── found ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_flows_are_found_and_a_found_one_is_as_good_as_new(app: WorkerOrchestrator) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app.testing() as test:
        flows = [await app.enqueue_flow(double.call(n=double.call(n=n).output)) for n in range(3)]
        assert [found.id for found in await app.find_flows(limit=2)] == [flows[2].id, flows[1].id]
        assert (await app.find_flows(limit=1))[0].counts == {"waiting": 1, "queued": 1}
        found = await app.get_flow(flows[1].id)
        assert [job.id for job in found.jobs] == [job.id for job in flows[1].jobs]
        await test.run_pending(raise_errors=True)
        assert await found.result(DEADLINE) == 4
        with pytest.raises(FlowError, match="no flow has the id 'none'"):
            await app.get_flow("none")
        with pytest.raises(FlowError, match="no flow has the id 'none'"):
            await app.control.flows.cancel("none")


async def test_a_flow_whose_jobs_have_ids_can_be_added_twice(app: WorkerOrchestrator) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async def add() -> Flow[int]:
        first = double.with_options(job_id="first").call(n=1)
        return await app.enqueue_flow(double.with_options(job_id="second").call(n=first.output))

    async with app.testing() as test:
        one, two = await add(), await add()
        assert one.id == two.id
        assert len(await test.run_pending(raise_errors=True)) == 2
        assert await two.result(DEADLINE) == 4
        assert len(await app.find_flows()) == 1


async def test_different_calls_with_one_id_are_refused(app: WorkerOrchestrator) -> None:
    @app.task
    async def first(n: int = 1) -> int:
        return n

    @app.task
    async def then() -> None: ...

    for calls in (
        (first.with_options(job_id="mine").call(n=1), first.with_options(job_id="mine").call(n=2)),
        (then.with_options(job_id="mine").call().after(first.with_options(job_id="mine").call()),),
    ):
        with pytest.raises(FlowError, match=r"two different calls of this flow, of first and of .* 'mine'"):
            await app.enqueue_flow(*calls)
    flow = await app.enqueue_flow(*(first.with_options(job_id="mine").call(n=1) for _ in range(2)))
    assert await app.find_jobs(status="queued")
    assert {job.id for job in flow.jobs} == {"mine"}
    await app.close()


async def test_a_flow_that_is_added_again_continues_under_its_old_id(app: WorkerOrchestrator) -> None:
    """Some of its jobs may have been pruned meanwhile; those that are left keep their results."""

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async def add() -> Flow[int]:
        first = double.with_options(job_id="first").call(n=1)
        return await app.enqueue_flow(double.with_options(job_id="second").call(n=first.output))

    async with app.testing() as test:
        one = await add()
        await test.run_pending(raise_errors=True)
        await app.discard_job("second")
        two = await add()
        assert one.id == two.id
        assert await app.control.store.store.prune(10, test.clock.now() + 1e9) == 1  # put off
        await test.run_pending(raise_errors=True)
        assert await two.result(DEADLINE) == 4


async def test_a_result_from_outside_the_flow_is_refused(app: WorkerOrchestrator) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app.testing() as test:
        await double.with_options(job_id="alone").enqueue(n=1)
        outside = double.with_options(job_id="alone").call(n=1)
        with pytest.raises(FlowError, match="job alone of double exists already, outside of this flow"):
            await app.enqueue_flow(double.call(n=outside.output))
        flow = await app.enqueue_flow(double.call(n=2).after(outside))
        other = await app.enqueue_flow(double.call(n=3).after(double.with_options(job_id=flow.jobs[1].id).call(n=2)))
        assert other.id != flow.id
        await test.run_pending(raise_errors=True)
        assert (await flow.result(DEADLINE), await other.result(DEADLINE)) == (4, 6)


async def test_a_job_whose_input_is_gone_is_dead_with_the_reason(app: WorkerOrchestrator) -> None:
    @app.task
    async def double(n: int | None) -> int:
        return 2 * (n or 0)

    async with app.testing() as test:
        needed = double.call(n=1)
        flow = await app.enqueue_flow(double.with_options(delay_seconds=60).call(n=needed.output))
        await test.run_pending(raise_errors=True)
        await app.discard_job(flow.jobs[0].id)
        await test.advance(seconds=60)
        job = await flow.jobs[1].refresh()
        assert (job.status, job.error) == (
            JobStatus.DEAD,
            f"the result of job {flow.jobs[0].id}, which it needs, is gone: enqueue the flow again",
        )


async def test_a_running_job_adds_jobs_that_run_after_itself(app: WorkerOrchestrator) -> None:
    ran: list[str] = []

    @app.task
    async def note(word: str) -> None:
        ran.append(word)

    @app.task
    async def work(ctx: Context) -> None:
        this = work.with_options(job_id=ctx.job_id).call()
        tidy = note.call("tidy").after(this)
        await ctx.enqueue_flow(note.call("tidied").after(tidy), note.call("page"))
        end = note.with_options(job_id="end").call("")
        with pytest.raises(FlowError, match="and all that it adds"):
            await ctx.enqueue_flow(note.call("never").after(end))
        ran.append("work")

    async with app.testing() as test:
        flow = await app.enqueue_flow(note.with_options(job_id="end").call("end").after(work.call()))
        await test.run_pending(raise_errors=True)
        await flow.result(DEADLINE)
        assert sorted(ran[:-2]) == ["page", "tidy", "work"]
        assert ran[-2:] == ["tidied", "end"]
        assert ran.index("work") < ran.index("tidy")


async def test_a_flow_is_drawn_and_changed_without_reading_its_payloads(
    app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    flow = await app.enqueue_flow(double.call(n=double.call(n=1).output))
    store = await app.control.store.open()
    monkeypatch.delattr(type(store), "find")
    monkeypatch.delattr(type(store), "get")
    record, graph = await app.control.flows.picture(flow.id)
    assert (record.counts, len(graph.boxes)) == ({"waiting": 1, "queued": 1}, 2)
    assert (await flow.status()).state == "running"
    assert (await flow.cancel(), await flow.retry()) == (2, 2)
    await app.close()


async def test_a_flow_that_waits_for_a_dead_job_of_another_one_is_broken(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def fail() -> None:
        raise ValueError

    @app.task
    async def note() -> None: ...

    await app.start()
    try:
        outside = await fail.enqueue()
        await outside.ended(DEADLINE)
        flow = await app.enqueue_flow(note.call().after(fail.with_options(job_id=outside.id).call()))
        with pytest.raises(FlowError, match=f"job {outside.id} of fail is dead.* `shiftwork retry {outside.id}`"):
            await flow.result(DEADLINE)
        assert (await flow.status()).state == "broken"
    finally:
        await app.stop()


async def test_a_job_that_is_being_cancelled_adds_nothing(app: WorkerOrchestrator) -> None:
    @app.task
    async def crawl() -> None: ...

    store = await app.control.store.open()
    job = await crawl.enqueue()
    [claimed] = (await store.claim("i", "default", 1, app.control.now(), ["crawl"])).jobs
    await store.amend([job.id], Cancel(), app.control.now())
    with pytest.raises(JobStateError, match="is being cancelled: nothing can be added"):
        await app.control.flows.extend(claimed, [crawl.call()], [])
    assert await app.find_flows() == []
    await app.close()


async def test_a_waiting_job_says_what_it_waits_for(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def render(page: int) -> int:
        if page in {3, 4}:
            raise ValueError
        return page

    @app.task
    async def merge(pages: list[int]) -> int:
        return len(pages)

    @app.task
    async def mail() -> None: ...

    async with app.testing() as test:
        pages = [render.with_options(delay_seconds=60 if page > 4 else 0).call(page) for page in range(8)]
        merged = merge.call([page.output for page in pages])
        flow = await app.enqueue_flow(mail.call().after(merged))
        book, letter = flow.jobs[-2:]
        before = await app.explain_job(book.id)
        assert before.text == "waits for 8 of 8 jobs: 5 of render are queued, 3 of render are scheduled"
        assert (before.waits[0].code, before.waits[0].by) == ("needs", flow.id)
        assert (await app.explain_job(letter.id)).text == "waits for 1 job: 1 of merge is waiting"
        await test.run_pending()
        after = (await app.explain_job(book.id)).text
        assert after == (
            f"waits for 5 of 8 jobs: 3 of render are scheduled, job {flow.jobs[3].id} of render is dead, "
            "and 1 other ended badly: retry them or cancel the flow"
        )
        with pytest.raises(ResultTimeoutError, match="it waits for 5 of 8 jobs: 3 of render are scheduled"):
            await book.result(0)
        [wait] = (await app.explain_job(letter.id)).waits
        assert (wait.code, wait.by) == ("stranded", flow.jobs[3].id)
        assert wait.why == (
            f"1 job: 1 of merge cannot run, job {flow.jobs[3].id} of render is dead, and 1 other ended badly: "
            "retry them or cancel the flow"
        )
        assert (await flow.status()).stranded == 2
        [problem] = [one for one in (await app.get_health())["problems"] if one["code"] == "jobs_stranded"]
        assert problem["message"] == f"2 jobs of flow {flow.id} cannot run: job {flow.jobs[3].id} of render is dead"
        assert f"shiftwork retry {flow.jobs[3].id}" in problem["remedy"]
        with pytest.raises(ResultTimeoutError, match=f"1 of merge cannot run, job {flow.jobs[3].id} of render is dead"):
            await letter.result(0)


# ── jobs that a running job adds ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def site() -> dict[str, list[str]]:
    return {"/": ["/a", "/b"], "/a": ["/a/1"], "/b": [], "/a/1": []}


@pytest.mark.parametrize("plain", [False, True])
async def test_a_crawler_adds_its_pages_and_what_waits_for_it_waits_for_them(
    app: WorkerOrchestrator, site: dict[str, list[str]], ran: list[str], *, plain: bool
) -> None:
    if plain:

        @app.task
        def crawl(ctx: Context, url: str) -> None:
            ran.append(url)
            ctx.blocking.enqueue_flow(*(crawl.call(url=link) for link in site[url]))
    else:

        @app.task
        async def crawl(ctx: Context, url: str) -> None:
            ran.append(url)
            await ctx.enqueue_flow(*(crawl.call(url=link) for link in site[url]))

    @app.task
    async def index() -> None:
        ran.append("index")

    async with app.testing() as test:
        flow = await app.enqueue_flow(index.call().after(crawl.call(url="/")))
        await test.run_pending(raise_errors=True)
        assert (sorted(ran[:4]), ran[4:]) == (sorted(site), ["index"])
        assert (await flow.status()).counts == {"completed": 5}
        assert len((await app.get_flow(flow.id)).jobs) == 5


async def test_a_job_in_no_flow_starts_one_and_a_second_run_adds_nothing_twice(
    app: WorkerOrchestrator, ran: list[str]
) -> None:
    @app.task
    async def page(n: int) -> int:
        ran.append(f"page {n}")
        return n

    @app.task
    async def total(pages: list[int]) -> int:
        return sum(pages)

    @app.task(max_retries=1, retry=lambda _attempt, _error: 0)
    async def crawl(ctx: Context) -> list[str]:
        pages = [page.call(n=n) for n in (1, 1, 2)]
        ids = await ctx.enqueue_flow(total.call(pages=[one.output for one in pages]), page.call(n=9))
        ids += await ctx.enqueue_flow(page.call(n=9))
        if ctx.attempt == 1:
            raise ConnectionError
        return ids

    async with app.testing() as test:
        job = await crawl.enqueue()
        await test.run_pending()
        assert sorted(ran) == ["page 1", "page 1", "page 2", "page 9", "page 9"]
        summed, *nines = await job.result(DEADLINE)
        assert len(set(nines)) == 2
        assert await (await app.get_job(summed)).result(DEADLINE) == 4
        flow = await app.get_flow(job.id)
        assert len(flow.jobs) == 6


async def test_a_stale_run_adds_nothing(app: WorkerOrchestrator) -> None:
    @app.task
    async def child() -> None: ...

    @app.task
    async def parent() -> None: ...

    async with app.testing():
        job = await parent.enqueue()
        with pytest.raises(JobStateError, match=r"is stale: another run has taken over\. Nothing was added"):
            await app.control.flows.extend(replace(job.record.claimed(), fence=77), [child.call()], ())
        assert len(await app.find_jobs()) == 1


async def test_a_run_that_becomes_stale_while_it_adds_calls_adds_nothing(
    app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def child() -> None: ...

    @app.task
    async def parent() -> None: ...

    async with app.testing():
        job = await parent.enqueue()
        store = await app.control.store.open()
        [claimed] = (await store.claim("gone", "default", 1, app.control.now(), ["parent"])).jobs
        publish = Submission.publish_secrets

        async def frozen(self: Submission, workers: Any) -> None:
            await store.leave(["gone"], app.control.now())
            await store.reap("other", 1, app.control.now())
            await publish(self, workers)

        monkeypatch.setattr(Submission, "publish_secrets", frozen)
        with pytest.raises(JobStateError, match=r"is stale: another run has taken over\. Nothing was added"):
            await app.control.flows.extend(claimed, [child.call()], ())
        assert [one.id for one in await app.find_jobs()] == [job.id]


async def test_a_flow_with_too_many_bytes_is_refused(app: WorkerOrchestrator) -> None:
    @app.task
    async def keep(value: bytes) -> None: ...

    calls = [keep.call(value=bytes(900_000)) for _ in range(MOST_FLOW_BYTES // 900_000 + 1)]
    with pytest.raises(FlowError, match=f"bytes of arguments is too large: {MOST_FLOW_BYTES:,} can be added together"):
        await app.enqueue_flow(*calls)


# ── the real thing ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_running_orchestrator_carries_out_a_flow_and_waiting_callers_hear_when_it_breaks(
    app: WorkerOrchestrator,
) -> None:
    fail = [True]

    @app.task(max_retries=0)
    async def number() -> int:
        if fail:
            raise ValueError("not today")
        return 2

    @app.task
    def double(n: int) -> int:
        return 2 * n

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    await app.start()
    try:
        one = number.call()
        flow = await app.enqueue_flow(add.call(a=double.call(n=one.output).output, b=one.output))
        with pytest.raises(FlowError, match="of number is dead: ValueError: not today"):
            await flow.result(DEADLINE)
        fail.clear()
        waiting = asyncio.ensure_future(flow.result(DEADLINE))
        assert await flow.retry() == 1
        assert await waiting == 6
    finally:
        await app.stop()


def test_everything_about_flows_is_a_plain_call(app: WorkerOrchestrator) -> None:
    @app.task
    def double(n: int) -> int:
        return 2 * n

    app.blocking.start()
    flow = app.blocking.enqueue_flow(double.call(n=double.call(n=1).output))
    assert flow.blocking.result(DEADLINE) == 4
    assert flow.blocking.status().state == "completed"
    assert flow.blocking.cancel() == flow.blocking.retry() == 0
    assert app.blocking.get_flow(flow.id).blocking.result(DEADLINE) == 4
    assert [found.id for found in app.blocking.find_flows()] == [flow.id]
    app.blocking.stop()
