"""Where the encryption keys come from: the app, the environment, or a file. No message shows a key.

A key is 32 random bytes in base64, as `shiftwork key` prints it. Several are separated by spaces, commas or lines.
"""

import os
import shlex
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from shiftwork.errors import EncryptionKeyError
from shiftwork.store.sealed.key_ring import KEY_BYTES, KeyRing

VARIABLE: Final = "SHIFTWORK_ENCRYPTION_KEYS"
FILE_VARIABLE: Final = "SHIFTWORK_ENCRYPTION_KEY_FILE"
_OTHERS: Final = 0o007

EncryptionKeys = str | Sequence[str] | Callable[[], str | Sequence[str]]
"""Keys, or a function that fetches them when the app is made. No keys at all: nothing is encrypted."""


def new_key() -> str:
    """Return a new key."""
    return urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


def find_keys(given: EncryptionKeys | None) -> tuple[str, ...]:
    """Return the keys that were given, or else those of the environment."""
    if given is None:
        return _of_environment()
    said = given() if callable(given) else given
    return tuple(_split(said)) if isinstance(said, str) else tuple(said)


def key_ring(keys: Sequence[str]) -> KeyRing:
    """Return the ring of these keys, at least one. Raises `EncryptionKeyError`."""
    return KeyRing([_bytes(key, n, len(keys)) for n, key in enumerate(keys, 1)])


def _of_environment() -> tuple[str, ...]:
    keys, file = os.environ.get(VARIABLE), os.environ.get(FILE_VARIABLE)
    if keys and file:
        message = f"both {VARIABLE} and {FILE_VARIABLE} are set: unset one of them"
        raise EncryptionKeyError(message)
    return tuple(_split(keys)) if keys else _of_file(Path(file)) if file else ()


def _of_file(path: Path) -> tuple[str, ...]:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            exposed = os.fstat(file.fileno()).st_mode & _OTHERS
            keys = tuple(_split(file.read()))
    except OSError as error:
        message = f"the key file {path}, named by {FILE_VARIABLE}, cannot be read: {error.strerror}"
        raise EncryptionKeyError(message) from None
    if exposed and hasattr(os, "getuid"):  # Windows has other means than modes
        message = f"every user of this machine can read the key file {path}: run chmod 600 {shlex.quote(str(path))}"
        raise EncryptionKeyError(message)
    if not keys:
        message = f"the key file {path}, named by {FILE_VARIABLE}, is empty: `shiftwork key` prints a new key"
        raise EncryptionKeyError(message)
    return keys


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _bytes(key: str, n: int, of: int) -> bytes:
    try:
        found = urlsafe_b64decode(key)
    except (TypeError, ValueError):
        found = b""
    if len(found) != KEY_BYTES:
        which = "the encryption key" if of == 1 else f"encryption key {n} of {of}"
        message = f"{which} is not {KEY_BYTES} bytes in base64: `shiftwork key` prints a new key"
        raise EncryptionKeyError(message)
    return found
