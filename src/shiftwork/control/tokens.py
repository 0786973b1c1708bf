"""Tokens: they let people and programs in over HTTP that are not on this machine.

A token is `sw_ID_SECRET`. The store keeps a SHA-256 of the secret, which has 256 random bits and cannot be guessed: a
slow hash would only slow us down. A revoked token stays in the list, so that old events can be understood.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final, get_args

from msgspec.structs import replace

from shiftwork.control.audit import Audit
from shiftwork.control.store_access import StoreAccess
from shiftwork.core.docs import TOKEN
from shiftwork.core.token import Role, Token
from shiftwork.errors import ConfigurationError, DuplicateNameError, UnknownOptionError, nearest
from shiftwork.store.docs import change, read_all

PREFIX: Final = "sw"
LONGEST_NAME: Final = 100
RESERVED: Final = ("loopback", "anonymous")
UNKNOWN_SECONDS: Final = 0.25
"""How long an unknown token is refused before the store is asked again, so that bad tokens do not keep it busy."""


class Tokens:
    """The tokens of a store."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], *, audit: Audit) -> None:
        self._access = access
        self._now = now
        self._audit = audit

    async def create(self, name: str, role: Role, *, valid_seconds: float | None = None) -> tuple[Token, str]:
        """Make a token; return it, and what its holder shows. The second is known only now: the store has a hash."""
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name in RESERVED:
            wanted = f"1 to {LONGEST_NAME} printable characters, and not {RESERVED[0]!r} or {RESERVED[1]!r}"
            raise ConfigurationError(f"a token's name has {wanted}; this is {name!r}")
        if role not in get_args(Role):
            raise ConfigurationError(f"a token's role is one of {', '.join(get_args(Role))}, not {role!r}")
        now = self._now()
        if any(token.name == name and token.holds(now) for token in await self.all()):
            message = f"there is a token {name!r} already: choose another name, or first: shiftwork token revoke {name}"
            raise DuplicateNameError(message)
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        expires = None if valid_seconds is None else now + valid_seconds
        token = Token(id=id, name=name, role=role, digest=_digest(secret), created_at=now, expires_at=expires)
        await change(await self._access.open(), TOKEN, id, lambda _: token)
        await self._audit.record("token.created", name, f"token {name} may {role}", role=role)
        return token, f"{PREFIX}_{id}_{secret}"

    async def all(self) -> list[Token]:
        """Return every token that was ever made, oldest first."""
        tokens = await read_all(await self._access.open(), TOKEN)
        return sorted(tokens.values(), key=lambda token: (token.created_at, token.id))

    async def revoke(self, name: str) -> Token:
        """Revoke a valid token by its name or its id, and return it. Raises `UnknownOptionError`."""
        now = self._now()
        valid = [token for token in await self.all() if token.holds(now)]
        found = next((token for token in valid if name in {token.name, token.id}), None)
        if found is None:
            raise _unknown(name, valid)

        def revoked(token: Token | None) -> Token:
            return token if token is not None and token.revoked_at else replace(token or found, revoked_at=now)

        before, after = await change(await self._access.open(), TOKEN, found.id, revoked)
        if before == after:  # another process was faster
            raise _unknown(name, valid)
        await self._audit.record("token.revoked", found.name, f"token {found.name} is revoked")
        return after


def _unknown(name: str, valid: list[Token]) -> UnknownOptionError:
    return UnknownOptionError(f"there is no valid token {name!r}: {nearest(name, [token.name for token in valid])}")


class TokenCheck:
    """Checks tokens, and keeps them for a moment so that a request costs the store nothing."""

    def __init__(self, tokens: Tokens, now: Callable[[], float], *, seconds: float = 2.0) -> None:
        self._tokens = tokens
        self._now = now
        self._seconds = seconds
        self._known: dict[str, Token] = {}
        self._read_at: float | None = None

    async def admit(self, shown: str) -> Token | None:
        """Return the token, or None if it is unknown, revoked or expired."""
        prefix, _, rest = shown.partition("_")
        id, _, secret = rest.partition("_")
        if prefix != PREFIX or not id or not secret:
            return None
        token = await self._find(id)
        if token is None or not hmac.compare_digest(token.digest, _digest(secret)) or not token.holds(self._now()):
            return None
        return token

    async def holds(self, id: str) -> bool:
        """Return whether a token that was valid still is."""
        token = await self._find(id)
        return token is not None and token.holds(self._now())

    def forget(self) -> None:
        """Read the tokens again next time: one was made or revoked."""
        self._read_at = None

    async def _find(self, id: str) -> Token | None:
        now, good = self._now(), self._seconds if id in self._known else min(UNKNOWN_SECONDS, self._seconds)
        if self._read_at is None or not 0 <= now - self._read_at < good:
            self._known = {token.id: token for token in await self._tokens.all()}
            self._read_at = now
        return self._known.get(id)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
