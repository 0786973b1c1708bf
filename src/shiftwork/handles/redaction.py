"""Secret arguments and results, which only programs see: `Annotated[str, shiftwork.Secret]`.

The mark of an argument is `writeOnly` in the JSON Schema that a worker publishes, so a process that has never imported
the app knows it too; a result is stored as one that must not be shown (`core.values.envelopes`). The mark also works
inside dataclasses, lists and dicts.
"""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from shiftwork.errors import PayloadTypeError
from shiftwork.handles.payload_schema import read_schema
from shiftwork.sentences import sentence

Secret: Final = msgspec.Meta(extra_json_schema={"writeOnly": True})
"""Marks an argument as secret, `password: Annotated[str, Secret]`, or what a function returns."""
MASK: Final = "•••"
SHORTEST: Final = 4
"""Shorter secrets are not replaced in texts: they would match text that is not secret."""
SECRET_MARK: Final = b'"writeOnly":true'
"""Appears in the JSON Schema of each type that contains a secret."""
CUT: Final = "…"
"""Ends a text that was cut off."""
MOST_COMPARED: Final = 200_000_000
"""The most characters of a page times its secrets that are compared: a fraction of a second."""
NOT_COMPARED: Final = {"not shown": "the job has too many secrets to look for all of them in this value"}
_MISSING: Final = object()

Node = Mapping[str, Any]
Act = Callable[[Any, Any], Any]


class Secrets:
    """Knows which arguments of a worker are secret."""

    def __init__(self, schema: Node) -> None:
        self._schema = schema

    def redact(self, payload: Any) -> Any:
        """Return the payload as it may be shown. Arguments that the worker does not know are not shown either."""
        if not isinstance(payload, dict):
            return MASK
        known = self._schema.get("properties", {})
        return {name: value if name in known else MASK for name, value in self._at(payload, {}, _mask).items()}

    def restore(self, worker: str, payload: Mapping[str, Any], original: Mapping[str, Any] | None = None) -> Any:
        """Return a payload that a person may have edited, with hidden values taken from the original.

        Raises `PayloadTypeError` if the original has no such value.
        """

        def unmask(value: Any, was: Any) -> Any:
            if value == MASK and was is _MISSING:
                message = sentence(
                    "{worker}: {mask} stands for a hidden secret; give the secret itself", worker=worker, mask=MASK
                )
                raise PayloadTypeError(message)
            return was if value == MASK else value

        return self._at(dict(payload), original or {}, unmask)

    def texts(self, payload: Any) -> set[str]:
        """Return every form in which a secret of this payload may appear in a text."""
        found: set[str] = set()
        if isinstance(payload, dict):
            self._at(payload, {}, lambda value, _: found.update(_texts(value)))
        return found

    def _at(self, payload: Any, other: Any, act: Act) -> Any:
        return _walk(payload, other, self._schema, self._schema.get("$defs", {}), act)


def hide(text: str, secret_texts: Iterable[str]) -> str:
    """Return a text without these texts."""
    for secret in sorted(secret_texts, key=len, reverse=True):  # one may be a part of another
        text = text.replace(secret, MASK)
    return text


class PageSecrets:
    """The known secrets of one page, which are hidden in its values, up to `MOST_COMPARED`."""

    def __init__(self, texts: Collection[str]) -> None:
        self._texts = texts
        self._left = MOST_COMPARED

    def hide(self, value: Any) -> Any:
        """Return a value of JSON without the secrets, wherever they are in it. The value may be deep."""
        if not self._texts:
            return value
        words = "\n".join(_words(value))
        self._left -= len(self._texts) * (len(words) + 1)
        if self._left < 0:
            return NOT_COMPARED
        return self._without({text for text in self._texts if text in words}, value)

    def _without(self, found: Collection[str], value: Any) -> Any:
        whole: list[Any] = [None]
        todo: list[tuple[Any, Any, Any]] = [(whole, 0, value)]
        while todo:
            home, place, part = todo.pop()
            if isinstance(part, dict):
                made: dict[str, Any] = {}
                home[place] = made
                todo.extend((made, hide(str(name), found), inner) for name, inner in part.items())
            elif isinstance(part, list):
                home[place] = [None] * len(part)
                todo.extend((home[place], at, inner) for at, inner in enumerate(part))
            elif isinstance(part, str):
                home[place] = self._without_half(hide(part, found))
            else:  # a number may be a secret, but a part of one is not shown as a part
                home[place] = MASK if str(part) in found else part
        return whole[0]

    def _without_half(self, text: str) -> str:
        """Return a text that was cut within a secret without the half that is left of it."""
        if not text.endswith(CUT):
            return text
        text = text.removesuffix(CUT)
        ends = (_half_at(text, secret) for secret in self._texts)
        first = min((at for at in ends if at is not None), default=None)
        return text + CUT if first is None else text[:first] + MASK + CUT


def _half_at(text: str, secret: str) -> int | None:
    """Return where a secret begins that the end of a text cuts off; None if there is none."""
    at = text.find(secret[:SHORTEST], max(0, len(text) - len(secret)))
    while at >= 0 and not secret.startswith(text[at:]):
        at = text.find(secret[:SHORTEST], at + 1)
    return at if at >= 0 else None


