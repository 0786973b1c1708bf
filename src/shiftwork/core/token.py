"""A token, with which a program or a person gets access, and the sessions of browsers that logged in with it."""

from hmac import compare_digest
from typing import Literal

from msgspec import Struct

Role = Literal["read", "operate"]


class TokenSession(Struct, frozen=True, kw_only=True):
    """A browser that logged in with a token, without what its cookie holds."""

    digest: bytes
    expires_at: float


class Token(Struct, frozen=True, kw_only=True):
    """A token, without its secret (doc kind "token", by id)."""

    id: str
    name: str
    role: Role
    digest: bytes
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    sessions: tuple[TokenSession, ...] = ()
    """The browsers that are logged in with it, oldest first."""

    def holds(self, now: float) -> bool:
        """Return whether it grants access now."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def find_session(self, digest: bytes, now: float) -> TokenSession | None:
        """Return the session with this digest, if it grants access now."""
        if not self.holds(now):
            return None
        return next((one for one in self.sessions if compare_digest(one.digest, digest) and now < one.expires_at), None)
