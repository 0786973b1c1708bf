"""Values that cannot be read as they are: those that are encrypted, and those that only programs may see.

An encrypted value is *sealed*. Nothing here can encrypt or decrypt: the keys are in `shiftwork.store.sealed`.

    bytes   0xC1 "sw" version │ key id, 4 bytes │ nonce, 16 bytes │ AES-SIV tag, 16 bytes │ ciphertext
    text    [encrypted with key 1a2b3c4d: the same bytes in base64]

No MessagePack begins with 0xC1, so no payload or result is ever taken for an encrypted one. The text says what it is to
a person who has not got the key, and may stand in a longer text: a store writes a worker's last error into the reason
for which it disables the worker.

A *hidden* value is a result or a signal that its function has declared secret. It is stored inside a MessagePack
extension, which says that it must not be shown. So a process that has never imported the app knows it too, for results,
for steps and for the ends of waits alike. It protects what people are shown, not the store: that is what encryption is
for.

    bytes   ext 83 │ "secret" │ the value
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.msgpack import Ext, encode

from shiftwork.core.model.jobs import Attempt, JobRecord, Progress

# ── encrypted values ─────────────────────────────────────────────────────────────────────────────────────────────────

ENVELOPE_VERSION: Final = b"2"
BEFORE: Final = b"1"
"""The version before, in which values are bound to less. They are read, and `shiftwork rekey` rewrites them."""
CIPHER: Final = "AES-SIV"
"""The cipher of this version."""
NONCE_BYTES: Final = 16
_MARK: Final = b"\xc1sw"
_CHANGED: Final = _MARK + b"0"
_HEADER: Final = 8
_KEY: Final = slice(4, _HEADER)
_SHORTEST: Final = _HEADER + NONCE_BYTES + 17
_TOKEN: Final = re.compile(r"\[encrypted with key ([0-9a-f]{8}): ([A-Za-z0-9+/]+={0,2})\]")
_SIGN: Final = "[encrypted with key "


class KeyInUse(Struct, frozen=True):
    """A key that values in the store are encrypted with (doc kind "encryption", by the key's id)."""

    cipher: str
    """How values are encrypted with it."""
    retired: bool = False
    """Whether `shiftwork rekey` has found no job that needs it, and no node that encrypts with it."""


def sealed_value(key_id: str, nonce: bytes, ciphertext: bytes) -> bytes:
    """Put the parts of an encrypted value together."""
    return b"".join((_MARK, ENVELOPE_VERSION, bytes.fromhex(key_id), nonce, ciphertext))


def parts(value: bytes) -> tuple[bytes, memoryview]:
    """Return the nonce and the ciphertext of an encrypted value. The ciphertext may be large, and is not copied."""
    return value[_HEADER : _HEADER + NONCE_BYTES], memoryview(value)[_HEADER + NONCE_BYTES :]


def version_of(value: bytes) -> bytes:
    """Return the version of the format that a value is encrypted in."""
    return value[3:4]


def is_sealed(value: bytes | None) -> bool:
    """Return whether these bytes are encrypted."""
    return value is not None and value[:3] == _MARK and value[:4] != _CHANGED and len(value) >= _SHORTEST


def key_of(value: bytes) -> str:
    """Return the id of the key that a value is encrypted with."""
    return value[_KEY].hex()


def changed_value(value: bytes) -> bytes:
    """Return what a run gets instead of a payload that was changed after it was encrypted: it cannot be decoded."""
    return _CHANGED + value[_KEY] + version_of(value)


def why_unreadable(value: bytes) -> str | None:
    """Return why a payload or result cannot be read here, if that is because it is encrypted."""
    changed = value[:4] == _CHANGED
    if not changed and not is_sealed(value):
        return None
    if (value[_HEADER:] if changed else version_of(value)) not in (BEFORE, ENVELOPE_VERSION):
        return f"it is encrypted with key {key_of(value)}, in a format that this version of shiftwork does not read"
    if changed:
        return f"it is encrypted with key {key_of(value)}, and was changed or moved after it was written"
    return (
        f"it is encrypted with key {key_of(value)}, which this process does not have, or was changed or moved after it "
        "was written"
    )


# ── encrypted values in texts ────────────────────────────────────────────────────────────────────────────────────────


def as_text(value: bytes) -> str:
    return f"{_SIGN}{key_of(value)}: {b64encode(value).decode()}]"


def sealed_in(text: str | None) -> bytes | None:
    """Return the encrypted value that a text is; None if it is anything else."""
    found = _TOKEN.fullmatch(text) if text is not None and text.startswith(_SIGN) else None
    return None if found is None else _value(found)


def replace_sealed(text: str, opened: Callable[[bytes], str | None]) -> str:
    """Return the text with the encrypted values in it decrypted, as far as `opened` can decrypt them."""

    def words(found: re.Match[str]) -> str:
        value = _value(found)
        said = None if value is None else opened(value)
        return found[0] if said is None else said

    return _TOKEN.sub(words, text) if _SIGN in text else text


def _value(found: re.Match[str]) -> bytes | None:
    try:
        value = b64decode(found[2], validate=True)
    except ValueError:
        return None
    return value if is_sealed(value) and key_of(value) == found[1] else None


# ── encrypted values in jobs ─────────────────────────────────────────────────────────────────────────────────────────

PLAIN: Final = ""
"""Stands for the key of a value that is not encrypted."""


def keys_in(job: JobRecord) -> set[str]:
    """Return the keys that the values of a job are encrypted with; `PLAIN` is among them if a value has none.

    A plain error does not count: stores write some themselves, such as why a job was cancelled or cannot be read.
    """
    values = (job.payload, job.result, *(step.result for step in job.steps), *(one.value for one in job.signals))
    keys = {_key(value) for value in values if value}
    texts = [*_texts(job.progress), *(text for attempt in job.attempts for text in _texts(attempt))]
    keys.update(*(_text_keys(text) or {PLAIN} for text in texts if text))
    return keys | _text_keys(job.error or "")


def is_outdated(job: JobRecord) -> bool:
    """Return whether a value of a job is encrypted in the version before."""
    values = [job.payload, job.result or b"", *(one.result for one in job.steps), *(one.value for one in job.signals)]
    texts = [job.error, *_texts(job.progress), *(text for attempt in job.attempts for text in _texts(attempt))]
    values += [_value(found) or b"" for text in texts for found in _TOKEN.finditer(text or "")]
    return any(is_sealed(value) and version_of(value) == BEFORE for value in values)


def _key(value: bytes) -> str:
    return key_of(value) if is_sealed(value) else PLAIN


def _texts(of: Progress | Attempt | None) -> Iterator[str | None]:
    if of is None:
        return
    yield of.message if isinstance(of, Progress) else of.error
    yield None if isinstance(of, Progress) else of.traceback
    yield from (line.message for line in of.log)


def _text_keys(text: str) -> set[str]:
    return {match[1] for match in _TOKEN.finditer(text) if _value(match) is not None} if _SIGN in text else set()


# ── hidden values ────────────────────────────────────────────────────────────────────────────────────────────────────

_SECRET_CODE: Final = 83
_SECRET_MARK: Final = b"secret"
_CODE_PLACES: Final = {0xC7: 2, 0xC8: 3, 0xC9: 5, 0xD6: 1, 0xD7: 1, 0xD8: 1}
"""Where in an extension its code is, by its first byte."""


def hidden(value: bytes) -> bytes:
    """Return an encoded value as one that must not be shown."""
    return encode(Ext(_SECRET_CODE, _SECRET_MARK + value))


def is_hidden(value: bytes) -> bool:
    """Return whether an encoded value must not be shown. Its beginning is enough."""
    at = _CODE_PLACES.get(value[0]) if value else None
    return at is not None and value[at : at + 1 + len(_SECRET_MARK)] == bytes((_SECRET_CODE,)) + _SECRET_MARK


def revealed(value: bytes) -> bytes:
    """Return the encoded value itself, whether or not it was hidden."""
    return value[_CODE_PLACES[value[0]] + 1 + len(_SECRET_MARK) :] if is_hidden(value) else value
