"""Right and wrong uses of what people hold. A line that ends in `# E: code` is wrong, and every other line is right.

The codes are those that mypy gives; all of them, if there are several.
"""

import re
from pathlib import Path
from textwrap import dedent
from typing import Final

HEAD: Final = """\
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from shiftwork import (
    Breaker, Call, Context, Event, Flow, GiveUp, Job, JobPriority, JobStatus, PoolConfig, Retry, RetryAfter, Snooze,
    WorkerConfig, WorkerOrchestrator,
)

app = WorkerOrchestrator("memory://")


@app.task(pool="images", timeout_seconds=60)
def resize(path: str, width: int = 320) -> str:
    return path


@app.task()
async def fetch(url: str) -> bytes:
    return b""


@app.task()
def plain_with_context(ctx: Context, n: int) -> float:
    return ctx.attempt / n


@app.task(max_retries=5)
async def async_with_context(ctx: Context, n: int, *, deep: bool = False) -> list[int]:
    return [n]


@app.task()
async def nothing() -> None: ...


@app.worker(cron="0 3 * * *")
async def nightly(ctx: Context) -> None: ...


@app.task
def bare(n: int) -> str:
    return ""


@app.task
async def bare_with_context(ctx: Context, n: int) -> bytes:
    return b""


@app.worker
async def bare_worker() -> None: ...


"""

