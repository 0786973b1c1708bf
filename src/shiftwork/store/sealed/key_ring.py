"""The key ring: the first key encrypts, every key decrypts. It owns the cipher, and never shows a key.

The cipher is AES-SIV (RFC 5297) with 256-bit encryption and authentication keys, both derived from the 32 bytes that a
person keeps. It takes what a value belongs to as associated data, so a value that is moved to another namespace, job,
step or field does not decrypt. Nonces are random; unlike with AES-GCM, a repeated one would only show that two values
of the same place are equal, so there is no limit to the number of values that a busy queue could reach.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from shiftwork.core.values.sealing import BEFORE, NONCE_BYTES, VERSION, key_of, parts, sealed_value, version_of
from shiftwork.errors import EncryptionKeyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

KEY_BYTES: Final = 32
_ID_BYTES: Final = 4


class KeyRing:
    """Keys in order. `ids` name them, and reveal nothing about them."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        known = [_derived(key) for key in keys]
        self.ids = tuple(id for id, _ in known)
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
        if cipher is None or version_of(value) not in (BEFORE, VERSION):
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
