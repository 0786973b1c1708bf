"""An example of every kind of record, and the ways to damage one."""

from dataclasses import dataclass
from typing import Any

from shiftwork.core.doc_kinds import ATTEMPT, BEAT, EVENT, KINDS
from shiftwork.core.health.health_values import Noticed
from shiftwork.core.model.doc_types import (
    Arrival,
    Departure,
    LostNode,
    Plan,
    PoolDoc,
    StackReply,
    StackRequest,
    StackRequests,
    Token,
)
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import Attempt
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.observing.beats import Beat
from shiftwork.core.observing.pool_history import EndedTotals, Hour, Moment, Point
from shiftwork.core.observing.pool_stats import ExpiredLately
from shiftwork.core.schedules.fire_times import Cursor
from shiftwork.core.schedules.stored import ScheduleIndex
from shiftwork.core.schedules.timing import Rescheduled, Timing
from shiftwork.core.values.envelopes import KeyInUse
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition

TEXT = "some text"
VALUES: dict[str, Any] = {
    "worker": WorkerConfig(name=TEXT),
    "gates": Gates(worker=TEXT, pool="p"),
    "schedule": Cursor(1.0, TEXT, "UTC"),
    "rescheduled": Rescheduled(Timing(cron=TEXT), 1.0, TEXT),
    "schedules": ScheduleIndex({"00": TEXT}),
    "breaker": BreakerState(open=True, failed_at=(1.0, 2.0), until=3.0),
    "pool_config": PoolConfig(name=TEXT),
    "pool": PoolDoc(paused=True, reason=TEXT),
    "expired": ExpiredLately({30_000_000: 7}),
    "edition": Edition("token", 1.0, TEXT),
    "noticed": Noticed({f"dead_letters {TEXT}": 1.0}),
    "plan": Plan(nodes={TEXT: {"p": 1}}, lost={"n": LostNode(1.0, "host")}),
    "history": Hour(7, [Moment(1.0, {TEXT: Point(1, 2, 3, 4)})], {"p": EndedTotals(1, 2, {"w0": 1})}),
    "token": Token(id="i", name=TEXT, role="read", digest=b"d", created_at=1.0),
    "stack_requests": StackRequests(
        {"k": StackRequest(job="j", fence=1, asked_at=1.0, reply=StackReply(at=1.0, instance="i", pid=1, stack=TEXT))}
    ),
    "encryption": KeyInUse(TEXT, retired=True),
    "departure": Departure(token="t", to=TEXT),
    "arrival": Arrival(token="t", source=TEXT),
    "beat": Beat(instance=TEXT, node="n", pool="p", slots=1),
    "event": Event(at=1.0, name="n", subject="s", message=TEXT, data={"k": "v"}),
    "attempt": Attempt(number=1, started_at=1.0, ended_at=2.0, kind="raised", error=TEXT),
}
ALL = {**KINDS, "beat": BEAT, "event": EVENT, "attempt": ATTEMPT}


@dataclass(frozen=True)
class Damage:
    """A way to damage a record."""

    name: str
    body: bytes

    def __repr__(self) -> str:
        return self.name


def damages(kind: str) -> list[Damage]:
    """Bodies that no record of the kind can have."""
    good = ALL[kind].encode(VALUES[kind])
    found = [
        Damage("empty", b""),
        Damage("never used byte", b"\xc1"),
        Damage("cut off", good[:-1]),
        Damage("too long", good + b"\x00"),
        Damage("a number", b"\x01"),
        Damage("a text that is not UTF-8", b"\xa1\xff"),
        Damage("a list of texts", b"\x92\xa1a\xa1b"),
        Damage("nested too deeply", b"\x91" * 100_000),
        Damage("a list that claims to be huge", b"\xdd\xff\xff\xff\xff"),
    ]
    if TEXT.encode() in good:
        found.append(Damage("invalid UTF-8 inside", good.replace(TEXT.encode(), b"\xff" * len(TEXT))))
    return found
