"""What claims read of a doc. The scripts cannot read our encoding, so a doc is read here, when it is written.

One that cannot be read counts as absent; `unreadable` names it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.breaker import BreakerState
from shiftwork.core.docs import READ_BY_CLAIMS, damaged_doc
from shiftwork.core.model import Doc, PoolDoc

Told = tuple[Any, bytes]
"""What `put.lua` is told: when a breaker closes, whether a pool is paused, or a worker's breaker; and its gates."""


def stored(kind: str, flat: list[bytes]) -> list[Doc]:
    """The docs in what HGETALL answers, by name."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return sorted((_doc(kind, name, value) for name, value in pairs), key=lambda doc: doc.name)


def _doc(kind: str, name: bytes, value: bytes) -> Doc:
    version, _, body = value.partition(b":")
    return Doc(kind, name.decode(), body, int(version))


def readable(docs: Iterable[Doc]) -> dict[str, Any]:
    """The docs that can be read, decoded, by name."""
    decoded = ((doc.name, READ_BY_CLAIMS[doc.kind].decode(doc.body)) for doc in docs)
    return {name: value for name, value in decoded if value is not None}


def unreadable(docs: Iterable[Doc]) -> Iterator[str]:
    """What is wrong with those that cannot be read."""
    yield from filter(None, map(damaged_doc, docs))


def told(doc: Doc) -> Told:
    """What claims are to know of a doc that is written."""
    match READ_BY_CLAIMS[doc.kind].decode(doc.body) if doc.kind in READ_BY_CLAIMS else None:
        case Gates() as gates:
            return gates.breaker or False, _gates(gates)
        case BreakerState(open=True, until=until):
            return until, b""
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
