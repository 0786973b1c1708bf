"""Routes made from typed functions: path, query and body are read by their annotations, and so is the answer.

    @post("/pools/{pool}/pause")
    async def pause(site: Site, pool: Name, body: Reason) -> PoolAnswer: ...

What the types say is what is accepted and what the OpenAPI document tells; there is no second description.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Meta, MsgspecError, Struct
from msgspec.structs import fields

from shiftwork.core.token import Role
from shiftwork.errors import nearest
from shiftwork.web.problems import Refused

Method = Literal["GET", "POST"]
Handler = Callable[..., Awaitable[Any]]

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
"""A name or an id, as it stands in a path, a query or a body."""
Text = Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")]
"""Something that a person wrote."""


HEADERS: Final = {
    "idempotency_key": "idempotency-key",
    "last_event_id": "last-event-id",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}
"""Parameters of functions that are read from a header."""

_UNIONS: Final = (Union, UnionType)

T = TypeVar("T")


class CookieAnswer(Struct, Generic[T], frozen=True):
    """An answer, and a token that the browser shall remember from now on, or forget."""

    answer: T
    token: str | None


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand behind the question mark."""


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent along with a change."""


class Route(Struct, frozen=True, kw_only=True):
    """One thing that can be asked for or changed."""

    method: Method
    path: str
    role: Role | None
    """What a visitor must be allowed to do; None where strangers may ask too."""
    handler: Handler
    summary: str
    parameters: dict[str, Any]
    """Those in the path, with their types."""
    headers: dict[str, Any]
    """Those that it reads, with their types."""
    query: type[Query] | None
    body: type[Body] | None
    visitor: bool
    """Whether the function wants to know who asks."""
    answer: Any
    media_type: str
    decode: msgspec.json.Decoder[Any] | None

    @property
    def name(self) -> str:
        """The function's name: the operation's id."""
        return self.handler.__name__

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """What the path's variables stand for in these segments; None if it is another path."""
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
        """The variables, checked. What cannot be a name is the name of nothing."""
        try:
            return {name: msgspec.convert(value, self.parameters[name], strict=False) for name, value in found.items()}
        except MsgspecError as error:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no such thing: {error}") from None

    def read_headers(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The headers that it reads, checked."""
        return {
            name: _read(header, given[header], kind) if (header := HEADERS[name]) in given else None
            for name, kind in self.headers.items()
        }

    def read_query(self, text: str) -> dict[str, Any]:
        """The query, checked: unknown names are refused, not passed over."""
        given: dict[str, list[str]] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            given.setdefault(name, []).append(value)
        if self.query is None:
            if given:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} takes no query, so no {min(given)!r}")
            return {}
        kinds = {field.name: field.type for field in fields(self.query)}
        asked: dict[str, Any] = {}
        for name, values in given.items():
            if name not in kinds:
                meant = nearest(name, kinds)
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} cannot be asked by {name!r}: {meant}")
            several = _is_list(kinds[name])
            if len(values) > 1 and not several:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{name!r} is given {len(values)} times")
            asked[name] = _read(name, values if several else values[0], kinds[name])
        return {"query": self.query(**asked)}

    def read_body(self, raw: bytes) -> dict[str, Any]:
        """The body, checked."""
        if self.decode is None or self.body is None:
            if raw.strip() not in {b"", b"{}"}:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{self.path} takes no body")
            return {}
        try:
            return {"body": _decode(raw or b"{}", self.decode, self.body)}
        except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body cannot be understood: {error}") from None


ROUTES: Final[list[Route]] = []
"""All there are, once `shiftwork.web.routes` has been imported."""


def get(path: str, *, media_type: str = "application/json", role: Role = "read") -> Callable[[Handler], Handler]:
    """A route that only reads."""
    return _route("GET", path, role, media_type)


def post(path: str, *, public: bool = False) -> Callable[[Handler], Handler]:
    """A route that changes something."""
    return _route("POST", path, None if public else "operate", "application/json")


def find_route(method: str, segments: Sequence[str]) -> tuple[Route, dict[str, str]]:
    """The route of a request, with what its path says."""
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
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"this takes {allow}, not {method}", {"Allow": allow})
    raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here; openapi.json lists what there is")


def _route(method: Method, path: str, role: Role | None, media_type: str) -> Callable[[Handler], Handler]:
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
                answer=get_args(hints["return"])[0] if get_origin(hints["return"]) is CookieAnswer else hints["return"],
                media_type=media_type,
                decode=None if body is None else msgspec.json.Decoder(body),
            )
        )
        return handler

    return register


def _read(name: str, text: Any, kind: Any) -> Any:
    """What somebody wrote in a query or a header. Written is not null, and only numbers are made from other text."""
    given = [part for part in get_args(kind) if part is not NoneType] if get_origin(kind) in _UNIONS else [kind]
    try:
        return msgspec.convert(text, given[0], strict=not _is_number(given[0]))
    except MsgspecError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name!r} cannot be understood: {error}") from None


def _is_number(kind: Any) -> bool:
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind) in {int, float}


def _decode(raw: bytes, decoder: msgspec.json.Decoder[Any], body: type[Body]) -> Any:
    try:
        return decoder.decode(raw)
    except MsgspecError:
        # To JSON, 6.0 is a whole number; to msgspec it is none.
        return msgspec.convert(_whole(msgspec.json.decode(raw)), body)


def _whole(value: Any) -> Any:
    """The same, where every whole number is an `int`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in {list, tuple} or any(get_origin(part) in {list, tuple} for part in get_args(kind))
