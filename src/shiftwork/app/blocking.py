"""Coroutine methods as plain ones: the original keeps its signature and its documentation, and is called."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from shiftwork.control.control import Control

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")


class Controlled(Protocol):
    """Something whose coroutines the portal of its control can run."""

    control: Control


class BlockingCalls:
    """What classes inherit from that have coroutines of an orchestrator as plain calls."""

    def __init__(self, app: Controlled) -> None:
        self._app = app


class BlockingMethod(Generic[P, R]):
    """The attribute that stands for a coroutine method."""

    def __init__(self, original: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self._original = original
        self._name = ""

    def __set_name__(self, owner: type[BlockingCalls], name: str) -> None:
        self._name = name

    def __get__(self, calls: BlockingCalls, owner: type[BlockingCalls]) -> Callable[P, R]:
        app = calls._app  # noqa: SLF001 - this is a method of it
        original = getattr(app, self._name)

        @wraps(original)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            result: R = app.control.portal.call(lambda: original(*args, **kwargs), f"await app.{self._name}(…)")
            return result

        return call


def blocking(original: Callable[Concatenate[Owner, P], Coroutine[Any, Any, R]]) -> BlockingMethod[P, R]:
    """Return the attribute that makes this coroutine method a plain one, under the same name."""
    return BlockingMethod(original)
