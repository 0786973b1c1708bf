"""A digest for the names of very many workers, so that a claim need not send all of them.

The server keeps the names by their digest. If it does not know the digest of a claim, the store sends the names once,
and claims again.
"""

from collections.abc import Collection
from functools import lru_cache
from hashlib import sha1
from typing import Final

MOST_SENT: Final = 50
"""Up to this many names are sent with each claim: looking up their digest on the server would cost more."""


def digest(workers: Collection[str]) -> str | None:
    """Return the digest of very many workers; None if they are so few that their names are sent."""
    return None if len(workers) <= MOST_SENT else _digest(frozenset(workers))


@lru_cache(maxsize=32)
def _digest(workers: frozenset[str]) -> str:
    # Names have no line ends. Security does not depend on it: every namespace keeps its own.
    return sha1("\n".join(sorted(workers)).encode(), usedforsecurity=False).hexdigest()
