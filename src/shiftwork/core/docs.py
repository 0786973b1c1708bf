"""The small records of a store: what type each kind holds, and the one decoder for all of them.

    kind         name           type            what it records
    worker       the worker's   WorkerConfig    a registered worker
    gates        the worker's   Gates           when it may start
    schema       the worker's   (JSON Schema)   its payload; the body is the schema itself
    schedule     the worker's   Cursor          how far its cron schedule has fired
    breaker      the breaker's  BreakerState    closed or open, and its recent failures
    pool_config  the pool's     PoolConfig      a registered pool
    pool         the pool's     PoolDoc         what people changed about it at run time
    plan         "plan"         Plan            how many slots of which pool each node runs
    history      hour of day    Hour            the charts, one moment a minute
    token        its id         Token           an access token
    look         "stacks"       StackRequests   who wants to see the stack of which job
    move         "out", "in"    Departure, Arrival (`transfer.move_record`)

A record may be damaged: written by another version, by another program, or cut by a broken disk. Reading one returns
None and never raises, so that one bad record harms nothing else.
"""

from typing import Any, Final, Generic, TypeVar

from msgspec import MsgspecError, msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.breaker import BreakerState
from shiftwork.core.model import Plan, PoolConfig, PoolDoc, WorkerConfig
from shiftwork.core.schedule import Cursor
from shiftwork.core.token import Token

T = TypeVar("T")


class Kind(Generic[T]):
    """A kind of record, and how to read and write it."""

    def __init__(self, name: str, of: type[T]) -> None:
        self.name = name
        self._decoder = msgpack.Decoder(of)

    def decode(self, body: bytes) -> T | None:
        """What the record holds; None if it is damaged."""
        try:
            return self._decoder.decode(body)
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def encode(self, value: T) -> bytes:
        """The body of a record that holds this."""
        return msgpack.encode(value)

    def __repr__(self) -> str:
        return f"<Kind {self.name}>"


WORKER: Final = Kind("worker", WorkerConfig)
GATES: Final = Kind("gates", Gates)
SCHEDULE: Final = Kind("schedule", Cursor)
BREAKER: Final = Kind("breaker", BreakerState)
POOL_CONFIG: Final = Kind("pool_config", PoolConfig)
POOL: Final = Kind("pool", PoolDoc)
PLAN: Final = Kind("plan", Plan)
TOKEN: Final = Kind("token", Token)

SCHEMA: Final = "schema"
"""The kind whose body is a JSON Schema as it is."""
PLAN_NAME: Final = "plan"
"""The name of the one record of kind `PLAN`."""

KINDS: Final[dict[str, Kind[Any]]] = {
    kind.name: kind for kind in (WORKER, GATES, SCHEDULE, BREAKER, POOL_CONFIG, POOL, PLAN, TOKEN)
}
