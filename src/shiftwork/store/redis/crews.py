"""The workers that a claim is for. Where they are many, the server keeps their names, and a claim sends a digest."""

from collections.abc import Collection
from functools import lru_cache
from hashlib import sha1
from typing import Any, Final

MOST_SENT: Final = 50
"""As many names are sent with each claim; looking one of a few up on the server would cost more."""


def wanted(workers: Collection[str]) -> Any:
    """The workers as `claim.lua` takes them."""
    return list(workers) if len(workers) <= MOST_SENT else {"digest": _digest(frozenset(workers))}


def introduced(workers: Collection[str]) -> Any:
    """The same, for a server that does not know them."""
    return {"digest": _digest(frozenset(workers)), "names": list(workers)}


@lru_cache(maxsize=32)
def _digest(workers: frozenset[str]) -> str:
    # Names have no line ends. Security does not depend on it: every namespace keeps its own.
    return sha1("\n".join(sorted(workers)).encode(), usedforsecurity=False).hexdigest()
