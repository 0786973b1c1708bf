"""The encryption keys: the ring that encrypts and decrypts, and where keys come from. No message shows a key.

Keys are given by the app, the environment, or a file. A key is 32 random bytes in base64, as `shiftwork key` prints it;
several are separated by spaces, commas or lines. The first key of a ring encrypts, every key decrypts.

The cipher is AES-SIV (RFC 5297) with 256-bit encryption and authentication keys, both derived from the 32 bytes. It
takes what a value belongs to as associated data, so a value that is moved to another namespace, job, step or field does
not decrypt. Nonces are random; unlike with AES-GCM, a repeated one would only show that two values of the same place
are equal, so there is no limit to the number of values that a busy queue could reach.
"""

import os
import shlex
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shiftwork.core.doc_kinds import ENCRYPTION
from shiftwork.core.values.envelopes import (
    BEFORE,
    CIPHER,
    ENVELOPE_VERSION,
    NONCE_BYTES,
    KeyInUse,
    key_of,
    parts,
    sealed_value,
    version_of,
)
from shiftwork.errors import EncryptionKeyError
from shiftwork.store.abilities import key_ids
from shiftwork.store.docs import change, read_all
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV


KEY_BYTES: Final = 32
_ID_BYTES: Final = 4
KEYS_VARIABLE: Final = "SHIFTWORK_ENCRYPTION_KEYS"
FILE_VARIABLE: Final = "SHIFTWORK_ENCRYPTION_KEY_FILE"
_OTHERS: Final = 0o007

EncryptionKeys = str | Sequence[str] | Callable[[], str | Sequence[str]]
"""Keys, or a function that fetches them when the app is made. No keys at all: nothing is encrypted."""


# ── the ring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class KeyRing:
    """Keys in order. `ids` name them, and reveal nothing about them."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        known = [_derived(key) for key in keys]
        self.ids: tuple[str, ...] = tuple(id for id, _ in known)
        self._ciphers = dict(known)
        if len(self._ciphers) < len(known):
            twice = next(id for id in self.ids if self.ids.count(id) > 1)
            message = f"encryption key {twice} is given twice: remove one of the two"
            raise EncryptionKeyError(message)
        self._first_id, self._first = known[0]
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

        self._invalid: type[Exception] = InvalidTag

    def seal(self, data: bytes, *place: str) -> bytes:
        """Encrypt bytes that belong to this place. There is at least one byte."""
        nonce = os.urandom(NONCE_BYTES)
        return sealed_value(self._first_id, nonce, self._first.encrypt(data, _bound(place, nonce)))

    def open(self, value: bytes, *place: str) -> bytes | None:
        """Decrypt a value of this place; None if its key is missing, or if it was changed or belongs elsewhere."""
        cipher = self._ciphers.get(key_of(value))
        if cipher is None or version_of(value) not in (BEFORE, ENVELOPE_VERSION):
            return None
        nonce, ciphertext = parts(value)
        try:
            return cipher.decrypt(ciphertext, _bound(place, nonce))
        except self._invalid:
            return None

    def knows(self, value: bytes) -> bool:
        """Return whether the key of an encrypted value is here."""
        return key_of(value) in self._ciphers

    def __repr__(self) -> str:
        return f"<KeyRing {' '.join(self.ids)}>"


def _derived(key: bytes) -> "tuple[str, AESSIV]":
    """Return the id of a key, and its cipher."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.hashes import SHA512  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"encryption needs the package {error.name}: pip install 'shiftwork[encryption]'"
        raise EncryptionKeyError(message) from None
    made = HKDF(SHA512(), length=64 + _ID_BYTES, salt=None, info=b"shiftwork encryption at rest, 1").derive(key)
    return made[64:].hex(), AESSIV(made[:64])


def _bound(place: tuple[str, ...], nonce: bytes) -> list[bytes]:
    return [*(part.encode(errors="surrogatepass") for part in place), nonce]


# ── where keys come from ──────────────────────────────────────────────────────────────────────────────────────────────


def new_key() -> str:
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
    keys, file = os.environ.get(KEYS_VARIABLE), os.environ.get(FILE_VARIABLE)
    if keys and file:
        message = f"both {KEYS_VARIABLE} and {FILE_VARIABLE} are set: unset one of them"
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


# ── the keys of a store ──────────────────────────────────────────────────────────────────────────────────────────────
#
# Processes agree on them before they change anything. A process publishes the id of its first key before it encrypts
# with it, unless a live node lacks that key. A process that lacks a published key must not claim jobs, which it could
# not run, nor add jobs, which it would leave readable or encrypt with a key that others lack.


async def keys_in_use(store: Store) -> set[str]:
    """Return the ids of the keys that jobs may be encrypted with."""
    return {id for id, use in (await read_all(store, ENCRYPTION)).items() if not use.retired}


async def agree_on_keys(store: Store, in_use: Collection[str]) -> None:
    """Publish the key that this process encrypts with. Raises `EncryptionKeyError` if it lacks one that is in use."""
    refuse_missing_keys(store, in_use)
    ours = key_ids(store)
    if ours and ours[0] not in in_use:
        await _refuse_blind_nodes(store, ours[0])
        await change(store, ENCRYPTION, ours[0], lambda _: KeyInUse(CIPHER))


def refuse_missing_keys(store: Store, in_use: Collection[str]) -> None:
    """Raise `EncryptionKeyError` if this process lacks a key that is in use."""
    ours = key_ids(store)
    missing = sorted({*in_use} - {*ours})
    if missing:
        has = f"has only {' and '.join(ours)}" if ours else "has no keys"
        message = (
            f"jobs in {store.url} are encrypted with key {' and '.join(missing)}, and this process {has}. Give it the "
            f"same keys as the other processes: {KEYS_VARIABLE}, {FILE_VARIABLE}, or "
            "WorkerOrchestrator(encryption_keys=…)"
        )
        raise EncryptionKeyError(message)


async def _refuse_blind_nodes(store: Store, key: str) -> None:
    """Raise if a live node could not run jobs that are encrypted with this key."""
    now = await store.server_time()
    for known in await store.instances():
        machine = known.beat.machine
        if machine is not None and known.expires_at > now and key not in machine.keys:
            message = (
                f"node {known.beat.node} on {machine.host} does not have encryption key {key}, and could not run what "
                f"this process adds. Give it the key behind its others and restart it, or stop it; if it is gone, its "
                f"lease ends in {known.expires_at - now:.0f} s"
            )
            raise EncryptionKeyError(message)
