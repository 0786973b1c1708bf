"""Routes made from typed functions: annotations describe the path, the query, the body and the answer.

    @post("/pools/{pool}/pause")
    async def pause(site: Site, pool: Name, body: Reason) -> PoolAnswer: ...

The types decide what is accepted, and the OpenAPI document is made from them; there is no second description.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Meta, MsgspecError, Struct
from msgspec.structs import fields

from shiftwork.core.model.doc_types import Role
from shiftwork.core.values.misfits import misfit
from shiftwork.core.words import CONTROLS
from shiftwork.errors import nearest
from shiftwork.sentences import sentence
from shiftwork.web.responses import SENTENCES_HEADER, Refused

Method = Literal["GET", "POST"]
Handler = Callable[..., Awaitable[Any]]

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
"""A name or an id, in a path, a query or a body."""
Id = Annotated[str, Meta(min_length=1, max_length=200, pattern=f"^[^{CONTROLS}]*$")]
"""A name or an id that a person chooses."""
Text = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]
"""A text that a person wrote."""


MOST_BODY_BYTES: Final = 4 * 1_048_576
"""The largest body. A payload may have 1 MiB by default, and is larger as JSON."""
HEADERS: Final = {
    "idempotency_key": "idempotency-key",
    "last_event_id": "last-event-id",
    "sentences": SENTENCES_HEADER,
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}
"""The parameters of functions that are read from headers."""

_UNIONS: Final = (Union, UnionType)

T = TypeVar("T")


class CookieAnswer(Struct, Generic[T], frozen=True):
    """An answer, and a session that the browser keeps in a cookie; None deletes the cookie."""

    answer: T
    session: str | None


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of a request."""


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a change."""


class Route(Struct, frozen=True, kw_only=True):
    """One operation of the API."""

    method: Method
    path: str
    role: Role | None
    """The role that a visitor needs; None if no authentication is required."""
    handler: Handler
    summary: str
    parameters: dict[str, Any]
    """The parameters in the path, with their types."""
    headers: dict[str, Any]
    """The headers that it reads, with their types."""
    query: type[Query] | None
    body: type[Body] | None
    visitor: bool
    """True if the function takes the visitor. Without authentication, that is the one of a session, or None."""
    most_bytes: int
    """The size of the largest body."""
    answer: Any
    media_type: str
    decode: msgspec.json.Decoder[Any] | None

    @property
    def name(self) -> str:
        """Return the function's name, which is the operation's id."""
        return self.handler.__name__

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the values of the path's variables in these segments; None if it is another path."""
        wanted = self.path.split("/")[1:]
        if len(wanted) != len(segments):
            return None
        found: dict[str, str] = {}
        for want, segment in zip(wanted, segments, strict=True):
            if want.startswith("{"):
                found[want[1:-1]] = unquote(segment)
            elif want != segment:
                return None
        return found

    def read_path(self, found: Mapping[str, str]) -> dict[str, Any]:
        """Return the variables, checked. Raises `Refused` with 404 for a value that cannot be a name."""
        try:
            return {name: msgspec.convert(value, self.parameters[name], strict=False) for name, value in found.items()}
        except MsgspecError as error:
            raise Refused(HTTPStatus.NOT_FOUND, f"not found: {error}") from None

    def read_headers(self, given: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Return the headers that the route reads, checked. One that comes several times is a list with commas."""
        lines: dict[str, list[str]] = {}
        for name, value in given:
            lines.setdefault(name, []).append(value)
        return {
            name: _read(header, ",".join(lines[header]), kind) if (header := HEADERS[name]) in lines else None
            for name, kind in self.headers.items()
        }

    def read_query(self, text: str) -> dict[str, Any]:
        """Return the query, checked: unknown names are rejected, not ignored."""
        given: dict[str, list[str]] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            given.setdefault(name, []).append(value)
        if self.query is None:
            if given:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} takes no query, but got {min(given)!r}")
            return {}
        kinds = {field.name: field.type for field in fields(self.query)}
        asked: dict[str, Any] = {}
        for name, values in given.items():
            if name not in kinds:
                meant = nearest(name, kinds)
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} has no parameter {name!r}: {meant}")
            several = _is_list(kinds[name])
            if len(values) > 1 and not several:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{name!r} is given {len(values)} times")
            asked[name] = _read(name, values if several else values[0], kinds[name])
        return {"query": self.query(**asked)}

    def read_body(self, raw: bytes) -> dict[str, Any]:
        """Return the body, checked."""
        if self.decode is None or self.body is None:
            if raw.strip() not in {b"", b"{}"}:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} takes no body")
            return {}
        try:
            return {"body": _decode(raw or b"{}", self.decode, self.body)}
        except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message = sentence("the body is not valid: {fault}", fault=misfit(str(error)))
            hint = _field_hint(str(error), self.body)
            if hint is not None:
                message = sentence("the body is not valid: {fault}: {hint}", fault=misfit(str(error)), hint=hint)
            raise Refused(HTTPStatus.BAD_REQUEST, message) from None


_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `([^`]*)`")

ROUTES: Final[list[Route]] = []
"""All routes, once `shiftwork.web.routes` has been imported."""


def get(path: str, *, media_type: str = "application/json", role: Role = "read") -> Callable[[Handler], Handler]:
    """Register a route that only reads."""
    return _route("GET", path, role, media_type)


def post(path: str, *, public: bool = False, most_bytes: int = MOST_BODY_BYTES) -> Callable[[Handler], Handler]:
    """Register a route that changes something."""
    return _route("POST", path, None if public else "operate", "application/json", most_bytes)


def find_route(method: str, segments: Sequence[str]) -> tuple[Route, dict[str, str]]:
    """Return the route of a request, with the values in its path. Raises `Refused` if there is none."""
    allowed: list[str] = []
    exact = "/" + "/".join(segments)
    for route in [route for route in ROUTES if route.path == exact] or ROUTES:
        found = route.match(segments)
        if found is not None and route.method == method:
            return route, found
        if found is not None:
            allowed.append(route.method)
    if allowed:
        allow = ", ".join(sorted(set(allowed)))
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"this path supports {allow}, not {method}", {"Allow": allow})
    raise Refused(HTTPStatus.NOT_FOUND, "there is no such route; openapi.json lists all routes")


def _route(
    method: Method, path: str, role: Role | None, media_type: str, most_bytes: int = MOST_BODY_BYTES
) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        hints = get_type_hints(handler, include_extras=True)
        body = hints.get("body")
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        ROUTES.append(
            Route(
                method=method,
                path=path,
                role=role,
                handler=handler,
                summary=cleandoc(handler.__doc__ or "").replace("\n", " "),
                parameters={name: hints[name] for name in names},
                headers={name: hints[name] for name in HEADERS if name in hints},
                query=hints.get("query"),
                body=body,
                visitor="visitor" in hints,
                most_bytes=most_bytes,
                answer=get_args(hints["return"])[0] if get_origin(hints["return"]) is CookieAnswer else hints["return"],
                media_type=media_type,
                decode=None if body is None else msgspec.json.Decoder(body),
            )
        )
        return handler

    return register


def _read(name: str, text: Any, kind: Any) -> Any:
    """Return a value from a query or a header. A given value is never null, and only numbers are parsed from text."""
    given = [part for part in get_args(kind) if part is not NoneType] if get_origin(kind) in _UNIONS else [kind]
    try:
        return msgspec.convert(text, given[0], strict=not _is_number(given[0]))
    except MsgspecError as error:
        raise Refused(
            HTTPStatus.BAD_REQUEST, sentence("{what} is not valid: {fault}", what=f"{name!r}", fault=misfit(str(error)))
        ) from None


def _is_number(kind: Any) -> bool:
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind) in {int, float}


def _field_hint(error: str, body: Any) -> str | None:
    """Return which field was probably meant where a body has an unknown one."""
    unknown = _UNKNOWN_FIELD.fullmatch(error)
    known = getattr(body, "__struct_fields__", ())
    return nearest(unknown[1], known) if unknown and known else None


def _decode(raw: bytes, decoder: msgspec.json.Decoder[Any], body: type[Body]) -> Any:
    try:
        return decoder.decode(raw)
    except MsgspecError:
        # 6.0 is a whole number in JSON, but not in msgspec.
        return msgspec.convert(_whole(msgspec.json.decode(raw)), body)


def _whole(value: Any) -> Any:
    """Return the value with every whole number as an `int`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in {list, tuple} or any(get_origin(part) in {list, tuple} for part in get_args(kind))
