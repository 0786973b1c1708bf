"""The OpenAPI document: made from the routes and their types, so that it cannot say anything else than they do."""

import re
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import fields

from shiftwork.web.problems import MEDIA_TYPE, ProblemDetails
from shiftwork.web.routing import HEADERS, ROUTES, Route

API: Final = "/api/v1"
_REF: Final = "#/components/schemas/{name}"
_REFUSALS: Final = {
    "400": "The query, the body or what they name cannot work.",
    "401": "A stranger: show a token.",
    "403": "This token may not do that; or the request comes from a page of another site.",
    "404": "There is no such thing.",
    "409": "It is in a state that does not allow this.",
    "413": "The body is too large.",
    "415": "The body does not say that it is JSON.",
    "429": "Too many changes; wait a moment.",
    "503": "The store cannot be reached.",
    "504": "The node that could tell did not answer.",
}
_NOTHING: Final = {"type": "object", "additionalProperties": False}
"""What a change sends along that needs to say nothing: an empty object, so that it is a request of JSON."""
_READING: Final = ("400", "401", "403", "404", "503")


@cache
def document() -> dict[str, Any]:
    """The whole of it."""
    types = [route.answer for route in ROUTES if _is_json(route)]
    types += [route.body for route in ROUTES if route.body is not None]
    kinds: list[Any] = [*types, ProblemDetails, *(hint for route in ROUTES for hint in _parameter_types(route))]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    known = dict(zip(map(_key, kinds), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "shiftwork",
            "version": version("shiftwork"),
            "description": "Background work: see it and steer it. An instant is an ISO 8601 string in UTC, named `at` "
            "or with `_at` at the end; a length of time is a number of seconds.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],
        "security": [{"token": []}, {"cookie": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "shiftwork_token"},
            },
        },
    }


def _operation(route: Route, known: dict[str, Any]) -> dict[str, Any]:
    answer = known[_key(route.answer)] if _is_json(route) else {"type": "string"}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": list(_parameters(route, known)),
        "responses": {"200": {"description": "So it is.", "content": {route.media_type: {"schema": answer}}}},
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
    """A parameter is given or left out, never null."""
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _is_json(route: Route) -> bool:
    return route.media_type == "application/json"


def _key(kind: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(kind))
