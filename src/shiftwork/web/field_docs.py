"""What the fields of answers and bodies mean: the strings below them in the source, which Python itself forgets.

The OpenAPI document has them as descriptions, wherever the source can be read.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct


def field_docs(name: str) -> dict[str, str]:
    """Return what the fields of one of our structs mean, with those that it inherits. No two structs have one name."""
    found: dict[str, str] = {}
    for kind in reversed(_structs()[name].__mro__ if name in _structs() else ()):
        found |= _in_source(kind.__module__).get(kind.__name__, {})
    return found


@cache
def _structs() -> dict[str, type[Struct]]:
    return {kind.__name__: kind for kind in _below(Struct) if kind.__module__.startswith("shiftwork.")}


def _below(kind: type[Struct]) -> Iterator[type[Struct]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@cache
def _in_source(module: str) -> dict[str, dict[str, str]]:
    """Return, for each class of a module of ours, the strings below its fields."""
    try:
        source = inspect.getsource(sys.modules[module]) if module.startswith("shiftwork.") else ""
    except OSError:  # only its bytecode is installed
        return {}
    return {part.name: dict(_strings(part)) for part in ast.parse(source).body if isinstance(part, ast.ClassDef)}


def _strings(part: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(part.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
