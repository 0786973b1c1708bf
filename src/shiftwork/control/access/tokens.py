"""Tokens, for people and programs on other machines that use the HTTP API.

A token is `sw_ID_SECRET`. The store keeps a SHA-256 of the secret, which has 256 random bits and cannot be guessed: a
slow hash would only slow us down. A revoked token stays in the list, so that old events can be understood.

A browser that logs in gets a session instead of the token: `ID_SECRET`, kept as a hash in the token's own record. So a
cookie that leaks is not the token, logging out ends it, and so does revoking the token.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final, get_args

from msgspec.structs import replace

from shiftwork.control.access.audit import Audit
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.core.doc_kinds import TOKEN
from shiftwork.core.model.doc_types import Role, Token, TokenSession
from shiftwork.errors import ConfigurationError, DuplicateNameError, UnknownOptionError, nearest
from shiftwork.sentences import sentence, series
from shiftwork.store.docs import change, read, read_all

PREFIX: Final = "sw"
LONGEST_TOKEN_NAME: Final = 100
RESERVED: Final = ("loopback", "anonymous")
SESSION_SECONDS: Final = 7 * 86_400
"""How long a browser stays logged in; no longer than its token is valid."""
MOST_SESSIONS: Final = 20
"""How many browsers may be logged in with one token; beyond that, the oldest session ends."""
UNKNOWN_TOKEN_SECONDS: Final = 0.25
"""How long an unknown token is refused before the store is asked again, so that bad tokens do not keep it busy."""


class Tokens:
    """The tokens of a store."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], *, audit: Audit) -> None:
        self._access = access
        self._now = now
        self._audit = audit

    async def create(self, name: str, role: Role, *, valid_seconds: float | None = None) -> tuple[Token, str]:
        """Make a token; return it, and what its holder shows. The second is known only now: the store has a hash."""
        if not name or len(name) > LONGEST_TOKEN_NAME or not name.isprintable() or name in RESERVED or "@" in name:
            message = sentence(
                "a token's name has 1 to {n} printable characters without '@', and is not {reserved}; this is {what} "
                "(the audit log names local people USER@HOST, and a token must not look like one)",
                n=LONGEST_TOKEN_NAME,
                reserved=series(" or ", RESERVED),
                what=f"{name!r}",
            )
            raise ConfigurationError(message)
        if role not in get_args(Role):
            roles = series(", ", get_args(Role))
            raise ConfigurationError(
                sentence("a token's role is one of {roles}, not {role}", roles=roles, role=f"{role!r}")
            )
        now = self._now()
        if any(token.name == name and token.holds(now) for token in await self.all()):
            message = sentence(
                "there is a token {what} already: choose another name, or first: shiftwork token revoke {name}",
                what=f"{name!r}",
                name=name,
            )
            raise DuplicateNameError(message)
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        expires = None if valid_seconds is None else now + valid_seconds
        token = Token(id=id, name=name, role=role, digest=_digest(secret), created_at=now, expires_at=expires)
        await change(await self._access.open(), TOKEN, id, lambda _: token)
        await self._audit.record(
            "token.created", name, sentence("token {name} may {role}", name=name, role=role), role=role
        )
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
        await self._audit.record("token.revoked", found.name, sentence("token {name} is revoked", name=found.name))
        return after

    async def log_in(self, id: str) -> str:
        """Begin a session of a valid token, by its id; return what the browser's cookie holds."""
        secret, now = secrets.token_urlsafe(32), self._now()
        begun = TokenSession(digest=_digest(secret), expires_at=now + SESSION_SECONDS)
        await self._change_sessions(id, lambda held: (*held[1 - MOST_SESSIONS :], begun))
        return f"{id}_{secret}"

    async def log_out(self, shown: str) -> None:
        """End the session that a cookie stands for, if there is one."""
        id, _, secret = shown.partition("_")
        digest = _digest(secret)
        await self._change_sessions(id, lambda held: tuple(one for one in held if one.digest != digest))

    async def _change_sessions(
        self, id: str, new: Callable[[tuple[TokenSession, ...]], tuple[TokenSession, ...]]
    ) -> None:
        store, now = await self._access.open(), self._now()
        if await read(store, TOKEN, id) is None:
            return

        def changed(token: Token | None) -> Token:
            if token is None:
                raise _unknown(id, [])
            return replace(token, sessions=new(tuple(one for one in token.sessions if now < one.expires_at)))

        await change(store, TOKEN, id, changed)


def _unknown(name: str, valid: list[Token]) -> UnknownOptionError:
    hint = nearest(name, [token.name for token in valid])
    return UnknownOptionError(sentence("there is no valid token {what}: {hint}", what=f"{name!r}", hint=hint))


class TokenCheck:
    """Checks tokens, and keeps them for a moment so that a request costs the store nothing."""

    def __init__(self, tokens: Tokens, now: Callable[[], float], *, seconds: float = 2.0) -> None:
        self._tokens = tokens
        self._now = now
        self._seconds = seconds
        self._known: dict[str, Token] = {}
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

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

    async def admit_session(self, shown: str) -> Token | None:
        """Return the token that a cookie stands for, or None if the session or the token has ended."""
        id, _, secret = shown.partition("_")
        digest = _digest(secret)
        if not id or not secret:
            return None

        def known(token: Token) -> bool:
            return token.find_session(digest, self._now()) is not None

        token = await self._find(id, known)
        return token if token is not None and known(token) else None

    async def holds(self, id: str) -> bool:
        """Return whether a token that was valid still is."""
        token = await self._find(id)
        return token is not None and token.holds(self._now())

    def forget(self) -> None:
        """Read the tokens again next time: one was made, used to log in, or revoked."""
        self._read_at = None
        self._reading = None

    async def _find(self, id: str, known: Callable[[Token], bool] = lambda _: True) -> Token | None:
        """Return the token. One that is not as expected may have been changed elsewhere, so it is read again sooner."""
        held, now = self._known.get(id), self._now()
        good = self._seconds if held is not None and known(held) else min(UNKNOWN_TOKEN_SECONDS, self._seconds)
        if self._read_at is None or not 0 <= now - self._read_at < good:
            await self._read_once()
        return self._known.get(id)

    async def _read_once(self) -> None:
        """Read all tokens. Requests that arrive meanwhile share the result, so many at once cost the store one read."""
        loop = asyncio.get_running_loop()
        reading = self._reading
        if reading is None or reading.done() or reading.get_loop() is not loop:
            reading = self._reading = loop.create_task(self._read())
            reading.add_done_callback(lambda task: task.cancelled() or task.exception())  # perhaps no request waits
        await asyncio.shield(reading)

    async def _read(self) -> None:
        at, me = self._now(), asyncio.current_task()
        tokens = {token.id: token for token in await self._tokens.all()}
        self._known = tokens
        if self._reading is me:  # otherwise something was changed meanwhile
            self._read_at = at


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
