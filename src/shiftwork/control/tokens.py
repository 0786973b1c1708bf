"""Tokens: what lets somebody in over HTTP who does not sit at the machine itself.

A token is `sw_ID_SECRET`. The store keeps a SHA-256 of the secret, which has 256 bits of chance: nobody guesses it, so
a slow hash would only slow us down. A token that was revoked stays in the list, so that old events can be understood.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.control.operations import Operations
from shiftwork.core.model import Doc
from shiftwork.core.token import Role, Token
from shiftwork.errors import ConfigurationError, DuplicateNameError, UnknownOptionError, nearest
from shiftwork.store.protocol import Store

KIND: Final = "token"
PREFIX: Final = "sw"
LONGEST_NAME: Final = 100
RESERVED: Final = ("loopback", "anonymous")
NEWCOMER_SECONDS: Final = 0.25
"""How soon to look again for a token that nobody has heard of: no sooner, or strangers would keep the store busy."""


class Tokens:
    """The tokens of a store."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._operations = Operations(store, now)

    async def create(self, name: str, role: Role, *, valid_seconds: float | None = None) -> tuple[Token, str]:
        """A new token, and what its holder shows. That is told once: the store cannot say it again."""
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name in RESERVED:
            wanted = f"1 to {LONGEST_NAME} printable characters, and not {RESERVED[0]!r}"
            raise ConfigurationError(f"a token's name is {wanted}; this is {name!r}")
        now = self._now()
        if any(token.name == name and token.holds(now) for token in await self.known()):
            message = f"there is a token {name!r} already: choose another name, or first: shiftwork token revoke {name}"
            raise DuplicateNameError(message)
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        expires = None if valid_seconds is None else now + valid_seconds
        token = Token(id=id, name=name, role=role, digest=_digest(secret), created_at=now, expires_at=expires)
        await self._store.put(Doc(KIND, id, msgpack.encode(token)))
        await self._operations.record("token.created", name, f"token {name} may {role}", role=role)
        return token, f"{PREFIX}_{id}_{secret}"

    async def known(self) -> list[Token]:
        """All there ever were, oldest first."""
        return sorted((token for _, token in await self._docs()), key=lambda token: (token.created_at, token.id))

    async def revoke(self, name: str) -> Token:
        """Let the holder of this token in no more: by its name, or by its id."""
        now = self._now()
        while True:
            held = [(doc, token) for doc, token in await self._docs() if token.holds(now)]
            found = next(((doc, token) for doc, token in held if name in {token.name, token.id}), None)
            if found is None:
                message = f"there is no token {name!r} that lets anybody in: "
                raise UnknownOptionError(message + nearest(name, [token.name for _, token in held]))
            doc, token = found
            revoked = replace(token, revoked_at=now)
            if await self._store.put(Doc(KIND, doc.name, msgpack.encode(revoked), doc.version)):
                await self._operations.record("token.revoked", token.name, f"token {token.name} is revoked")
                return revoked

    async def _docs(self) -> list[tuple[Doc, Token]]:
        found = []
        for doc in await self._store.docs(KIND):
            try:
                found.append((doc, msgpack.decode(doc.body, type=Token)))
            except (MsgspecError, UnicodeDecodeError):
                continue  # it lets nobody in
        return found


class Turnstile:
    """Knows the tokens for a moment, so that a request costs the store nothing."""

    def __init__(self, tokens: Tokens, now: Callable[[], float], *, seconds: float = 2.0) -> None:
        self._tokens = tokens
        self._now = now
        self._seconds = seconds
        self._known: dict[str, Token] = {}
        self._looked_at: float | None = None

    async def admit(self, shown: str) -> Token | None:
        """The token that this is, if it lets anybody in."""
        prefix, _, rest = shown.partition("_")
        id, _, secret = rest.partition("_")
        if prefix != PREFIX or not id or not secret:
            return None
        token = await self._find(id)
        if token is None or not hmac.compare_digest(token.digest, _digest(secret)) or not token.holds(self._now()):
            return None
        return token

    async def holds(self, id: str) -> bool:
        """Whether a token that let somebody in still does."""
        token = await self._find(id)
        return token is not None and token.holds(self._now())

    def forget(self) -> None:
        """Somebody made or revoked a token: look again."""
        self._looked_at = None

    async def _find(self, id: str) -> Token | None:
        now, good = self._now(), self._seconds if id in self._known else min(NEWCOMER_SECONDS, self._seconds)
        if self._looked_at is None or not 0 <= now - self._looked_at < good:
            self._known = {token.id: token for token in await self._tokens.known()}
            self._looked_at = now
        return self._known.get(id)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
