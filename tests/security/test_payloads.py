"""Payloads, results and messages that are too deep or too large, whichever way they come."""

import asyncio
import json
import socket
from typing import Annotated, Any

import click
import msgspec
import pytest

from shiftwork import (
    Context,
    JobFailedError,
    JobStatus,
    PayloadEncodingError,
    PayloadTooLargeError,
    Secret,
    WorkerOrchestrator,
)
from shiftwork.cli.terminal.typed_values import json_object
from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import NewJob
from shiftwork.core.values.job_limits import DEEPEST, is_deep, is_too_deep
from shiftwork.handles.job import JobAccess
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.processes.link import Link
from shiftwork.runtime.processes.messages import ProcessFrame, RunEnded
from shiftwork.views.shapes.jobs import job_shape, whole_job_shape
from tests.polling import eventually
from tests.runtime import fixtures
from tests.runtime.stage import DEADLINE, Stage
from tests.web.conftest import Web

stage, clock = fixtures.stage, fixtures.clock

SECRET = "hunter2-hunter2"
TOO_DEEP = "nested more than 100 levels deep"


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def stored(levels: int, **others: Any) -> bytes:
    """A payload as another version may have stored it, deeper than Python could encode it."""
    pairs = b"".join(msgspec.msgpack.encode(name) + msgspec.msgpack.encode(value) for name, value in others.items())
    return bytes([0x81 + len(others)]) + pairs + msgspec.msgpack.encode("data") + b"\x91" * levels + b"\xc0"


async def add(stage: Stage, payload: bytes, worker: str = "keep", id: str = "deep") -> None:
    job = NewJob(id=id, worker=worker, pool="default", payload=payload, run_at=0.0)
    await stage.store.add([job], stage.clock.now())


def keeping(app: WorkerOrchestrator, runs: list[int]) -> Any:
    @app.task(max_retries=0)
    async def keep(data: Any, token: Annotated[str, Secret] = "a default that is secret") -> None:
        runs.append(1)
        raise ValueError(f"the site refused {token}")

    return keep


# ── depth ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("levels", [DEEPEST, 480, 100_000])
async def test_a_deep_payload_in_the_store_runs_once_and_shows_no_secret(
    stage: Stage, clock: ManualClock, levels: int
) -> None:
    runs: list[int] = []
    app = stage.app(max_concurrent=1)
    keeping(app, runs)
    await add(stage, stored(levels, token=SECRET))
    await app.start()
    job = await app.get_job("deep")
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert len(job.history) == 1
    await clock.advance(600)
    assert len(runs) == (1 if levels < 1_000 else 0), "it was decoded, or could not be"
    assert job.error in {"ValueError: the site refused •••", f"the payload of keep is {TOO_DEEP}"}
    assert SECRET not in repr(whole_job_shape(job, await app.explain_job(job.id)))


@pytest.mark.parametrize("levels", [DEEPEST, 480, 100_000])
async def test_a_deep_job_in_the_store_is_shown_as_such_and_hides_no_other(levels: int) -> None:
    app = WorkerOrchestrator("memory://")
    keep = keeping(app, [])
    web = Web(app)
    other = await keep.enqueue("shallow")
    store = await app.control.store.open()
    await store.add(
        [NewJob(id="deep", worker="keep", pool="default", payload=stored(levels), run_at=0.0)], app.control.now()
    )
    jobs = (await web.get("jobs"))["jobs"]
    assert {job["id"] for job in jobs} == {"deep", other.id}
    assert (await web.get("workers/keep"))["queued"] == 2
    assert (await web.get("jobs", payload="shallow"))["jobs"][0]["id"] == other.id
    shown = [job["payload"] for job in (*jobs, await web.get("jobs/deep")) if job["id"] == "deep"]
    assert shown == [{"not shown": f"it is {TOO_DEEP}"}] * 2
    json.dumps(shown)
    await web.site.close()
    await app.close()


