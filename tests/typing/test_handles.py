"""A type checker sees what a job takes and what it returns: mypy runs over snippets whose errors are marked.

A line that ends in `# E: code` must have exactly that error, and every other line none.
"""

import re
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest
from mypy import api

HEAD: Final = """\
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

from shiftwork import (
    Breaker, Context, Job, JobPriority, JobStatus, PoolConfig, Retry, WorkerConfig, WorkerInstance, WorkerOrchestrator,
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
            resize.with_options(priority="high")  # E: arg-type
            resize.with_options(delay_secs=3)  # E: call-arg
            resize.with_options(run_at="tomorrow")  # E: arg-type
        """,
    "many": """
        async def main() -> None:
            jobs = await app.enqueue_many([resize.call(path=p, width=320) for p in ("a", "b")])
            assert_type(jobs[0].id, str)
            assert_type(jobs[0].status, JobStatus)
            await app.enqueue_many([resize.call(path=3)])  # E: arg-type
            await app.enqueue_many([resize.enqueue("a")])  # E: list-item
            await app.enqueue_many([resize])  # E: list-item
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
            await app.trigger_worker("resize", timeout_seconds="5")  # E: arg-type
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
        from shiftwork.core.model import Event

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
        Retry(base_seconds="5")  # E: arg-type
        Breaker(failures=3, cool_down=5)  # E: call-arg
        """,
}

MARK: Final = re.compile(r"#\s*E:\s*([\w,-]+)\s*$")
FOUND: Final = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


def wanted_in(text: str) -> set[tuple[int, str]]:
    """Line and code of every error that is marked."""
    marks = ((number, MARK.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return {(number, code) for number, mark in marks if mark for code in mark[1].split(",")}


@pytest.fixture(scope="module")
def findings(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[int, str]]]:
    """What mypy says about each snippet; all of them in one run, because starting it costs most."""
    folder = tmp_path_factory.mktemp("snippets")
    files = {}
    for number, (name, snippet) in enumerate(SNIPPETS.items()):
        path = folder / f"snippet_{number}.py"
        path.write_text(HEAD + dedent(snippet))
        files[path.name] = name
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--python-version", "3.11"]
    cache = checkout / ".mypy_cache" / "snippets"
    out, problems, _ = api.run(
        [*options, "--config-file", "", "--cache-dir", str(cache), *(str(folder / name) for name in files)]
    )
    assert problems == ""
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in SNIPPETS}
    for line in out.splitlines():
        match = FOUND.match(line)
        if match:
            found[files[Path(match["file"]).name]].add((int(match["line"]), match["code"]))
        else:
            assert ": note: " in line, out
    return found


@pytest.mark.parametrize("name", SNIPPETS)
@pytest.mark.timeout(120)
def test_mypy_sees_what_is_wrong_and_nothing_else(name: str, findings: dict[str, set[tuple[int, str]]]) -> None:
    text = HEAD + dedent(SNIPPETS[name])
    lines = text.splitlines()
    found, wanted = findings[name], wanted_in(text)
    assert sorted((lines[number - 1].strip(), code) for number, code in found - wanted) == []
    assert sorted((lines[number - 1].strip(), code) for number, code in wanted - found) == []
