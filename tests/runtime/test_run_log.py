"""Runs in the log: a failed attempt is seen at once, with its traceback, and many of them are summed up."""

import logging

import pytest

from shiftwork import Context, GiveUp, Retry, RetryAfter, Snooze
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import Act, Stage

Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _all(caplog: Log) -> None:
    caplog.set_level(logging.DEBUG, "shiftwork.runs")


def lines(caplog: Log) -> list[tuple[str, str]]:
    return [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "shiftwork.runs"]


async def test_every_failed_attempt_is_a_warning_and_the_dead_job_an_error(
    stage: Stage, clock: ManualClock, caplog: Log
) -> None:
    act = Act()
    app = stage.app()
    retry = Retry(base_seconds=5, jitter=0)
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=2, retry=retry)
    await app.start()
    job = await worker.enqueue()
    for seconds in (0, 5, 10):
        await clock.advance(seconds)
        await act.fail(ValueError("no\nsuch order"))
    failures = [one for one in caplog.records if one.levelno >= logging.WARNING and one.name == "shiftwork.runs"]
    assert [(one.levelname, one.getMessage()) for one in failures] == [
        ("WARNING", "act: attempt 1 of 3 failed, again in 5 s: ValueError: no such order"),
        ("WARNING", "act: attempt 2 of 3 failed, again in 10 s: ValueError: no such order"),
        ("ERROR", f"act: attempt 3 of 3 failed, job {job.id} is dead: ValueError: no such order"),
    ]
    assert [one.exc_text is not None for one in failures] == [True, False, True], "one that is repeated is left out"
    assert failures[0].exc_text is not None
    assert "stage.py" in failures[0].exc_text
    assert [(vars(one)["job_id"], vars(one)["worker"]) for one in failures] == [(job.id, "act")] * 3
    assert not [one for one in caplog.records if one.name == "shiftwork" and "is dead" in one.getMessage()]


async def test_starts_and_completions_are_there_for_those_who_ask(
    stage: Stage, clock: ManualClock, caplog: Log
) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await worker.enqueue()
    await until_idle()
    await clock.advance(2.5)
    await act.finish()
    assert lines(caplog) == [("DEBUG", "act: attempt 1 starts"), ("DEBUG", "act: completed after 2.5 s")]


async def test_what_a_function_asks_for_is_one_line_without_a_traceback(
    stage: Stage, clock: ManualClock, caplog: Log
) -> None:
    async def sync(ctx: Context) -> None:
        match ctx.fence:
            case 1:
                raise Snooze(3)
            case 2:
                raise RetryAfter(30, "too many requests") from OSError("429")
            case _:
                raise GiveUp("no such customer")

    app = stage.app()
    worker = app.register_worker("sync", sync, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await clock.advance(3)
    await clock.advance(30)
    said = [one for one in caplog.records if one.name == "shiftwork.runs" and "starts" not in one.getMessage()]
    assert [one.exc_text for one in said] == [None] * 3
    back, again, dead = lines = [(one.levelname, one.getMessage()) for one in said]
    assert back == ("DEBUG", "sync: handed back after 0 s, again in 3 s")
    assert again == ("WARNING", "sync: attempt 1 of 4 failed, again in 30 s: RetryAfter: too many requests")
    what = f"sync: attempt 2 of 4 failed, job {job.id} is dead: GiveUp: no such customer"
    line = sync.__code__.co_firstlineno + 7
    assert dead == ("ERROR", f"{what} ({__file__}:{line}, in sync)"), lines
    assert "OSError: 429" in str((await app.get_job(job.id)).history[0].traceback), "it is kept with the job"


async def test_a_worker_that_works_again_says_so(stage: Stage, clock: ManualClock, caplog: Log) -> None:
    caplog.set_level(logging.INFO, "shiftwork.runs")
    act, busy = Act(), Act("busy")
    app = stage.app()
    app.register_worker("act", act, interval_seconds=60, max_retries=1)
    other = app.register_worker("busy", busy, execution_mode="triggered")
    await app.start()
    await until_idle()
    for _ in range(2):
        await act.fail()
        await clock.advance(10)
    await clock.advance(60)
    await act.finish()
    assert lines(caplog)[-1] == ("INFO", "act: works again after 2 failed attempts")
    await app.enqueue_many([other.call(), other.call()])
    await until_idle()
    await busy.fail()
    await busy.finish()
    assert "busy: works again" not in caplog.text, "another job of it succeeded"
    await clock.advance(10)
    await busy.finish()
    assert lines(caplog)[-1] == ("INFO", "busy: works again after 1 failed attempt")


async def test_many_failures_are_a_few_lines_and_a_sum(stage: Stage, clock: ManualClock, caplog: Log) -> None:
    caplog.set_level(logging.WARNING, "shiftwork.runs")

    async def bad(n: int) -> None:
        raise ValueError(n)

    async def other() -> None:
        raise OSError("down")

    app = stage.app(max_concurrent=50)
    worker = app.register_worker("bad", bad, execution_mode="triggered", max_retries=1, max_consecutive_failures=None)
    second = app.register_worker("other", other, execution_mode="triggered", max_retries=1)
    await app.start()
    await app.enqueue_many([worker.call(n=n) for n in range(40)])
    await clock.advance(1)
    await second.enqueue()
    await clock.advance(1)
    assert len(lines(caplog)) == 6, "five of the one, and the other is not drowned"
    await clock.advance(70)
    (total, *_) = [line for _, line in lines(caplog) if "… and" in line]
    assert total.startswith("bad: … and 35 more failed attempts in the last 60 s, the latest: attempt 1 of 2 failed, ")


async def test_what_is_still_to_be_summed_up_is_written_at_the_end(
    stage: Stage, clock: ManualClock, caplog: Log
) -> None:
    async def bad(n: int) -> None:
        raise ValueError(n)

    app = stage.app(max_concurrent=50)
    worker = app.register_worker("bad", bad, execution_mode="triggered", max_retries=0, max_consecutive_failures=None)
    await app.start()
    await app.enqueue_many([worker.call(n=n) for n in range(9)])
    await clock.advance(3)
    await stage.stop(app)
    (line,) = [line for level, line in lines(caplog) if level == "ERROR" and "… and" in line]
    assert line.startswith("bad: … and 4 more dead jobs in the last 3 s, the latest: attempt 1 of 1 failed, job ")
