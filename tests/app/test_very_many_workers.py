"""An app with a worker for each of its customers: what each of them costs, and what they share."""

import gc
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import msgspec
import pytest

from shiftwork import PayloadTypeError, WorkerOrchestrator

Job = Callable[..., Coroutine[Any, Any, None]]


async def sync(customer: int, full: bool = False) -> None:  # noqa: FBT001, FBT002 - a user's function
    """Do nothing."""


def closure(_number: int) -> Job:
    async def sync_one(customer: int, full: bool = False) -> None:  # noqa: FBT001, FBT002 - likewise
        """Do nothing."""

    return sync_one


@pytest.mark.parametrize("make", [lambda _: sync, closure], ids=["one function", "functions alike"])
async def test_a_worker_is_three_objects_for_the_garbage_collector(make: Callable[[int], Job]) -> None:
    app = WorkerOrchestrator("memory://")
    app.task(name="first")(make(0))  # what is made once is there
    functions = [make(number) for number in range(200)]
    gc.collect()
    before = len(gc.get_objects())
    for number, function in enumerate(functions):
        app.task(name=f"sync-{number}")(function)
    gc.collect()
    assert (len(gc.get_objects()) - before) / len(functions) < 3.5


def test_functions_alike_keep_their_names_and_defaults() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def yes(sure: bool = True) -> None: ...  # noqa: FBT001, FBT002

    @app.task
    async def one(sure: bool = 1) -> None: ...  # type: ignore[assignment]  # noqa: FBT001

    defaults = [msgspec.json.decode(worker.schema or b"")["properties"]["sure"]["default"] for worker in (yes, one)]
    assert [type(value) for value in defaults] == [bool, int]
    for worker in (yes, one):
        with pytest.raises(PayloadTypeError, match=f"^{worker.name}: argument 'sure'"):
            worker.call(sure="no")  # type: ignore[arg-type]


def test_annotations_that_cannot_be_compared_are_not_shared() -> None:
    app = WorkerOrchestrator("memory://")
    Small = Annotated[int, msgspec.Meta(le=3), ["kg"]]  # noqa: N806 - a type
    Large = Annotated[int, msgspec.Meta(le=300), ["kg"]]  # noqa: N806

    async def small(size: Small) -> None: ...

    async def large(size: Large) -> None: ...

    app.task(large).call(size=30)
    with pytest.raises(PayloadTypeError, match="small: argument 'size'"):
        app.task(small).call(size=30)
