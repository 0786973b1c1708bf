"""Every type that a public signature names can be imported from a public module."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pkgutil import iter_modules
from types import ModuleType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import shiftwork
from shiftwork import contrib, testing, types
from tests.public_names import NOT_FOR_USERS

MODULES = [
    shiftwork,
    testing,
    types,
    *(importlib.import_module(f"shiftwork.contrib.{module.name}") for module in iter_modules(contrib.__path__)),
]


@cache
def names_for_checkers(module: str) -> dict[str, Any]:
    """The names that a module imports under TYPE_CHECKING, and those of the modules that they come from."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for one in node.body:
                if isinstance(one, ast.ImportFrom) and one.module:
                    there = vars(importlib.import_module(one.module))
                    found |= there | {alias.name: there[alias.name] for alias in one.names if alias.name in there}
    return found


def hints(name: str, annotated: Any) -> Iterator[tuple[str, Any]]:
    """The types in the annotations of a function or a class, unpacked, each with the name of what has it."""
    annotated = inspect.unwrap(annotated)
    known = {**names_for_checkers(annotated.__module__), **vars(sys.modules[annotated.__module__])}
    for field, hint in get_type_hints(annotated, known).items():
        if not field.startswith("_"):
            for one in unpacked(hint):
                yield f"{name}.{field}" if inspect.isclass(annotated) else name, one


def unpacked(hint: Any) -> Iterator[Any]:
    if isinstance(hint, list | tuple):
        for one in hint:
            yield from unpacked(one)
    elif get_origin(hint) is not None or isinstance(hint, UnionType):
        if get_origin(hint) is not Literal:
            yield from unpacked(get_args(hint))
            yield from unpacked(get_origin(hint))
    elif not isinstance(hint, TypeVar | ParamSpec):
        yield hint


def described(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Each annotated thing that a module exports, under its name."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and value is not types.Store:  # a minor version may add to that protocol
            yield name, value
            for member in dir(value):
                found = inspect.getattr_static(value, member)
                found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
                if not member.startswith("_") and inspect.isfunction(found):
                    yield f"{name}.{member}", found


def exported(module: ModuleType) -> dict[str, Any]:
    lazily = {"app"} if module.__name__ == "shiftwork.contrib.django" else set()  # asking for it makes an app
    return {name: getattr(module, name) for name in module.__all__ if name not in lazily}


PUBLIC = {id(value) for module in MODULES for value in exported(module).values()}


def test_every_type_of_a_public_signature_is_public() -> None:
    found = [pair for module in (shiftwork, testing, types) for pair in described(module)]
    named = [(where, hint) for name, annotated in found for where, hint in hints(name, annotated)]
    ours = [(where, hint) for where, hint in named if str(getattr(hint, "__module__", "")).startswith("shiftwork.")]
    assert len(ours) > 100
    hidden = {where: f"{hint.__module__}.{hint.__qualname__}" for where, hint in ours if id(hint) not in PUBLIC}
    assert hidden.keys() == NOT_FOR_USERS, hidden


def test_names_of_types_are_sorted_and_exist() -> None:
    assert list(types.__all__) == sorted(types.__all__)
    assert [name for name in types.__all__ if not hasattr(types, name)] == []
