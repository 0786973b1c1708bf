"""Payloads and results travel by the function's own types; what cannot travel is refused where it is given."""

import asyncio
import dataclasses
import enum
import math
from collections.abc import Awaitable, Coroutine
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec
import pytest

from shiftwork import (
    Context,
    JobFailedError,
    JobStatus,
    PayloadDecodingError,
    PayloadEncodingError,
    PayloadError,
    PayloadTooLargeError,
    PayloadTypeError,
    ResultEncodingError,
    ResultTimeoutError,
    SignatureError,
    WorkerOrchestrator,
)
from shiftwork.core.model.jobs import NewJob
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, status

if TYPE_CHECKING:
    from shiftwork.handles.worker import Worker


@dataclasses.dataclass
class Person:
    name: str
    born: date | None = None


class Order(msgspec.Struct):
    number: int
    lines: list[str]


class Model:
    """Does what a pydantic model does, as far as we ask for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def model_dump(self, mode: str) -> dict[str, str]:
        return {"name": self.name, "mode": mode}

    @classmethod
    def model_validate(cls, value: dict[str, str]) -> "Model":
        if value.get("mode") != "json":
            raise ValueError("that is no model")
        return cls(value["name"])


class Colour(enum.Enum):
    RED = "red"


VALUES: dict[str, tuple[Any, Any]] = {
    "int": (int, 7),
    "a large int": (int, 2**63),
    "float": (float, 1.5),
    "infinity": (float, math.inf),
    "str": (str, "déjà vu 🎈\x00"),
    "bytes": (bytes, b"\x00\xff"),
    "bool": (bool, False),
    "none": (int | None, None),
    "dataclass": (Person, Person("Ada", date(1815, 12, 10))),
    "Struct": (Order, Order(7, ["a", "b"])),
    "datetime": (datetime, datetime(2026, 11, 15, 3, 0, tzinfo=UTC)),
    "naive datetime": (datetime, datetime(2026, 11, 15, 3, 0)),  # noqa: DTZ001 - it must travel too
    "timedelta": (timedelta, timedelta(days=1, microseconds=1)),
    "Path": (Path, Path("/tmp/a b.png")),
    "an optional Path": (Path | None, Path("a")),
    "list of Paths": (list[Path], [Path("a"), Path("b")]),
    "Decimal": (Decimal, Decimal("0.10")),
    "UUID": (UUID, UUID(int=7)),
    "pydantic": (Model, Model("Ada")),
    "Enum": (Colour, Colour.RED),
    "Literal": (Literal["a", "b"], "b"),
    "set": (set[int], {1, 2}),
    "tuple": (tuple[int, str], (1, "a")),
    "dict with int keys": (dict[int, list[str]], {1: ["a"]}),
    "nested": (dict[str, list[Person]], {"team": [Person("Ada"), Person("Bob")]}),
    "whatever": (Any, {"a": [1, "b", None]}),
}


@pytest.mark.parametrize("kind", VALUES)
async def test_values_arrive_and_return_as_what_they_were(stage: Stage, kind: str) -> None:
    wanted, value = VALUES[kind]
    seen: list[Any] = []
    app = stage.app()

    async def echo(value: Any, default: Any = "none given") -> Any:
        seen.extend([value, default])
        return value

    echo.__annotations__ |= {"value": wanted, "default": wanted, "return": wanted}
    task = app.task()(echo)
    await app.start()
    job = await task.enqueue(value)
    result = await job.result(DEADLINE)
    assert seen == [value, "none given"]
    assert type(seen[0]) is type(value)
    assert result == value
    assert type(result) is type(value)
    assert await (await app.get_job(job.id)).result(DEADLINE) == value
    again = await task.enqueue(value, default=value)
    await again.result(DEADLINE)
    assert seen[2:] == [value, value]


async def test_not_a_number_travels_too(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def echo(x: float) -> float:
        return x

    await app.start()
    assert math.isnan(await (await echo.enqueue(math.nan)).result(DEADLINE))


def resize_of(app: WorkerOrchestrator) -> Any:
    @app.task()
    async def resize(path: str, width: int, quality: float = 0.8, *, sharp: bool = False) -> str:
        return f"{path} {width} {quality} {sharp}"

    return resize


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("a", 3), {}, "a 3 0.8 False"),
        ((), {"width": 3, "path": "a"}, "a 3 0.8 False"),
        (("a",), {"width": 3, "sharp": True}, "a 3 0.8 True"),
        (("a", 3, 1), {}, "a 3 1.0 False"),
    ],
)
async def test_arguments_may_be_given_by_place_or_name(
    stage: Stage, args: tuple[Any, ...], kwargs: dict[str, Any], expected: str
) -> None:
    app = stage.app()
    resize = resize_of(app)
    await app.start()
    assert await (await resize.enqueue(*args, **kwargs)).result(DEADLINE) == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("a", "3"), {}, ["resize", "'width'", "int", "str"]),
        (("a", 3.5), {}, ["resize", "'width'", "int", "float"]),
        ((None, 3), {}, ["resize", "'path'", "str", "None"]),
        (("a",), {}, ["resize", "needs", "'width'"]),
        ((), {}, ["resize", "needs", "'path'"]),
        (("a", 3), {"witdh": 4}, ["resize", "'witdh'", "did you mean 'width'"]),
        (("a", 3), {"zzz": 4}, ["resize", "'zzz'", "there are: path"]),
        (("a", 3), {"width": 4}, ["resize", "'width' is given twice"]),
        (("a", 3, 0.5, True), {}, ["resize takes 3 positional arguments"]),
    ],
)
async def test_wrong_arguments_are_refused_with_their_name(
    stage: Stage, args: tuple[Any, ...], kwargs: dict[str, Any], words: list[str]
) -> None:
    app = stage.app()
    resize = resize_of(app)
    with pytest.raises(PayloadTypeError) as raised:
        await resize.enqueue(*args, **kwargs)
    assert [word for word in words if word not in str(raised.value)] == []
    assert await app.find_jobs() == []


async def test_a_model_refuses_what_is_none(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def greet(person: Model) -> None: ...

    with pytest.raises(PayloadTypeError, match="greet: argument 'person': that is no model"):
        await greet.enqueue({"name": "Ada"})  # type: ignore[arg-type]


async def test_an_unreadable_payload_is_shown_as_its_bytes(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_worker("w", lambda: None, execution_mode="triggered")
    await stage.store.add([NewJob(id="x", worker="w", pool="default", payload=b"\xc1", run_at=0)], clock.now())
    assert (await app.get_job("x")).payload == {"unreadable bytes": "c1"}
    await app.start()
    assert await (await app.get_job("x")).ended(DEADLINE) is JobStatus.DEAD


async def test_a_value_deep_inside_is_named_by_its_path(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def greet(people: list[Person]) -> None: ...

    with pytest.raises(PayloadTypeError, match=r"people\[1\]\.name"):
        await greet.enqueue(people=[Person("Ada"), Person(7)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="an object"),
        pytest.param(lambda: None, id="a function"),
        pytest.param(1j, id="a complex number"),
        pytest.param({"a": {object()}}, id="an object deep inside"),
        pytest.param(2**70, id="a huge number"),
        pytest.param("\udcff", id="half a character"),
    ],
)
async def test_what_has_no_encoding_is_refused(stage: Stage, value: Any) -> None:
    app = stage.app()

    @app.task()
    async def keep(value: Any) -> None: ...

    with pytest.raises(PayloadEncodingError, match="keep: the payload cannot be encoded"):
        await keep.enqueue(value)


async def test_an_endless_payload_is_refused(stage: Stage) -> None:
    app = stage.app()
    endless: list[Any] = []
    endless.append(endless)

    @app.task()
    async def keep(value: Any) -> None: ...

    with pytest.raises(PayloadEncodingError):
        await keep.enqueue(endless)


async def test_a_payload_that_is_too_large_is_refused_with_both_sizes(stage: Stage) -> None:
    app = stage.app(max_payload_bytes=1000)

    @app.task()
    async def keep(text: str) -> None: ...

    await keep.enqueue("x" * 900)
    with pytest.raises(PayloadTooLargeError, match=r"keep: the payload has 2,0\d\d bytes; 1,000 are allowed"):
        await keep.enqueue("x" * 2000)
    assert len(await app.find_jobs()) == 1


async def test_a_mutable_argument_is_what_it_was_when_it_was_enqueued(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def size(items: list[int]) -> int:
        return len(items)

    items = [1, 2]
    job = await size.enqueue(items)
    items.append(3)
    await app.start()
    assert await job.result(DEADLINE) == 2
    assert job.payload == {"items": [1, 2]}


async def test_one_bad_call_of_many_adds_none(stage: Stage) -> None:
    app = stage.app()
    resize = resize_of(app)
    with pytest.raises(PayloadError):
        await app.enqueue_many([resize.call("a", 1), resize.call("b", "wrong")])
    assert await app.find_jobs() == []


# ── where the context goes ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_context_may_be_anywhere_it_is_annotated(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def first(ctx: Context, n: int) -> str:
        return f"{ctx.name} {n}"

    @app.task()
    def before_a_slash(ctx: Context, /, n: int) -> str:
        return f"{ctx.name} {n}"

    @app.task()
    async def last(n: int, *, ctx: Context) -> str:
        return f"{ctx.name} {n}"

    @app.task()
    async def optional(n: int, ctx: Context | None = None) -> str:
        return f"{ctx.name if ctx else 'no context'} {n}"

    await app.start()
    calls = [first.call(1), before_a_slash.call(2), last.call(3), optional.call(4)]  # type: ignore[call-arg]
    jobs = await app.enqueue_many(calls)
    assert [await job.result(DEADLINE) for job in jobs] == ["first 1", "before_a_slash 2", "last 3", "optional 4"]


async def test_an_unannotated_argument_of_a_task_is_payload(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def loose(ctx, n=3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return [ctx, n]

    await app.start()
    assert await (await loose.enqueue("not a context")).result(DEADLINE) == ["not a context", 3]


def bad_two_contexts(a: Context, b: Context) -> None: ...
def bad_positional_only(n: int, /) -> None: ...
def bad_args(*numbers: int) -> None: ...
def bad_kwargs(**numbers: int) -> None: ...
def bad_union(x: int | Path) -> None: ...
def bad_name(x: "NoSuchName") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def bad_generator(n: int) -> Any:
    yield n


async def bad_async_generator(n: int) -> Any:
    yield n


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (bad_two_contexts, "'a' and 'b'"),
        (bad_positional_only, "named parameters only; n: int is not one"),
        (bad_args, r"named parameters only; \*numbers"),
        (bad_kwargs, r"named parameters only; \*\*numbers"),
        (bad_union, "types that cannot be encoded"),
        (bad_name, "NoSuchName"),
        (bad_generator, "generator"),
        (bad_async_generator, "generator"),
        (7, "is not a function"),
    ],
)
def test_a_task_that_cannot_be_called_is_refused_when_it_is_registered(function: Any, words: str) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(SignatureError, match=f"worker bad: .*{words}"):
        app.task(name="bad")(function)


@pytest.mark.parametrize(
    "function", [lambda a, b: None, lambda *, a, b: None, lambda a, *, b: None, bad_generator, 7, "text"]
)
@pytest.mark.parametrize("mode", ["scheduled", "continuous"])
def test_a_scheduled_function_takes_nothing_or_its_context(function: Any, mode: Any) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(SignatureError, match="worker bad"):
        app.register_worker("bad", function, execution_mode=mode)


async def test_a_scheduled_worker_takes_no_payload(stage: Stage) -> None:
    app = stage.app()
    worker = app.register_worker("tick", lambda ctx: None)
    with pytest.raises(PayloadTypeError, match="tick takes no argument 'x'"):
        await worker.enqueue(x=1)
    job = await worker.enqueue()
    await app.start()
    assert await job.ended(DEADLINE) is JobStatus.COMPLETED


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_result_that_cannot_be_kept_kills_the_job_without_a_retry(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    runs: list[int] = []

    @app.task(max_retries=5)
    async def opens() -> Any:
        runs.append(1)
        return object()

    await app.start()
    job = await opens.enqueue()
    with pytest.raises(JobFailedError, match=r"opens finished, but its result \(object\) cannot be stored"):
        await job.result(DEADLINE)
    await clock.advance(1000)
    assert runs == [1]
    assert await status(job) is JobStatus.DEAD
    assert [attempt.kind for attempt in job.history] == ["unencodable"]


async def test_a_result_whose_own_way_of_being_encoded_fails_harms_only_its_job(stage: Stage) -> None:
    class Odd:
        def model_dump(self, mode: str) -> Any:
            raise KeyError(mode)

    app = stage.app(max_concurrent=1)

    @app.task()
    async def odd() -> Any:
        return Odd()

    @app.task()
    async def good() -> int:
        return 7

    await app.start()
    bad, fine = await app.enqueue_many([odd.call(), good.call()])
    assert await bad.ended(DEADLINE) is JobStatus.DEAD
    assert await fine.result(DEADLINE) == 7


async def test_a_result_that_is_too_large_says_so(stage: Stage) -> None:
    app = stage.app(max_payload_bytes=1000)

    @app.task()
    async def large() -> str:
        return "x" * 2000

    await app.start()
    job = await large.enqueue()
    with pytest.raises(JobFailedError, match=r"2,0\d\d bytes; 1,000 are allowed"):
        await job.result(DEADLINE)


async def test_a_result_that_is_not_what_was_annotated_is_named(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def lies() -> str:
        return 7  # type: ignore[return-value]

    await app.start()
    with pytest.raises(PayloadDecodingError, match="the result of lies is not what the function is annotated"):
        await (await lies.enqueue()).result(DEADLINE)


async def test_a_plain_function_that_returns_a_coroutine_has_its_result(stage: Stage) -> None:
    app = stage.app()

    async def work(n: int) -> Person:
        return Person(str(n))

    def starts(n: int) -> Coroutine[Any, Any, Person]:
        return work(n)

    def also(n: int) -> Awaitable[Person]:
        return work(n)

    workers: list[Worker[Any, Any]] = [app.task()(starts), app.task()(also)]
    await app.start()
    for worker in workers:
        assert await (await worker.enqueue(n=3)).result(DEADLINE) == Person("3")


async def test_no_result_is_none(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def nothing() -> None: ...

    await app.start()
    job = await nothing.enqueue()
    assert await job.ended(DEADLINE) is JobStatus.COMPLETED
    assert job.record.result is None


async def test_waiting_for_a_result_ends_in_time_and_the_job_continues(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    with pytest.raises(ResultTimeoutError, match=rf"job {job.id} of act is not finished after 0.02 s: attempt 1 of 4 "):
        await job.result(timeout_seconds=0.02)
    with pytest.raises(TimeoutError):
        await job.result(timeout_seconds=0)
    assert act.running == 1
    waiting = asyncio.create_task(job.result())
    await until_idle()
    await act.finish("at last")
    async with asyncio.timeout(DEADLINE):
        assert await waiting == "at last"
    assert await job.result(timeout_seconds=0.02) == "at last"


async def test_many_may_wait_for_one_result(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    waiting = [asyncio.create_task((await app.get_job(job.id)).result()) for _ in range(20)]
    await until_idle()
    await act.finish(3)
    async with asyncio.timeout(DEADLINE):
        assert await asyncio.gather(*waiting) == [3] * 20


def test_the_errors_of_payloads_are_one_family() -> None:
    kinds = [PayloadTypeError, PayloadTooLargeError, PayloadEncodingError, PayloadDecodingError, ResultEncodingError]
    assert all(issubclass(kind, PayloadError) for kind in kinds)
