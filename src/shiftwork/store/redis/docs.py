"""What claims read of a doc. The scripts cannot read our encoding, so a doc is read here, when it is written.

One that cannot be read counts as absent; `unreadable` names it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import MsgspecError, Struct, msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.breaker import BreakerState
from shiftwork.core.model import Doc, PoolDoc

READ: Final[dict[str, type[Struct]]] = {"gates": Gates, "pool": PoolDoc, "breaker": BreakerState}
"""The kinds that claims look into."""

Told = tuple[Any, bytes]
"""What `put.lua` is told: when a breaker closes, whether a pool is paused, or a worker's breaker; and its gates."""


def stored(kind: str, flat: list[bytes]) -> list[Doc]:
    """The docs in what HGETALL answers, by name."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return sorted((_doc(kind, name, value) for name, value in pairs), key=lambda doc: doc.name)


def _doc(kind: str, name: bytes, value: bytes) -> Doc:
    version, _, body = value.partition(b":")
    return Doc(kind, name.decode(), body, int(version))


def read(kind: str, body: bytes) -> Any:
    """The doc decoded, or why it cannot be."""
    try:
        return msgpack.decode(body, type=READ[kind])
    except (MsgspecError, UnicodeDecodeError) as error:
        return str(error)


def readable(docs: Iterable[Doc]) -> dict[str, Any]:
    """The docs that can be read, decoded, by name."""
    decoded = ((doc.name, read(doc.kind, doc.body)) for doc in docs)
    return {name: doc for name, doc in decoded if not isinstance(doc, str)}


def unreadable(docs: Iterable[Doc]) -> Iterator[str]:
    """What is wrong with those that cannot be read."""
    for doc in docs:
        why = read(doc.kind, doc.body)
        if isinstance(why, str):
            yield f"the doc {doc.kind} {doc.name} cannot be read: {why}"


def told(doc: Doc) -> Told:
    """What claims are to know of a doc that is written."""
    match read(doc.kind, doc.body) if doc.kind in READ else None:
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