async def test_a_deep_result_in_the_store_is_shown_as_such(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def dig() -> Any:
        return 0

    await app.start()
    job = await dig.enqueue()
    await job.result(DEADLINE)
    for levels in (480, 100_000):
        record = msgspec.structs.replace(job.record, result=b"\x91" * levels + b"\xc0")
        shown = whole_job_shape(type(job)(record, JobAccess(app.control.store.open)), await app.explain_job(job.id))
        assert shown.result == {"not shown": f"it is {TOO_DEEP}"}


@pytest.mark.parametrize("levels", [DEEPEST, 480, 100_000])
async def test_a_deep_payload_is_refused_whichever_way_it_comes(stage: Stage, levels: int) -> None:
    app = stage.app()
    keep = keeping(app, [])
    stranger = stage.app()  # knows the worker only as it was published
    await app.start()
    await stage.stop(app)
    value = nested(levels)
    with pytest.raises(PayloadEncodingError, match=TOO_DEEP):
        await keep.enqueue(value)
    with pytest.raises(PayloadEncodingError, match=TOO_DEEP):
        await app.enqueue_many([keep.call("fine"), keep.call(value)])
    for caller in (app, stranger):
        with pytest.raises(PayloadEncodingError, match=TOO_DEEP):
            await caller.control.jobs.enqueue("keep", {"data": value})
        with pytest.raises(PayloadEncodingError, match=TOO_DEEP):
            await caller.control.workers.trigger("keep", {"data": value})
    job = await keep.enqueue(nested(DEEPEST - 1))
    await app.cancel_job(job.id)
    for caller in (app, stranger):
        with pytest.raises(PayloadEncodingError, match=TOO_DEEP):
            await caller.retry_job(job.id, payload={"data": value})
    assert [found.id for found in await app.find_jobs()] == [job.id]
    assert json.dumps(job_shape(await stranger.get_job(job.id)).payload).count("[") == DEEPEST - 1, "it is shown"


async def test_a_deep_body_is_refused_over_http() -> None:
    app = WorkerOrchestrator("memory://")
    keeping(app, [])
    web = Web(app)
    async with web.client() as client:
        for levels in (DEEPEST, 480, 100_000):
            deep = "[" * levels + "]" * levels
            body = f'{{"worker": "keep", "payload": {{"data": {deep}}}}}'
            answer = await client.post("jobs", content=body, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, answer.text
    await web.site.close()
    await app.close()


def test_a_deep_argument_is_refused_on_the_command_line() -> None:
    with pytest.raises(click.BadParameter):
        json_object('{"data": ' + "[" * 100_000 + "]" * 100_000 + "}")


async def test_a_result_that_is_too_deep_ends_the_job_with_the_reason(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=5)
    async def dig(levels: int) -> Any:
        return nested(levels)

    await app.start()
    assert await (await dig.enqueue(DEEPEST)).result(DEADLINE) == nested(DEEPEST)
    for levels in (DEEPEST + 1, 100_000):
        with pytest.raises(JobFailedError, match=f"dig finished, but its result is {TOO_DEEP}"):
            await (await dig.enqueue(levels)).result(DEADLINE)


def test_the_depth_of_a_value_is_the_same_encoded_and_decoded() -> None:
    shapes: list[Any] = [nested(DEEPEST), {"a": nested(DEEPEST - 1)}, ["\x80" * 500], [[]] * 500, b"\x91" * 500]
    for shape in shapes:
        assert not is_deep(shape)
        assert not is_too_deep(msgspec.msgpack.encode(shape))
        assert is_deep([[shape]]) == is_too_deep(msgspec.msgpack.encode([[shape]]))
    assert is_too_deep(msgspec.msgpack.encode(nested(DEEPEST + 1)))
    assert is_deep(nested(DEEPEST + 1))


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_limit_of_payloads_holds_whichever_way_they_come(stage: Stage) -> None:
    app = stage.app(max_payload_bytes=1_000)
    keep = keeping(app, [])
    stranger = stage.app()
    await app.start()
    await stage.stop(app)
    large = {"data": "x" * 1_000}
    job = await keep.enqueue("x" * 900)
    await app.cancel_job(job.id)
    with pytest.raises(PayloadTooLargeError, match="1,000 are allowed"):
        await app.enqueue_many([keep.call(**large)])
    for caller in (app, stranger):
        for attempt in (
            caller.control.jobs.enqueue("keep", large),
            caller.control.workers.trigger("keep", large),
            caller.retry_job(job.id, payload=large),
        ):
            with pytest.raises(PayloadTooLargeError, match="1,000 are allowed"):
                await attempt
    assert [found.id for found in await app.find_jobs()] == [job.id]


async def test_the_limit_of_payloads_holds_over_http(stage: Stage) -> None:
    app = stage.app(max_payload_bytes=1_000)
    keeping(app, [])
    await app.start()
    await stage.stop(app)
    for teller in (app, stage.app()):
        web = Web(teller)
        answer = await web.post("jobs", {"worker": "keep", "payload": {"data": "x" * 100_000}})
        assert 400 <= answer.status_code < 500
        assert "1,000 are allowed" in answer.text
        await web.site.close()
    assert await app.find_jobs() == []


async def test_a_long_progress_message_is_cut_and_hides_its_secrets_first(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def tell(ctx: Context, token: Annotated[str, Secret]) -> None:
        ctx.progress(1, 2, "x" * 990 + token + "y" * 5_000_000)

    await app.start()
    job = await tell.enqueue(SECRET)
    await job.ended(DEADLINE)
    assert job.progress is not None
    assert job.progress.message is not None
    assert len(job.progress.message) <= 1_000
    assert "•••" in job.progress.message


# ── what goes between a node and its processes ───────────────────────────────────────────────────────────────────────


class Line:
    """Both ends of a connection, each limited to frames of a thousand bytes."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.got: list[Any] = []
        self.most = 0
        self.refused: list[tuple[Any, str]] = []
        self.gone = asyncio.Event()
        self.node = self._link(ours, most_at_once=10_000)
        self.process = self._link(theirs)
        self.raw = theirs

    def _link(self, end: socket.socket, **options: Any) -> Link[ProcessFrame]:
        return Link(
            end,
            ProcessFrame,
            on_frames=self._receive,
            on_closed=self.gone.set,
            wrap=ProcessFrame,
            on_refused=lambda message, why: self.refused.append((message, why)),
            longest=1_000,
            **options,
        )

    def _receive(self, frames: list[ProcessFrame]) -> None:
        self.most = max(self.most, len(frames))
        self.got += [message for frame in frames for message in frame.messages]

    def close(self) -> None:
        self.node.close()
        self.process.close()


def ended(number: int, size: int) -> RunEnded:
    return RunEnded(f"job-{number}", number, End(EndKind.RETURNED, result=b"x" * size))


async def test_a_message_that_is_too_long_is_refused_alone() -> None:
    line = Line()
    for number, size in enumerate([300, 5_000, 300, 300, 300]):
        line.process.send(ended(number, size))
    await eventually(lambda: len(line.got) == 4)
    assert [message.fence for message in line.got] == [0, 2, 3, 4]
    ((refused, why),) = line.refused
    assert refused.fence == 1
    assert "bytes; 1,000 are allowed" in why
    line.close()


async def test_a_message_without_an_encoding_is_refused_alone() -> None:
    line = Line()
    line.process.send(RunEnded("odd", 1, End(EndKind.RAISED, error="\udcff")))
    line.process.send(ended(2, 1))
    await eventually(lambda: bool(line.got))
    assert [message.fence for message in line.got] == [2]
    assert [message.id for message, _ in line.refused] == ["odd"]
    line.close()


async def test_a_process_that_announces_a_long_frame_is_hung_up_on_before_it_is_read() -> None:
    line = Line()
    line.raw.send((1_001).to_bytes(4, "little") + b"x" * 500)
    async with asyncio.timeout(DEADLINE):
        await line.gone.wait()
    assert line.node.closed
    line.close()


async def test_a_process_that_writes_without_end_does_not_hold_up_the_node() -> None:
    line = Line()
    body = msgspec.msgpack.encode(ProcessFrame([ended(1, 100)]))
    frame = len(body).to_bytes(4, "little") + body
    line.raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1_000_000)
    written = line.raw.send(frame * 2_000)
    await eventually(lambda: len(line.got) == written // len(frame))
    assert line.most < 10_000 // len(frame) + 300_000 // len(frame), "a turn at a time"
    line.close()
