"""Values that the cycle collector does not visit."""

import gc
import importlib
import pkgutil
from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from weakref import ref

from msgspec import Struct

import shiftwork
from shiftwork import Retry

LEAVES = (str, bytes, int, float, bool, type(None))
CONTAINERS = (tuple, list, dict, UnionType, Union)


def hidden() -> list[type[Struct]]:
    """Return all structs that the collector does not visit."""
    for module in pkgutil.walk_packages(shiftwork.__path__, "shiftwork."):
        if module.name.split(".")[1] in ("core", "handles", "history", "control", "runtime", "serve", "store"):
            importlib.import_module(module.name)
    return [kind for kind in kinds(Struct) if not kind.__struct_config__.gc]


def kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from kinds(each)


def is_value(hint: Any, allowed: list[type[Struct]]) -> bool:
    if hint in LEAVES or hint is ... or hint in allowed or (isinstance(hint, type) and issubclass(hint, Enum)):
        return True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return all(is_value(each, allowed) for each in get_type_hints(hint).values())
    origin = get_origin(hint)
    return origin is Literal or (origin in CONTAINERS and all(is_value(each, allowed) for each in get_args(hint)))


def test_what_the_collector_does_not_visit_has_values_only() -> None:
    """Anything else could refer back to it: such a cycle would never be freed."""
    structs = hidden()
    assert len(structs) > 20
    fields = [(kind, name, hint) for kind in structs for name, hint in get_type_hints(kind).items()]
    assert [(kind, name, hint) for kind, name, hint in fields if not is_value(hint, structs)] == []


def test_a_class_of_errors_that_has_a_retry_policy_for_itself_is_freed() -> None:
    class FlakyError(Exception):
        retry: Retry

    FlakyError.retry = Retry(on=[FlakyError])
    error = ref(FlakyError)
    del FlakyError
    gc.collect()
    assert error() is None
