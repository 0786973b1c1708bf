"""The docs of a store: what type each kind holds, and the one decoder for all of them.

    kind            name          type            what it records
    worker          the worker's  WorkerConfig    a registered worker
    gates           the worker's  Gates           when the worker may start
    schema          the worker's  (JSON Schema)   its payload; the body is the schema itself
    schedule        the worker's  Cursor          how far its schedule has fired
    rescheduled     the worker's  Rescheduled     the schedule that a person gave it at run time
    schedules       SCHEDULES_NAME ScheduleIndex  which parts of the stored schedules there are
    schedules:PART  the part      {name: bytes}   stored schedules; each value is a StoredSchedule
    fired:PART      the part      {name: Place}   how far those have fired
    breaker         the breaker's BreakerState    closed or open, and its recent failures
    pool_config     the pool's    PoolConfig      a registered pool
    pool            the pool's    PoolDoc         what people changed about it at run time
    expired         the pool's    ExpiredLately   how many of its jobs have expired lately
    edition         EDITION_NAME  Edition         which definitions the store holds
    plan            PLAN_NAME     Plan            how many slots of which pool each node runs
    noticed         NOTICED_NAME  Noticed         when the leader first saw problems that no time is known of
    history         hour of day   Hour            the charts, one moment a minute
    token           its id        Token           an access token
    stack_requests  STACKS_NAME   StackRequests   requests for the stacks of running jobs, and the replies
    encryption      the key's id  KeyInUse        a key that jobs are encrypted with
    departure       MOVE_NAME     Departure       in a store that is moved from: where its content goes
    arrival         MOVE_NAME     Arrival         in a store that is moved to: where its content comes from

A record may be damaged: written by another version, by another program, or cut by a broken disk. Reading one returns
None and never raises, so that one bad record harms nothing else: it counts as absent (`REMEDIES` says what that means
for each kind, and what to do). There are two exceptions, because nothing must start that a person has stopped, and
nothing must be shown that is secret: a damaged record of kind `pool` stands for a pause, and with a damaged schema
every argument is secret.

Beats, events and attempts are not docs, because a
store keeps them in tables of their own, but they are read by the same rule and therefore have a `Kind` as well.
"""

from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.health.health_values import Noticed
from shiftwork.core.model.doc_types import Arrival, Departure, Doc, Plan, PoolDoc, StackRequests, Token
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import Attempt
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.observing.beats import Beat
from shiftwork.core.observing.pool_history import Hour
from shiftwork.core.observing.pool_stats import ExpiredLately
from shiftwork.core.schedules.fire_times import Cursor
from shiftwork.core.schedules.stored import Place, ScheduleIndex, StoredSchedule
from shiftwork.core.schedules.timing import Rescheduled
from shiftwork.core.values.envelopes import KeyInUse
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition
from shiftwork.sentences import plain

T = TypeVar("T")

_DAMAGE: Final = (
    MsgspecError,
    UnicodeDecodeError,  # msgspec lets it through
    RecursionError,  # nested too deeply
    TypeError,  # SQLite returns text where text was written into a column of bytes
)


class Kind(Generic[T]):
    """A kind of record, and how to read and write it."""

    def __init__(self, name: str, of: type[T], *, empty: T | None = None, damaged: T | None = None) -> None:
        self.name = name
        self.type = of
        self.empty = empty
        """What a record that does not exist stands for, if it stands for anything."""
        self.damaged = damaged
        """What a damaged record stands for, if it does not count as absent."""
        self._decoder = msgpack.Decoder(of)

    def decode(self, body: bytes) -> T | None:
        """Return what the record holds, or None if it is damaged."""
        try:
            return self._decoder.decode(body)
        except _DAMAGE:
            return None

    def effective(self, body: bytes) -> T | None:
        """Return what the record stands for; None if it counts as absent."""
        value = self.decode(body)
        return self.damaged if value is None else value

    def damage(self, body: bytes) -> str | None:
        """Return why the record cannot be read, or None if it can."""
        try:
            self._decoder.decode(body)
        except _DAMAGE as error:
            return str(error)
        return None

    def encode(self, value: T) -> bytes:
        """Return the body of a record that holds this value."""
        return msgpack.encode(value, enc_hook=plain)

    def __repr__(self) -> str:
        return f"<Kind {self.name}>"


WORKER: Final = Kind("worker", WorkerConfig)
GATES: Final = Kind("gates", Gates)
SCHEDULE: Final = Kind("schedule", Cursor)
RESCHEDULED: Final = Kind("rescheduled", Rescheduled, empty=Rescheduled())
SCHEDULES: Final = Kind("schedules", ScheduleIndex, empty=ScheduleIndex())
BREAKER: Final = Kind("breaker", BreakerState, empty=BreakerState())
POOL_CONFIG: Final = Kind("pool_config", PoolConfig)
POOL: Final = Kind(
    "pool",
    PoolDoc,
    empty=PoolDoc(),
    damaged=PoolDoc(paused=True, reason="its record cannot be read, and it may have been paused: resume it"),
)
EXPIRED_LATELY: Final = Kind("expired", ExpiredLately, empty=ExpiredLately())
EDITION: Final = Kind("edition", Edition)
PLAN: Final = Kind("plan", Plan, empty=Plan())
NOTICED: Final = Kind("noticed", Noticed, empty=Noticed())
HISTORY: Final = Kind("history", Hour)
TOKEN: Final = Kind("token", Token)
STACK_REQUESTS: Final = Kind("stack_requests", StackRequests, empty=StackRequests())
ENCRYPTION: Final = Kind("encryption", KeyInUse)
DEPARTURE: Final = Kind("departure", Departure)
ARRIVAL: Final = Kind("arrival", Arrival)

