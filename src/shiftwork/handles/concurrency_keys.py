"""The concurrency key of a job: the value of a parameter, or a template that is filled with the arguments."""

import string
from collections.abc import Collection, Mapping
from typing import Any

from shiftwork.core.words import wrong_id
from shiftwork.errors import PayloadTypeError, SignatureError, nearest
from shiftwork.handles.redaction import is_secret
from shiftwork.sentences import sentence


def make_key(worker: str, template: str, arguments: Mapping[str, Any]) -> str:
    """Return the concurrency key of a job with these arguments. Raises `PayloadTypeError`."""
    try:
        key = template.format_map(arguments) if "{" in template else str(arguments[template])
    except (KeyError, AttributeError, IndexError, TypeError, ValueError) as error:
        message = sentence(
            "{worker}: its concurrency key {key} cannot be made from this payload: {error}",
            worker=worker,
            key=f"{template!r}",
            error=f"{error!r}",
        )
        raise PayloadTypeError(message) from None
    wrong = wrong_id(key)
    if wrong is not None:
        message = f"{worker}: its concurrency key {template!r} {wrong}"
        raise PayloadTypeError(message)
    return key


def early_key(worker: str, template: str, arguments: Mapping[str, Any], unknown: Collection[str]) -> str:
    """Return the concurrency key of a job whose `unknown` arguments are known only when it runs."""
    for name in {_parameter(field) for field in _key_fields(template)}.intersection(unknown):
        message = (
            f"{worker}: its concurrency key {template!r} is made when the job is added, and {name!r} is "
            "the output of another call, which is not known by then; pass a value"
        )
        raise PayloadTypeError(message)
    return make_key(worker, template, arguments)


def check_key(worker: str, template: str, required: Collection[str], hints: Mapping[str, Any]) -> None:
    """Raise `SignatureError` if a concurrency key does not name a required parameter, or names a secret one."""
    try:
        names = _key_fields(template)
    except ValueError as error:
        message = f"worker {worker}: concurrency_key {template!r} cannot be read: {error}"
        raise SignatureError(message) from None
    for name in names:
        parameter = _parameter(name)
        if is_secret(hints.get(parameter)):
            message = f"worker {worker}: concurrency_key {template!r} would show the secret {parameter!r}"
            raise SignatureError(message)
        if parameter not in required:
            message = (
                f"worker {worker}: concurrency_key {template!r} needs a required parameter {name!r}: "
                f"{nearest(name, required)}"
            )
            raise SignatureError(message)


def _key_fields(template: str) -> list[str]:
    """Return the fields in a concurrency key. Raises `ValueError` if it cannot be read."""
    if "{" not in template:
        return [template]
    return [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]


def _parameter(field: str) -> str:
    return field.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]
