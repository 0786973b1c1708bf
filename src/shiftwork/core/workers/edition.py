"""The edition: a token of the definitions that a store holds, by which a claim notices that they are gone.

A node publishes the definitions of its workers before it claims, because a claim relies on them: which workers exclude
each other, how many jobs of one may run, what depends on what. The first node to publish also makes an *edition*, a
token of random characters, and every claim names it. A store that was emptied has lost the token with the definitions,
so it hands out no job until the node has published again.
"""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.sentences import parts_of, plain

EMPTIED_SECONDS: Final = 3600.0
"""How long people are reminded that the store was emptied."""


class Edition(Struct, frozen=True):
    """The definitions that a store holds (doc kind "edition")."""

    token: str
    lost_at: float | None = None
    """When a node noticed that the definitions before these were gone; None if they are the first."""
    lost: str = ""
    """What was lost, for people."""
    parts: list[Any] | None = None
    """What these words are made of: `sentences.parts_of`."""


def first_edition(before: Edition | None, token: str) -> Edition:
    """Return the edition of a store that a node joins: the one that is there, or a new one under this token."""
    return before or Edition(token)


def renewed_edition(before: Edition | None, known: str, token: str, *, lost: str, now: float) -> Edition:
    """Return the edition of a store whose definitions a node that knew the token `known` has published again.

    Several nodes do that. The first one makes the new token, and the first that can tell what was lost reports it.
    """
    edition = before or Edition(token)
    reported = edition.lost_at is not None and (edition.token != known or now - edition.lost_at < EMPTIED_SECONDS)
    return edition if reported else replace(edition, lost_at=now, lost=plain(lost), parts=parts_of(lost))
