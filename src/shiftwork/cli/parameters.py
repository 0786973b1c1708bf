"""Parsing what people type: payloads, durations and addresses."""

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

import click
import msgspec

_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_LAST_PORT: Final = 65_535
_LENGTH: Final = re.compile(r"(\d{1,12}(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def seconds(text: str) -> float:
    """Return a duration in seconds: `90`, `1.5`, `5m`, `2h`, `1d`."""
    found = _LENGTH.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS:
        message = f"{text!r} is not a duration: write seconds, or 5m, 2h, 1d"
        raise click.BadParameter(message)
    return float(found[1]) * _UNITS[found[2]]


def host_and_port(text: str) -> tuple[str, int]:
    """Return an address to listen on: `127.0.0.1:8421`, `[::]:8421`, or only `8421`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        message = f"{text!r} is not an address to listen on: write HOST:PORT, for example 127.0.0.1:8421"
        raise click.BadParameter(message)
    return host.strip("[]") or "127.0.0.1", int(port)


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object; `-` reads it from stdin."""
    if text == "-":
        text = sys.stdin.read()
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"a payload is a JSON object, such as '{{\"width\": 320}}': {error}"
        raise click.BadParameter(message) from None


def payload_of(pairs: Iterable[str], payload: dict[str, Any] | None) -> dict[str, Any]:
    """Return the payload from `key=value` words, or from `--payload`."""
    typed: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            message = f"{pair!r} is not an argument: write name=value"
            raise click.UsageError(message)
        if name in typed:
            message = f"the argument {name!r} is given twice"
            raise click.UsageError(message)
        typed[name] = _value(text)
    if typed and payload is not None:
        message = "give name=value arguments, or --payload, not both"
        raise click.UsageError(message)
    return typed if payload is None else payload


def _value(text: str) -> Any:
    """Return a value: JSON if the text is valid JSON, otherwise the text itself."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