def _words(value: Any) -> Iterator[str]:
    """Yield every text in a value of JSON, with its names and numbers."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            todo.extend((*part, *part.values()))
        elif isinstance(part, list):
            todo.extend(part)
        else:
            yield str(part)


def value_texts(secret: Any) -> set[str]:
    """Return every form in which a secret value, or a part of it, may appear in a text."""
    return set(_texts(secret))


@lru_cache(maxsize=1024)
def secrets_of(schema: bytes | None) -> Secrets | None:
    """Return what is secret according to a worker's schema; None if nothing is.

    If the schema is damaged, every argument is secret: nothing says which of them may be shown.
    """
    if schema is None:
        return None
    known = read_schema(schema)
    if known is None:
        return Secrets({})
    return Secrets(known) if SECRET_MARK in schema else None


def is_secret(hint: Any) -> bool:
    """Return whether an annotation is marked, or one member of a union."""
    if Secret in getattr(hint, "__metadata__", ()):
        return True
    return get_origin(hint) in (Union, UnionType) and any(is_secret(part) for part in get_args(hint))


def without_defaults(schema: Node) -> Any:
    """Return a schema in which no default holds a secret, because that would reveal it."""
    return _without_defaults(schema, schema.get("$defs", {}))


def _without_defaults(schema: Any, parts: Node) -> Any:
    if isinstance(schema, list):
        return [_without_defaults(part, parts) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"default", "examples"} if _is_secret(schema) or _secrets_in_default(schema, parts) else set()
    return {name: _without_defaults(part, parts) for name, part in schema.items() if name not in left_out}


def default_texts(schema: Node) -> set[str]:
    """Return every form in which a secret's default may appear in a text, by a schema that still has its defaults."""
    found: set[str] = set()
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            for secret in _secrets_in_default(part, schema.get("$defs", {})):
                found.update(_texts(secret))
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
    return found


def _secrets_in_default(node: Node, parts: Node) -> list[Any]:
    found: list[Any] = []
    if "default" in node:
        _walk(node["default"], {}, node, parts, lambda value, _: found.append(value))
    return [value for value in found if value is not None]


def _texts(secret: Any) -> Iterator[str]:
    """Yield the forms in which a secret may appear in a text, with those of everything inside it."""
    todo = [secret]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo.extend((*value, *value.values()))
        elif isinstance(value, list | tuple):
            todo.extend(value)
        elif value is not None and not isinstance(value, bool):
            yield from (form for form in _forms(value) if len(form) >= SHORTEST)


def _forms(value: Any) -> Iterator[str]:
    """Yield a secret as it is, as Python or JSON quote it, and line by line, as some tracebacks print it."""
    import json

    if isinstance(value, bytes):
        yield from (repr(value)[2:-1], value.hex(), b64encode(value).decode(), urlsafe_b64encode(value).decode())
        value = value.decode("utf-8", "replace")
    text = str(value)
    yield from (text, repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines)


def _mask(value: Any, _was: Any) -> Any:
    return None if value is None else MASK


def _is_secret(node: Node) -> bool:
    return any(map(_is_marked, _variants([node], {})))


def _is_marked(node: Node) -> bool:
    """Return whether a node has the mark, or its keys have it."""
    names = node.get("propertyNames")
    return node.get("writeOnly") is True or (isinstance(names, dict) and names.get("writeOnly") is True)


def _walk(value: Any, other: Any, schema: Node, parts: Node, act: Act) -> Any:
    """Apply a function to every secret in a value, and to the same place in another value.

    Without recursion, and with all nodes of the schema that may describe a place at once: a payload may be deep, and a
    type may contain itself.
    """
    whole: list[Any] = [None]
    todo: list[tuple[Any, Any, Any, Any, list[Node]]] = [(whole, 0, value, other, _variants([schema], parts))]
    while todo:
        home, place, value, other, nodes = todo.pop()
        if any(map(_is_marked, nodes)):
            home[place] = act(value, other)
        elif nodes and isinstance(value, dict | list):
            home[place] = made = dict(value) if isinstance(value, dict) else list(value)
            below = _below_name if isinstance(value, dict) else _below_place
            for name, part in value.items() if isinstance(value, dict) else enumerate(value):
                described = _variants((below(node, name) for node in nodes), parts)
                todo.append((made, name, part, _place(other, name), described))
        else:
            home[place] = value
    return whole[0]


def _variants(nodes: Iterable[Any], parts: Node) -> list[Node]:
    """Return these nodes of a schema with everything that they stand for: their variants, and what they refer to."""
    found: dict[int, Node] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, dict) and node and id(node) not in found:
            found[id(node)] = node
            todo.extend(one for name in ("anyOf", "oneOf", "allOf") for one in node.get(name, ()))
            if isinstance(reference := node.get("$ref"), str):
                todo.append(parts.get(reference.removeprefix("#/$defs/")))
    return list(found.values())


def _below_name(node: Node, name: Any) -> Any:
    return node.get("properties", {}).get(name, node.get("additionalProperties"))


def _below_place(node: Node, place: int) -> Any:
    first = node.get("prefixItems", ())
    return first[place] if place < len(first) else node.get("items")


def _place(other: Any, name: Any) -> Any:
    try:
        return other[name]
    except (KeyError, IndexError, TypeError):
        return _MISSING
