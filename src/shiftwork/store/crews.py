"""The workers that a claim is for, by a digest: where they are many, a server keeps their names.

A claim sends the digest. If the server does not know it, the store sends the names once, and claims again.
"""

from collections.abc import Collection
from functools import lru_cache
from hashlib import sha1
from typing import Final

MOST_SENT: Final = 50
"""As many names are sent with each claim; looking one of a few up on the server would cost more."""


def digest(workers: Collection[str]) -> str | None:
    """The digest of very many workers; None if they are few, and their names are to be sent."""
    return None if len(workers) <= MOST_SENT else _digest(frozenset(workers))


@lru_cache(maxsize=32)
def _digest(workers: frozenset[str]) -> str:
    # Names have no line ends. Security does not depend on it: every namespace keeps its own.
    return sha1("\n".join(sorted(workers)).encode(), usedforsecurity=False).hexdigest()