SCHEMA: Final = "schema"
"""The kind whose body is a JSON Schema as it is."""
UNREADABLE: Final = b"\xc1"
"""A body that a store returns for a record of which it cannot even find the body: neither MessagePack nor JSON."""
EDITION_NAME: Final = "definitions"
"""The name of the one record of kind `EDITION`."""
SCHEDULES_NAME: Final = "index"
"""The name of the one record of kind `SCHEDULES`."""
PLAN_NAME: Final = "plan"
"""The name of the one record of kind `PLAN`."""
NOTICED_NAME: Final = "problems"
"""The name of the one record of kind `NOTICED`."""
STACKS_NAME: Final = "stacks"
"""The name of the one record of kind `STACK_REQUESTS`."""
MOVE_NAME: Final = "move"
"""The name of the one record of kind `DEPARTURE`, and of the one of kind `ARRIVAL`."""

KINDS: Final[dict[str, Kind[Any]]] = {
    kind.name: kind
    for kind in (
        *(WORKER, GATES, SCHEDULE, BREAKER, POOL_CONFIG, POOL, EXPIRED_LATELY, EDITION, PLAN),
        *(RESCHEDULED, SCHEDULES, NOTICED, HISTORY, TOKEN, STACK_REQUESTS, ENCRYPTION, DEPARTURE, ARRIVAL),
    )
}
REMEDIES: Final = {
    "worker": "it counts as absent until a node that has this worker is restarted",
    "gates": "the worker runs without its rules until a node that has it is restarted",
    "schedule": "the schedule begins anew, by itself",
    "rescheduled": "the schedule in the code applies; reschedule the worker again if it should have another",
    "schedules": "the stored schedules do not run until they are put again",
    "breaker": "the breaker counts as closed; the next failures write the record again",
    "pool_config": "it counts as absent until a node that has this pool is restarted",
    "pool": "the pool counts as paused; resume it, and set its sizes again if they were changed",
    "expired": "the number begins anew, by itself",
    "edition": "nodes publish their definitions again, by themselves",
    "plan": "the leader writes it again, by itself",
    "noticed": "the leader dates those problems anew, by itself",
    "history": "the charts lack this hour",
    "token": "it lets no one in; revoke it and create another",
    "stack_requests": "requests for stacks are lost; ask again",
    "encryption": "it counts as absent until a node that has this key is restarted",
    "departure": "jobs run and are added here as if nothing was moved; `shiftwork move` names the remedy",
    "arrival": "jobs run and are added here as if nothing was moved; `shiftwork move` names the remedy",
}
"""For each kind, what follows from a damaged record, and what to do."""
READ_BY_CLAIMS: Final[dict[str, Kind[Any]]] = {kind.name: kind for kind in (GATES, POOL, BREAKER, EDITION)}
"""The kinds that decide whether a job may start. A store lets people know when such a record is damaged."""

SCHEDULE_PART: Final = Kind("schedules:PART", dict[str, bytes], empty={})
"""A part of the stored schedules; the kind of its record has another name: see `core.schedules.stored`."""
FIRED_PART: Final = Kind("fired:PART", dict[str, Place], empty={})
"""How far the schedules of one part have fired; see there."""
STORED_SCHEDULE: Final = Kind("stored schedule", StoredSchedule)
"""One schedule within a part. A damaged one harms no other."""
BEAT: Final = Kind("beat", Beat)
EVENT: Final = Kind("event", Event)
ATTEMPT: Final = Kind("attempt", Attempt)


def read_event(seq: int, body: bytes) -> Event:
    """Decode an event; damaged bytes become an event that says so."""
    event = EVENT.decode(body)
    if event is not None:
        return replace(event, seq=seq)
    message = f"event {seq} cannot be read: {EVENT.damage(body)}"
    return Event(at=0.0, name="unreadable", subject="store", message=message, seq=seq)


def read_attempt(body: bytes) -> Attempt:
    """Decode an attempt; damaged bytes become an attempt that says so."""
    attempt = ATTEMPT.decode(body)
    if attempt is not None:
        return attempt
    return Attempt(number=0, started_at=0.0, ended_at=0.0, kind="unreadable", error=ATTEMPT.damage(body) or "")


def damaged_docs(docs: Iterable[Doc]) -> list[str]:
    """Explain which of these records cannot be read, why, and with which consequence."""
    return [why for doc in docs if (why := damaged_doc(doc)) is not None]


def damaged_doc(doc: Doc) -> str | None:
    """Explain why a record cannot be read, and with which consequence; None if it can be read."""
    if doc.kind not in KINDS:  # a schema, or schedules: those who read them say so
        return None
    why = KINDS[doc.kind].damage(doc.body)
    return None if why is None else f"the {doc.kind} record {doc.name} cannot be read ({why}): {REMEDIES[doc.kind]}"
