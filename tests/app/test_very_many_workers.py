"""An app with a worker for each of its customers: what each of them costs, and what they share."""

import gc
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
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


FUNCTIONS: dict[str, Callable[[int], Job]] = {"one function": lambda _: sync, "functions alike": closure}


def objects_of_each(kind: str) -> float:
    """How many objects the garbage collector visits for each of 200 workers."""
    app, make = WorkerOrchestrator("memory://"), FUNCTIONS[kind]
    app.task(name="first")(make(0))  # what is made once is there
    functions = [make(number) for number in range(200)]
    gc.collect()
    before = len(gc.get_objects())
    for number, function in enumerate(functions):
        app.task(name=f"sync-{number}")(function)
    gc.collect()
    return (len(gc.get_objects()) - before) / len(functions)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_worker_is_three_objects_for_the_garbage_collector(kind: str, checkout: Path) -> None:
    """In a new process: which attributes Python keeps without a dict depends on the first objects of a class."""
    counting = f"from {__name__} import objects_of_each; print(objects_of_each({kind!r}))"
    counted = subprocess.run(
        [sys.executable, "-c", counting], cwd=checkout, check=True, capture_output=True, text=True, timeout=60
    )
    assert float(counted.stdout) < 3.5


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
