"""Secrets that a function returns, gets from its steps or is sent: people are not shown them, programs get them."""

import json
import time
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import pytest
from msgspec import msgpack

from shiftwork import Context, JobStatus, Secret
from shiftwork.core.values.envelopes import hidden, is_hidden, revealed
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.handles.redaction import MASK, NOT_COMPARED, SHORTEST, PageSecrets, value_texts
from shiftwork.views.shapes.jobs import LARGE_SECRET, whole_job_shape
from shiftwork.web.responses import as_texts
from tests.runtime import fixtures
from tests.runtime.stage import DEADLINE, Stage

stage = fixtures.stage

KEY = "sk-hunter2-hunter2"


@dataclass
class Account:
    user: str
    key: Annotated[str, Secret]


async def shown(stage: Stage, job_id: str) -> Any:
    """A job as people see it, from a process that has not registered its worker."""
    other = stage.app()
    shape = whole_job_shape(*await other.control.jobs.get_shown(job_id))
    return json.loads(as_texts(shape))


@pytest.mark.parametrize("size", [0, 1, 2, 5, 10, 249, 250, 300, 70_000])
def test_a_hidden_value_is_recognised_by_its_beginning_and_comes_back(size: int) -> None:
    value = msgpack.encode("x" * size)
    assert (is_hidden(value), revealed(value)) == (False, value)
    assert is_hidden(hidden(value)[:20])
    assert revealed(hidden(value)) == value
    assert not is_hidden(b"")


