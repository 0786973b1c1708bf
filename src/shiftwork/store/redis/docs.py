"""Docs as they are stored, and the part of each that claims read.

Lua cannot decode our structures, so what claims need of a doc is decoded here when the doc is written, and stored
beside it. What a doc that cannot be decoded counts as is up to its kind: usually as absent.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import msgpack

from shiftwork.core.doc_kinds import READ_BY_CLAIMS, UNREADABLE
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition
from shiftwork.store.redis.lua import MOST_DIGITS

ClaimView = tuple[Any, bytes]
"""Arguments of `put`: until when a breaker is open, whether a pool is paused, a breaker, or the token of an
edition; and packed gates."""


def stored(kind: str, flat: list[bytes]) -> list[Doc]:
    """Return the docs of an HGETALL reply, by name."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return sorted((_doc(kind, name, value) for name, value in pairs), key=lambda doc: doc.name)


def _doc(kind: str, name: bytes, value: bytes) -> Doc:
    version, colon, body = value.partition(b":")
    readable = name.decode(errors="backslashreplace")
    if not colon or not version.isdigit() or len(version) > MOST_DIGITS or readable.encode() != name:
        return Doc(kind, readable, UNREADABLE + value)  # of version 0, as `put` takes it: the next put replaces it
    return Doc(kind, readable, body, int(version))


def readable(docs: Iterable[Doc]) -> dict[str, Any]:
    """Return what the docs stand for, by name, without those that count as absent."""
    decoded = ((doc.name, READ_BY_CLAIMS[doc.kind].effective(doc.body)) for doc in docs)
    return {name: value for name, value in decoded if value is not None}


def claim_view(doc: Doc) -> ClaimView:
    """Return the part of a doc that claims read."""
    match READ_BY_CLAIMS[doc.kind].effective(doc.body) if doc.kind in READ_BY_CLAIMS else None:
        case Gates() as gates:
            return gates.breaker or False, _gates(gates)
        case BreakerState(open=True, until=until):
            return until, b""
        case Edition(token=token):
            return token, b""
        case PoolDoc(paused=True):
            return True, b""
    return False, b""


def _gates(gates: Gates) -> bytes:
    if gates.open and gates.max_running is None:
        return b"o" + gates.pool.encode()
    rate = gates.rate
    return b"g" + msgpack.encode(
        (
            gates.pool,
            gates.conflicts,
            tuple(gates.after.items()),
            gates.before,
            False if gates.max_running is None else gates.max_running,
            rate.burst if rate else False,
            rate.spacing if rate else False,
            gates.breaker or False,
        )
    )