SNIPPETS: Final = {
    "flows and durable functions": """
        async def main(ctx: Context) -> None:
            picture = resize.call(path="a.png")
            assert_type(picture.output, str)
            assert_type(await app.enqueue_flow(fetch.call(url=picture.output).after(nothing.call())), Flow[bytes])
            await app.enqueue_flow(plain_with_context.call(n=picture.output))  # E: arg-type
            assert_type(await (await app.enqueue_flow(picture)).result(timeout_seconds="1m"), str)
            assert_type(app.blocking.enqueue_flow(picture).blocking.result(), str)
            await ctx.enqueue_flow(picture)
            await ctx.enqueue_flow(3)  # E: arg-type
            assert_type(await ctx.step("plain", len, "abc"), int)
            assert_type(await ctx.step("async", fetch.function, "http://example.org"), Any)
            assert_type(ctx.blocking.step("plain", len, "abc"), int)
            await ctx.step("wrong", len, 3)  # E: call-overload
            await ctx.sleep(days=3)
            await ctx.sleep(weeks=3)  # E: call-arg
            assert_type(ctx.blocking.wait_for("approval", timeout_seconds="3d"), Any)
            await app.send("id", "approval", {"by": "ann"})
            await app.send("id")  # E: call-arg
    """,
    "what a flow is made of": """
        @app.task
        async def bind(title: str, pages: list[str]) -> int:
            return len(pages)

        def pages(count: int) -> list[Call[str]]:
            return [resize.call(path=str(n)) for n in range(count)]

        async def main(job: Job[str]) -> None:
            outputs = [page.output for page in pages(3)]
            flow = await app.enqueue_flow(bind.call("Emma", outputs))
            assert_type(flow, Flow[int])
            assert_type(flow.id, str)
            assert_type(flow.jobs[0], Job[Any])
            assert_type((await flow.status()).counts, dict[str, int])
            assert_type(await flow.cancel(), int)
            assert_type(flow.blocking.retry(), int)
            assert_type(await app.get_flow("x"), Flow[Any])
            several = await app.enqueue_flow(*pages(2), bind.call("Emma", outputs))
            assert_type(await several.result(), tuple[Any, ...])
            page, bound = resize.call(path="1"), bind.call("Emma", outputs)
            two = await app.enqueue_flow(page, bound)
            assert_type(await two.result(), tuple[str, int])
            assert_type(app.blocking.enqueue_flow(page, bound, page).blocking.result(), tuple[str, int, str])
            assert_type(await app.enqueue_flow(page, bound, page, bound, page), Flow[tuple[str, int, str, int, str]])
            assert_type(await app.enqueue_flow(*pages(9)), Flow[tuple[Any, ...]])
            wrong: tuple[int, int] = await two.result()  # E: assignment
            assert_type(bind.call("", []).after(*pages(2), whatever=True), Call[int])
            assert_type(bind.with_options(tags=["a"]).call("", []).after(fetch.call("u")).output, int)
            bind.call("Emma", [fetch.call("u").output])  # E: list-item
            bind.call("Emma", pages(3))  # E: arg-type
            bind.call("Emma", outputs[0])  # E: arg-type
            fetch.call(url=nothing.call().output)  # E: arg-type
            bind.call("", []).after(job)  # E: arg-type
            bind.call("", []).after(resize)  # E: arg-type
            bind.call("", []).after(pages(2))  # E: arg-type
            bind.call("", []).after(fetch.call("u"), whatever="yes")  # E: arg-type
            await app.enqueue_flow(bind)  # E: call-overload
            await app.enqueue_flow(pages(2))  # E: call-overload
            text: str = await flow.result()  # E: assignment
        """,
    "right arguments": """
        async def main() -> None:
            await resize.enqueue(path="a.png", width=320)
            await resize.enqueue("a.png", 320)
            await resize.enqueue("a.png")
            await fetch.enqueue("http://example.org")
            await plain_with_context.enqueue(3)
            await async_with_context.enqueue(3, deep=True)
            await nothing.enqueue()
            resize.enqueue_blocking("a.png", width=3)
            await nightly.enqueue()
        """,
    "without parentheses": """
        async def main() -> None:
            assert_type(await (await bare.enqueue(n=3)).result(), str)
            assert_type(await (await bare_with_context.enqueue(3)).result(), bytes)
            await bare.enqueue("three")  # E: arg-type
            await bare_with_context.enqueue()  # E: call-arg
            assert_type(bare_worker.config, WorkerConfig)
        """,
    "wrong arguments": """
        async def main() -> None:
            await resize.enqueue(path=3, width=320)  # E: arg-type
            await resize.enqueue("a.png", width="320")  # E: arg-type
            await fetch.enqueue(b"http://example.org")  # E: arg-type
            await plain_with_context.enqueue("three")  # E: arg-type
            await async_with_context.enqueue(3, deep="very")  # E: arg-type
            resize.enqueue_blocking(3)  # E: arg-type
        """,
    "missing arguments": """
        async def main() -> None:
            await resize.enqueue()  # E: call-arg
            await resize.enqueue(width=3)  # E: call-arg
            await fetch.enqueue()  # E: call-arg
            await plain_with_context.enqueue()  # E: call-arg
            resize.enqueue_blocking()  # E: call-arg
            resize.call()  # E: call-arg
        """,
    "unknown arguments": """
        async def main(ctx: Context) -> None:
            await resize.enqueue("a.png", height=3)  # E: call-arg
            await resize.enqueue("a.png", 3, 4)  # E: call-arg
            await async_with_context.enqueue(3, True)  # E: call-arg
            await nothing.enqueue(1)  # E: call-arg
            await plain_with_context.enqueue(ctx, 3)  # E: call-arg,arg-type
        """,
    "results": """
        async def main() -> None:
            assert_type(await (await resize.enqueue("a")).result(), str)
            assert_type(await (await fetch.enqueue("a")).result(10), bytes)
            assert_type(await (await plain_with_context.enqueue(1)).result(timeout_seconds=10), float)
            assert_type(await (await async_with_context.enqueue(1)).result(), list[int])
            assert_type(await resize.enqueue("a"), Job[str])
            assert_type(resize.enqueue_blocking("a"), Job[str])
            assert_type(await (await resize.enqueue("a")).refresh(), Job[str])
            n: int = await (await resize.enqueue("a")).result()  # E: assignment
            text: str = await (await async_with_context.enqueue(1)).result()  # E: assignment
        """,
    "options": """
        async def main() -> None:
            special = resize.with_options(
                priority=JobPriority.CRITICAL, delay_seconds=30, unique_key="a.png", job_id="x"
            )
            assert_type(await (await special.enqueue("a")).result(), str)
            await special.enqueue(3)  # E: arg-type
            resize.with_options(run_at=datetime.now(UTC))
            resize.with_options(delay_seconds="1h30m").with_options(priority=None)
            limited = resize.with_options(max_retries=0, timeout_seconds="5m", expires_seconds=timedelta(hours=1))
            assert_type(await limited.enqueue("a"), Job[str])
            resize.with_options(tags=["red", "acme"]).with_options(tags=("red",)).with_options(tags={"red"})
            resize.with_options(tags="red")  # E: arg-type
            resize.with_options(max_retries="3")  # E: arg-type
            resize.with_options(expires=3)  # E: call-arg
            assert_type((await limited.enqueue("a")).tags, tuple[str, ...])
            await app.find_jobs(tag="red")
            await app.find_jobs(tag=3)  # E: arg-type
            resize.with_options(priority="high")  # E: arg-type
            resize.with_options(delay_secs=3)  # E: call-arg
            resize.with_options(run_at="tomorrow")  # E: arg-type
        """,
    "many": """
        async def main() -> None:
            jobs = await app.enqueue_many([resize.call(path=p, width=320) for p in ("a", "b")])
            assert_type(jobs, list[Job[str]])
            assert_type(await jobs[0].result(), str)
            assert_type(jobs[0].status, JobStatus)
            mixed = await app.enqueue_many([resize.call(path="a"), fetch.call("b"), nothing.call()])
            assert_type(mixed[0].id, str)
            await app.enqueue_many([resize.call(path=3)])  # E: arg-type
            await app.enqueue_many([resize])  # E: arg-type
        """,
    "calling the handle is calling the function": """
        async def main(ctx: Context) -> None:
            assert_type(resize("a.png", width=3), str)
            assert_type(await fetch("http://example.org"), bytes)
            assert_type(plain_with_context(ctx, 3), float)
            assert_type(await async_with_context(ctx, 3, deep=True), list[int])
            assert_type(await bare_with_context(ctx, 3), bytes)
            assert_type(resize.with_options(job_id="x")("a.png"), str)
            await nightly(ctx)
            await bare_worker()
            resize(3)  # E: arg-type
            resize("a.png", height=3)  # E: call-arg
            plain_with_context(3)  # E: call-arg,arg-type
            text: str = fetch("http://example.org")  # E: assignment
        """,
    "from synchronous code": """
        def main(jobs: list[Job[str]]) -> None:
            assert_type(resize.enqueue_blocking("a").blocking.result("10s"), str)
            assert_type(jobs[0].blocking.refresh(), Job[str])
            assert_type(jobs[0].blocking.ended(timeout_seconds=3), JobStatus)
            assert_type(app.blocking.get_job("x"), Job[Any])
            assert_type(app.blocking.find_jobs(status="dead", limit=3), list[Job[Any]])
            assert_type(app.blocking.enqueue_many([resize.call("a")]), list[Job[str]])
            assert_type(app.blocking.trigger_worker("resize", path="a"), bool)
            app.blocking.stop(timeout_seconds=timedelta(seconds=3))
            app.blocking.get_job(7)  # E: arg-type
            app.blocking.find_jobs(state="dead")  # E: call-arg
            app.blocking.scale_pool("images", 3, "many")  # E: arg-type
            jobs[0].blocking.result(10, 20)  # E: call-arg
        """,
    "options of workers": """
        def patient(attempt: int, error: Exception) -> float | None:
            return 3.0 * attempt

        def impatient(attempt: int) -> float:
            return 0.0

        async def right() -> None: ...

        app.register_worker("a", right, every="10s", timeout_seconds=timedelta(minutes=1), retry=patient)
        app.register_worker("b", right, {"interval_seconds": 5}, overlap="queue")
        app.register_worker("c", right, retry=Retry(on=(ConnectionError,), never_on=[ValueError], delays=[1, "1m"]))
        app.register_worker("d", right, breaker=Breaker(window_seconds="1m"), depends_on={"a": "fresh"})
        app.task(name="e", max_retries=3)(right)
        app.register_worker("f", right, timout_seconds=5)  # E: call-arg
        app.register_worker("g", right, overlap="skipp")  # E: arg-type
        app.register_worker("h", right, retry=impatient)  # E: arg-type
        app.register_worker("i", right, max_retries="3")  # E: arg-type
        app.register_worker("j", right, name="k")  # E: misc
        app.task(max_retires=3)(right)  # E: call-overload
        app.worker(execution_mode="loop")(right)  # E: call-overload
        Retry(on=ConnectionError)  # E: arg-type
        Retry(delay=[1])  # E: call-arg
        RetryAfter("30s", "busy")
        Snooze(timedelta(hours=1))
        GiveUp("gone")
        Snooze()  # E: call-arg
        """,
    "options of pools": """
        app.register_pool("p", kind="process", memory="512MB", job_timeout="5m", bounds={"0 10 * * *": (10, 25)})
        app.register_pool("q", kind="procs")  # E: arg-type
        app.register_pool("r", max_worker=3)  # E: call-arg
        app.register_pool("s", max_workers="3")  # E: arg-type
        """,
    "filters": """
        async def main() -> None:
            await app.find_jobs(status=JobStatus.DEAD, created_after=datetime.now(UTC), limit=3)
            await app.find_jobs(status=["dead", JobStatus.FAILED])
            assert_type(await app.retry_jobs(rate="10/s", worker="resize", group="x"), int)
            await app.find_jobs(state="dead")  # E: call-arg
            await app.find_jobs(limit="3")  # E: arg-type
            await app.discard_jobs(groop="x")  # E: call-arg
        """,
    "jobs and answers": """
        async def main() -> None:
            job = await app.get_job("x")
            assert_type(job.attempts, int)
            assert_type(job.created_at, float)
            assert_type(job.ended_at, float | None)
            assert_type(job.history[0].error, str)
            assert_type(job.error, str | None)
            assert_type(await app.find_jobs(status="dead"), list[Job[Any]])
            assert_type(await app.trigger_worker("resize", path="a"), bool)
            assert_type(await app.trigger_worker("resize", timeout_seconds=5, path="a"), bool)
            await app.trigger_worker("resize", timeout_seconds=[5])  # E: arg-type
            assert_type(await app.recover_stuck_jobs(), int)
            assert_type(app.get_status(), dict[str, Any])
            await app.get_job(7)  # E: arg-type
            job.status = JobStatus.DEAD  # E: misc
        """,
    "forgetting to await": """
        async def main() -> None:
            resize.enqueue("a")  # E: unused-coroutine
            app.trigger_worker("resize")  # E: unused-coroutine
        """,
    "hooks": """
        @app.on("worker.disabled")
        def plain(event: Event) -> None: ...

        @app.on("*")
        async def coroutine(event: Event) -> None: ...

        @app.on("job.dead")  # E: type-var
        def wrong(event: str) -> None: ...
        """,
    "the orchestrator": """
        WorkerOrchestrator("memory://", tick_interval=5.0, max_concurrent=5, namespace="n", enable_health_checks=False)
        WorkerOrchestrator("memory://", tick_intervall=5.0)  # E: call-arg
        WorkerOrchestrator("memory://", "namespace")  # E: call-arg
        assert_type(app.register_pool("p", kind="async"), PoolConfig)
        assert_type(nightly.config, WorkerConfig)
        Retry(base_seconds=[5])  # E: arg-type
        Breaker(failures=3, cool_down=5)  # E: call-arg
        """,
}

MARK: Final = re.compile(r"#\s*E:\s*([\w,-]+)\s*$")


def text_of(name: str) -> str:
    """Return a snippet as a module."""
    return HEAD + dedent(SNIPPETS[name])


def marks_in(text: str) -> dict[int, set[str]]:
    """Return the codes of the errors that are marked, by line."""
    marks = ((number, MARK.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return {number: set(mark[1].split(",")) for number, mark in marks if mark}


def write_snippets(folder: Path) -> dict[str, str]:
    """Write every snippet as a module; return their names by file."""
    files = {f"snippet_{number}.py": name for number, name in enumerate(SNIPPETS)}
    for file, name in files.items():
        (folder / file).write_text(text_of(name))
    return files
