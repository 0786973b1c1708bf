"""The JSON of answers. Sentences are texts in it; a client that asks for their parts gets those instead.

A request with the header `Shiftwork-Sentences: KEY` gets every sentence of ours as `{KEY: [template, values]}`, with
such objects among the values. The client chooses the key at random, so that no payload of a job looks like a sentence.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from starlette.requests import Request

from shiftwork.sentences import Sentence, plain, written

HEADER: Final = "shiftwork-sentences"
Encode: TypeAlias = Callable[[Any], bytes]

_KEY: Final = re.compile(r"[\w-]{1,64}", re.ASCII)

as_texts: Final[Encode] = msgspec.json.Encoder(enc_hook=plain).encode
"""Encodes an answer with sentences as texts."""


def encoder(key: str | None) -> Encode:
    """Return what encodes answers for a request whose header asks for this key."""
    if key is None or not _KEY.fullmatch(key):
        return as_texts

    def hook(value: Any) -> Any:
        return written(value, lambda parts: {key: parts}) if isinstance(value, Sentence) else plain(value)

    return msgspec.json.Encoder(enc_hook=hook).encode


def encoder_for(request: Request) -> Encode:
    """Return what encodes the answer to this request."""
    return encoder(request.headers.get(HEADER))
