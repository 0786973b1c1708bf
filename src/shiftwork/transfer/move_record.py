"""The record of a move, which both stores keep: `Departure` in the source, `Arrival` in the destination."""

import secrets
from typing import Any, Final, TypeVar

from shiftwork.core.doc_kinds import ARRIVAL, DEPARTURE, MOVE_NAME, Kind
from shiftwork.core.model.doc_types import Arrival, Departure, Doc
from shiftwork.errors import MoveError
from shiftwork.store import docs
from shiftwork.store.protocol import Store

STAYING: Final = frozenset({DEPARTURE.name, ARRIVAL.name})
"""The kinds of docs that do not move."""

_REMEDY: Final = {
    DEPARTURE.name: "Reset it with `shiftwork move --abandon`",
    ARRIVAL.name: "Choose another database or namespace, or empty this one",
}

T = TypeVar("T", Departure, Arrival)


async def departure_from(store: Store) -> tuple[Doc, Departure | None]:
    """Return the record of a source as it is stored, and what it holds. Raises `MoveError` if it is damaged."""
    return await _read(store, DEPARTURE)


async def arrival_in(store: Store) -> tuple[Doc, Arrival | None]:
    """Return the record of a destination as it is stored, and what it holds. Raises `MoveError` if it is damaged."""
    return await _read(store, ARRIVAL)


async def _read(store: Store, kind: Kind[T]) -> tuple[Doc, T | None]:
    doc = await docs.stored(store, kind, MOVE_NAME)
    value = kind.decode(doc.body)
    if value is None and (doc.version or doc.body):
        raise MoveError(
            f"the {kind.name} record of a move in {store.url} cannot be read: {kind.damage(doc.body)}. "
            f"{_REMEDY[kind.name]}"
        )
    return doc, value


async def write(store: Store, over: Doc, value: Departure | Arrival) -> None:
    """Write the record over the one that was read."""
    kind: Kind[Any] = DEPARTURE if isinstance(value, Departure) else ARRIVAL
    if not await docs.write(store, kind, value, over=over):
        raise MoveError(f"another `shiftwork move` with {store.url} has started: let it finish")


async def reset_damaged(store: Store) -> Departure | None:
    """Write an abandoned departure over one that cannot be read, and return it; None if nothing is damaged."""
    doc = await docs.stored(store, DEPARTURE, MOVE_NAME)
    if not (doc.version or doc.body) or DEPARTURE.decode(doc.body) is not None:
        return None
    abandoned = Departure(token=secrets.token_hex(8), to="a store that cannot be read", state="abandoned")
    await write(store, doc, abandoned)
    return abandoned


# ── what other parts of shiftwork must respect ───────────────────────────────────────────────────────────────────────
#
# A damaged record rejects nothing here: it must not stop a system that has perhaps never been moved. `shiftwork move`
# itself, and only that, refuses to go on with one.


async def refuse_to_change(store: Store) -> None:
    """Raise `MoveError` if jobs must not be run or changed: the content is moving, has moved, or is still arriving."""
    departure = await refuse_to_add(store)
    if departure is not None and departure.state == "moving":
        raise MoveError(
            f"{store.url} is moving to {departure.to}. Let `shiftwork move` finish, rerun it if it was interrupted, "
            "or cancel it with `shiftwork move --abandon`"
        )


async def refuse_to_add(store: Store) -> Departure | None:
    """Raise `MoveError` if jobs must not be added: the content of the store has moved, or is still arriving.

    Returns the record of a move that has not ended, or was abandoned.
    """
    found = {doc.kind: doc.body for doc in await store.docs(*STAYING) if doc.name == MOVE_NAME}
    departure = DEPARTURE.decode(found.get(DEPARTURE.name, b""))
    arrival = ARRIVAL.decode(found.get(ARRIVAL.name, b""))
    if departure is not None and departure.state == "moved":
        raise MoveError(f"{store.url} has moved to {departure.to}: use that one")
    if arrival is not None and not arrival.done:
        raise MoveError(
            f"the content of {arrival.source} is moving to {store.url}: let `shiftwork move` finish, or rerun it if "
            "it was interrupted"
        )
    return departure