async def test_a_result_that_is_annotated_as_secret_is_not_shown(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def issue() -> Annotated[str, Secret]:
        return KEY

    @app.task
    async def create(user: str) -> Account:
        return Account(user, KEY)

    @app.task
    async def use(account: Account, key: str) -> list[str]:
        return [account.user, str(account.key == key == KEY)]

    await app.start()
    issued, created = issue.call(), create.call(user="ann")
    flow = await app.enqueue_flow(use.call(account=created.output, key=issued.output))
    assert await flow.result(DEADLINE) == ["ann", "True"]
    for worker, result in (("issue", KEY), ("create", Account("ann", KEY))):
        [job] = await app.find_jobs(worker=worker)
        assert await job.result(DEADLINE) == result
        assert (await shown(stage, job.id))["result"] == MASK


async def test_a_secret_result_is_not_in_the_texts_of_the_job_that_gets_it(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    app = stage.app()

    @app.task
    async def issue() -> Annotated[str, Secret]:
        return KEY

    @app.task(max_retries=0)
    async def use(ctx: Context, keys: list[str]) -> None:
        ctx.logger.warning("using %s", keys[0])
        ctx.progress(1, 2, keys[0])
        raise ValueError(f"{keys[0]} is wrong")

    await app.start()
    flow = await app.enqueue_flow(use.call(keys=[issue.call().output]))
    [job] = [job for job in flow.jobs if job.worker == "use"]
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    seen = await shown(stage, job.id)
    assert f"{MASK} is wrong" in seen["error"]
    assert KEY not in json.dumps(seen) + caplog.text


async def test_a_scheduled_worker_may_return_a_secret_too(stage: Stage) -> None:
    app = stage.app()

    @app.worker(interval_seconds=3600)
    async def rotate() -> Annotated[str, Secret]:
        return KEY

    await app.start()
    assert await app.trigger_worker("rotate")
    [job] = await app.find_jobs(worker="rotate")
    assert await job.result(DEADLINE) == KEY
    assert (await shown(stage, job.id))["result"] == MASK


async def test_secrets_of_steps_and_signals_are_shown_nowhere(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    app = stage.app()
    code = "one-time-code-4711"

    def issue(user: str) -> Annotated[str, Secret]:
        return f"{KEY} of {user}"

    @app.task(max_retries=0)
    async def enrol(ctx: Context, user: str) -> None:
        key = await ctx.step("issue", issue, user)
        again = await ctx.step("again", partial(issue, user))
        account: Any = await ctx.step("account", Account, user, key)
        sent = await ctx.wait_for("code", secret=True)
        ctx.logger.warning("%s and %s", key, sent)
        ctx.progress(1, 2, sent)
        copied = await ctx.step("copy", lambda: {"copied": key})
        assert (again, account["key"], sent, copied) == (key, key, code, {"copied": key})
        raise ValueError(f"no {sent} for {key}")

    job = await enrol.enqueue(user="ann")
    for _ in range(2):  # the second one is not taken
        await app.send(job.id, "code", code)
    await app.start()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    seen = await shown(stage, job.id)
    results = {step["name"]: step["result"] for step in seen["steps"]}
    assert [results[name] for name in ("issue", "again", "account", "got code")] == [MASK] * 4
    assert results["copy"] == {"copied": MASK}
    assert seen["signals"][0]["value"] == MASK
    assert f"no {MASK} for {MASK}" in seen["error"]
    assert [secret for secret in (KEY, code) if secret in json.dumps(seen) + caplog.text] == []


async def test_a_signal_that_comes_early_is_not_shown_before_its_wait_says_whether_it_is_secret(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def publish(ctx: Context) -> str:
        return f"{await ctx.wait_for('approval')} {len(await ctx.wait_for('code', secret=True))}"

    job = await publish.enqueue()
    for _ in range(2):  # the second one of each is not taken
        await app.send(job.id, "approval", "yes")
        await app.send(job.id, "code", KEY)
    early = await shown(stage, job.id)
    assert [list(signal["value"]) for signal in early["signals"]] == [["not shown"]] * 4
    await app.start()
    assert await job.result(DEADLINE) == f"yes {len(KEY)}"
    assert [signal["value"] for signal in (await shown(stage, job.id))["signals"]] == ["yes", MASK]


async def test_known_secrets_of_the_payload_are_hidden_in_results_steps_and_signals(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def sign_in(ctx: Context, user: str, key: Annotated[str, Secret], pin: Annotated[int, Secret]) -> list[Any]:
        await ctx.step("log in", lambda: {"url": f"https://bank/?key={key}", key: [pin, 7], "user": user})
        return [await ctx.wait_for("answer"), f"{pin:d}", "public"]

    job = await sign_in.enqueue("ann", KEY, 987_654)
    for _ in range(2):  # the second one is not taken
        await app.send(job.id, "answer", {"key": KEY, "ok": True})
    await app.start()
    assert await job.result(DEADLINE) == [{"key": KEY, "ok": True}, "987654", "public"]
    seen = await shown(stage, job.id)
    assert seen["steps"][0]["result"] == {"url": f"https://bank/?key={MASK}", MASK: [MASK, 7], "user": "ann"}
    assert seen["signals"][0]["value"] == {"key": MASK, "ok": True}
    assert seen["result"] == [{"key": MASK, "ok": True}, MASK, "public"]
    assert KEY not in json.dumps(seen)


def test_a_secret_of_four_characters_is_hidden_and_a_shorter_one_would_hide_too_much() -> None:
    assert (value_texts("1234"), value_texts("123")) == ({"1234"}, set())


async def test_a_value_that_is_cut_within_a_secret_shows_no_part_of_it(stage: Stage) -> None:
    app = stage.app()

    def echo(key: str, before: int) -> list[str]:
        return ["-" * before + key + "-" * 100]

    @app.task
    async def sign_in(ctx: Context, key: Annotated[str, Secret]) -> None:
        for before in range(BEGINNING - len(KEY) - 10, BEGINNING):
            await ctx.step(f"{before}", echo, key, before)

    job = await sign_in.enqueue(KEY)
    await app.start()
    await job.result(DEADLINE)
    texts = [step["result"][0] for step in (await shown(stage, job.id))["steps"]]
    assert [text for text in texts if len(text.strip("-…")) > len(MASK)] == []
    assert [text for text in texts if KEY[:SHORTEST] in text] == []


async def test_a_secret_that_is_too_large_to_be_read_by_pages_is_shown_nowhere(stage: Stage) -> None:
    app = stage.app()
    pem = "".join(f"{n:04}" for n in range(1_000))

    def issue() -> Annotated[str, Secret]:
        return pem

    @app.task
    async def enrol(ctx: Context) -> list[str]:
        key = await ctx.step("issue", issue)
        await ctx.step("copy", lambda: {"whole": key, "end": key[-100:]})
        await ctx.step("nothing", lambda: None)
        return [key, key[-100:]]

    job = await enrol.enqueue()
    await app.start()
    assert await job.result(DEADLINE) == [pem, pem[-100:]]
    seen = await shown(stage, job.id)
    assert [step["result"] for step in seen["steps"]] == [MASK, LARGE_SECRET, None]
    assert seen["result"] == LARGE_SECRET


@pytest.mark.parametrize("n", [3, 30_000])
def test_a_page_with_very_many_secrets_takes_no_minutes(n: int) -> None:
    secrets = {f"secret {number:06}" for number in range(n)}
    page, began = PageSecrets(secrets), time.monotonic()
    hidden_values = [page.hide([f"{n} {secret}" for secret in secrets]) for _ in range(3)]
    assert hidden_values == [[f"3 {MASK}"] * 3 if n == 3 else NOT_COMPARED] * 3
    assert time.monotonic() - began < 10.0
