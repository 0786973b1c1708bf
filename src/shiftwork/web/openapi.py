"""The OpenAPI document: made from the routes and their types, so that it always agrees with them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from shiftwork.version import __version__
from shiftwork.web.access import COOKIE
from shiftwork.web.responses import MEDIA_TYPE, ProblemDetails
from shiftwork.web.routing import HEADERS, ROUTES, Route

API: Final = "/api/v1"
_REF: Final = "#/components/schemas/{name}"
_SHAPE: Final = "Shape"
"""How the names of some of our classes end, which means nothing to others: `JobShape` is a job to them."""
_REFUSALS: Final = {
    "400": "The query or the body is not valid.",
    "401": "Authentication required: no valid token.",
    "403": "The token does not allow this, or the request comes from a page of another site.",
    "404": "It does not exist.",
    "409": "Its state does not allow this.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
    "429": "There were too many changes, or there are too many requests or streams at a time; wait a moment.",
    "503": "The store is not available.",
    "504": "The node did not reply in time.",
}
_NOTHING: Final = {"type": "object", "additionalProperties": False}
"""The body of a change without parameters: an empty object, so that the request is JSON."""
_READING: Final = ("400", "401", "403", "404", "409", "429", "503")


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    types = [route.answer for route in ROUTES if _is_json(route)]
    types += [route.body for route in ROUTES if route.body is not None]
    kinds: list[Any] = [*types, ProblemDetails, *(hint for route in ROUTES for hint in _parameter_types(route))]
    schemas, found = _renamed(msgspec.json.schema_components(kinds, ref_template=_REF))
    components = {name.removesuffix(_SHAPE): _described(name, _complete(schema)) for name, schema in found.items()}
    known = dict(zip(map(_key, kinds), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "shiftwork",
            "version": __version__,
            "description": "Background work: see and control it. An instant is an ISO 8601 string in UTC, named `at` "
            "or with `_at` at the end; a duration is a number of seconds.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],
        "security": [{"token": []}, {"cookie": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def _renamed(schema: Any) -> Any:
    """Return a schema that refers to others by the names that they have in the document."""
    if isinstance(schema, dict):
        return {key: _named(value) if key in {"$ref", "title"} else _renamed(value) for key, value in schema.items()}
    return [_renamed(one) for one in schema] if isinstance(schema, list | tuple) else schema


def _named(name: Any) -> Any:
    return name.removesuffix(_SHAPE) if isinstance(name, str) else _renamed(name)


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that is sent, which has all its fields; only bodies may lack some."""
    sent = "properties" in schema and schema.get("additionalProperties") is not False
    return schema | {"required": [*schema["properties"]]} if sent else schema


def _described(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    docs = field_docs(name)
    fields = {
        field: one | {"description": docs[field]} if field in docs else one
        for field, one in schema.get("properties", {}).items()
    }
    return schema | {"properties": fields} if fields else schema


def _operation(route: Route, known: dict[str, Any]) -> dict[str, Any]:
    answer = known[_key(route.answer)] if _is_json(route) else {"type": "string"}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": list(_parameters(route, known)),
        "responses": {"200": {"description": "Done.", "content": {route.media_type: {"schema": answer}}}},
    }
    if route.method == "POST":
        body = _NOTHING if route.body is None else known[_key(route.body)]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    wrong = known[_key(ProblemDetails)]
    for status, words in _REFUSALS.items():
        if route.method == "POST" or status in _READING:
            operation["responses"][status] = {"description": words, "content": {MEDIA_TYPE: {"schema": wrong}}}
    return operation


def _parameters(route: Route, known: dict[str, Any]) -> Any:
    for name, kind in route.parameters.items():
        yield {"name": name, "in": "path", "required": True, "schema": known[_key(kind)]}
    for name, kind in route.headers.items():
        yield {"name": HEADERS[name].title(), "in": "header", "required": False, "schema": _given(known[_key(kind)])}
    for field in fields(route.query) if route.query else ():
        schema = _given(known[_key(field.type)])
        if field.default is not NODEFAULT and field.default is not None:
            schema = schema | {"default": field.default}
        yield {"name": field.name, "in": "query", "required": False, "schema": schema}


def _parameter_types(route: Route) -> list[Any]:
    asked = [field.type for field in fields(route.query)] if route.query else []
    return [*route.parameters.values(), *route.headers.values(), *asked]


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, which is given or left out, but never null."""
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _is_json(route: Route) -> bool:
    return route.media_type == "application/json"


def _key(kind: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(kind))


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
