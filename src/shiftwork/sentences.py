"""Sentences that keep what they are made of: a template and its values.

    sentence("pool {pool} is paused: {reason}; {n} queued", pool=name, reason=reason, n=queued)

A `Sentence` is a text, the English one, and is used like one: stores, logs, the API and the command line have the text
alone. The dashboard also gets the template and the values, finds the template in the catalogue of its language and
fills in the values. A value that is a `Sentence` is translated in turn; any other value is a name, a number, an error
or what a person wrote, and is never translated.

A template is a literal, so that a test can compare all of them with the catalogues. What is built from a sentence with
an f-string is a plain text, and is shown in English.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, structs

Parts: TypeAlias = list[Any]
"""A sentence in plain values: the template and its values, by name, or the joint and the parts that it joins. A value
is a text, or the parts of a sentence."""

Say: TypeAlias = Callable[..., str]
"""`sentence` or `unsaid`."""

T = TypeVar("T")
_HOLE: Final = re.compile(r"\{(\w+)\}")


class Sentence(str):
    """A text of ours that knows its template and its values."""

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object] | Sequence[str]
    """The values by the names of their holes; or the parts of a series, of which the template is the joint."""


def sentence(template: str, /, **values: object) -> str:
    """Return a sentence: the template with these values in its holes."""
    return _made(template.format_map(values) if values else template, template, values)


def unsaid(_: str, /, **__: object) -> str:
    """Take the place of `sentence` where the text is never read."""
    return ""


def series(joint: str, parts: Sequence[str]) -> str:
    """Return these parts as one sentence, joined as by `joint.join(parts)`."""
    return parts[0] if len(parts) == 1 else _made(joint.join(parts), joint, [*parts])


def plain(text: object) -> str:
    """Return the text alone. It is the hook of encoders, which take no subclass of `str`."""
    if isinstance(text, str):
        return str(text)
    message = f"Encoding objects of type {type(text).__name__} is unsupported"
    raise NotImplementedError(message)


def with_plain_texts(value: T) -> T:
    """Return what a program of the user's gets: the value with the texts alone, also in what it holds."""
    made: Any = value
    if isinstance(value, Sentence):
        made = str(value)
    elif isinstance(value, dict):
        made = {key: with_plain_texts(one) for key, one in value.items()}
    elif isinstance(value, list):
        made = [with_plain_texts(one) for one in value]
    elif isinstance(value, Struct):
        texts = {name: with_plain_texts(one) for name, one in structs.asdict(value).items() if _may_hold_texts(one)}
        made = structs.replace(value, **texts)
    return made  # type: ignore[no-any-return]


def _may_hold_texts(value: object) -> bool:
    return isinstance(value, Sentence | dict | list | Struct)


def parts_of(text: str | None) -> Parts | None:
    """Return what a sentence is made of, in plain values; None if it is a plain text."""
    return written(text, lambda parts: parts) if isinstance(text, Sentence) else None


def written(text: Sentence, write: Callable[[Parts], Any]) -> Any:
    """Return what `write` makes of the sentence's parts, in which it has replaced every value that is a sentence."""
    each = partial(_value, write=write)
    if isinstance(text.values, Mapping):
        return write([text.template, {name: each(value) for name, value in text.values.items()}])
    return write([text.template, [each(value) for value in text.values]])


def restored(text: str, parts: object) -> str:
    """Return the sentence that was stored as a text and its parts; the text alone if the parts are not those of it."""
    made = _restored(parts)
    return made if made == text else text


def error_text(error: BaseException) -> str:
    """Return the text of an error, as a sentence if it was raised with one."""
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Sentence) else str(error)


def _made(text: str, template: str, values: Mapping[str, object] | Sequence[str]) -> Sentence:
    made = Sentence(text)
    made.template, made.values = template, values
    return made


def _value(value: object, write: Callable[[Parts], Any]) -> Any:
    return written(value, write) if isinstance(value, Sentence) else str(value)


def _restored(parts: object) -> str:
    match parts:
        case str():
            return parts
        case [str() as template, dict() as values]:
            texts = {name: _restored(value) for name, value in values.items()}
            return _made(_HOLE.sub(lambda hole: texts.get(hole[1], hole[0]), template), template, texts)
        case [str() as joint, list() as several]:
            return series(joint, [_restored(one) for one in several])
    return ""
