"""A token, with which a program or a person gets access."""

from typing import Literal

from msgspec import Struct

Role = Literal["read", "operate"]


class Token(Struct, frozen=True, kw_only=True):
    """A token, without its secret (doc kind "token", by id)."""

    id: str
    name: str
    role: Role
    digest: bytes
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None

    def holds(self, now: float) -> bool:
        """Return whether it grants access now."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
