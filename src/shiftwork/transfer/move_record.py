"""What is written down of a move, in both stores, for all who come by: docs of a kind that does not move."""

from typing import Final, Literal, TypeVar

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from shiftwork.core.model import Doc
from shiftwork.errors import MoveError
from shiftwork.store.protocol import Store

KIND: Final = "move"
OUT: Final = "out"
IN: Final = "in"


class Departure(Struct, frozen=True, kw_only=True):
    """In the source: where its content goes, or has gone."""

    token: str
    to: str
    state: Literal["moving", "moved", "abandoned"] = "moving"
    at: float = 0.0
    horizon: float = 0.0
    """Of the jobs created after this instant, those in `carried` have moved."""
    carried: tuple[str, ...] = ()


class Arrival(Struct, frozen=True, kw_only=True):
    """In the destination: where its content comes from. The token is that of the departure."""

    token: str
    source: str
    done: bool = False


Mark = TypeVar("Mark", Departure, Arrival)


async def departure_from(store: Store) -> tuple[Doc | None, Departure | None]:
    """What is written down in a source, as it is stored and as it reads."""
    doc = await _doc(store, OUT)
    return doc, _read(doc, Departure)


async def arrival_in(store: Store) -> tuple[Doc | None, Arrival | None]:
    """What is written down in a destination."""
    doc = await _doc(store, IN)
    return doc, _read(doc, Arrival)


async def write(store: Store, before: Doc | None, mark: Departure | Arrival) -> Doc:
    """Write it down, in place of what was read before."""
    name = OUT if isinstance(mark, Departure) else IN
    doc = Doc(KIND, name, msgpack.encode(mark), before.version if before else 0)
    if not await store.put(doc):
        raise MoveError(f"another `shiftwork move` has begun with {store.url}: let it finish")
    return replace(doc, version=doc.version + 1)


async def _doc(store: Store, name: str) -> Doc | None:
    return next((doc for doc in await store.docs(KIND) if doc.name == name), None)


def _read(doc: Doc | None, of: type[Mark]) -> Mark | None:
    if doc is None:
        return None
    try:
        return msgpack.decode(doc.body, type=of)
    except MsgspecError as error:
        raise MoveError(f"what is written down of a move cannot be read: {error}") from error


# ── what others have to mind ─────────────────────────────────────────────────────────────────────────────────────────


async def refuse_to_change(store: Store) -> None:
    """Raise if nobody may run or change jobs here: the content of the store moves, has moved, or is arriving."""
    await refuse_to_add(store)
    _, departure = await departure_from(store)
    if departure is not None and departure.state == "moving":
        raise MoveError(
            f"{store.url} is moving to {departure.to}. Let `shiftwork move` finish, rerun it if it was interrupted, "
            "or give it up with `shiftwork move --abandon`"
        )


async def refuse_to_add(store: Store) -> None:
    """Raise if the content of the store has moved: what is added now would stay behind. Or if it is still arriving."""
    _, departure = await departure_from(store)
    if departure is not None and departure.state == "moved":
        raise MoveError(f"{store.url} has moved to {departure.to}: use that one")
    _, arrival = await arrival_in(store)
    if arrival is not None and not arrival.done:
        raise MoveError(
            f"the content of {arrival.source} is moving to {store.url}: let `shiftwork move` finish, or rerun it if "
            "it was interrupted"
        )
