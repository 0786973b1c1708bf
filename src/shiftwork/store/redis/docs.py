"""The part of a doc that claims read. Scripts cannot decode our structures, so a doc is decoded when it is written.

A doc that cannot be decoded counts as absent; `unreadable` names it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.breaker import BreakerState
from shiftwork.core.docs import READ_BY_CLAIMS, damaged_doc
from shiftwork.core.edition import Edition
from shiftwork.core.model import Doc, PoolDoc

ClaimView = tuple[Any, bytes]
"""Arguments of `put.lua`: until when a breaker is open, whether a pool is paused, a breaker, or the token of an
edition; and packed gates."""


def stored(kind: str, flat: list[bytes]) -> list[Doc]:
    """Return the docs of an HGETALL reply, by name."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return sorted((_doc(kind, name, value) for name, value in pairs), key=lambda doc: doc.name)


def _doc(kind: str, name: bytes, value: bytes) -> Doc:
    version, _, body = value.partition(b":")
    return Doc(kind, name.decode(), body, int(version))


def readable(docs: Iterable[Doc]) -> dict[str, Any]:
    """Return the decoded docs by name, without those that cannot be decoded."""
    decoded = ((doc.name, READ_BY_CLAIMS[doc.kind].decode(doc.body)) for doc in docs)
    return {name: value for name, value in decoded if value is not None}


def unreadable(docs: Iterable[Doc]) -> Iterator[str]:
    """Yield a message for each doc that cannot be decoded."""
    yield from filter(None, map(damaged_doc, docs))


def claim_view(doc: Doc) -> ClaimView:
    """Return the part of a doc that claims read."""
    match READ_BY_CLAIMS[doc.kind].decode(doc.body) if doc.kind in READ_BY_CLAIMS else None:
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
