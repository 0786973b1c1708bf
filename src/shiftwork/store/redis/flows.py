"""Flows and their jobs, from the replies of `flows` and `members`, for people. What holds a flow together is decided in
`parts/needs.lua`.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

from msgspec import MsgspecError, msgpack

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.redis.lua import STATE
from shiftwork.store.redis.rows import instant, own_values

_decode: Final = msgpack.Decoder().decode


def read_flows(flat: Sequence[bytes]) -> list[FlowRecord]:
    width = 3 + len(STATUSES)
    return [_flow(*flat[at : at + width]) for at in range(0, len(flat), width)]


def _flow(id: bytes, created_at: bytes, aim: bytes, *counts: bytes) -> FlowRecord:
    by_status = zip(STATUSES, map(int, counts), strict=True)
    try:
        worker, tags = msgpack.decode(aim, type=tuple[str, list[str]])
    except MsgspecError:
        worker, tags = "", []
    counted = {status.value: n for status, n in by_status if n}
    return FlowRecord(id.decode(), float(created_at), counted, worker, tuple(tags))


def read_members(flat: Sequence[Any]) -> list[FlowMember]:
    """Return the jobs of a reply of `members`."""
    return [_member(*flat[at : at + 5]) for at in range(0, len(flat), 5)]


def _member(id: bytes, created_at: bytes, state: bytes, never_changes: bytes, stranded: int) -> FlowMember:
    worker, status, started_at, ended_at, options = "", JobStatus.DEAD, None, None, None
    try:
        number, flags, *_, started, ended = STATE.unpack_from(state)
        worker, _, _, _, _, _, _, _, _, _, *own = _decode(never_changes)
        status = STATUSES[number]
        started_at, ended_at = instant(started), instant(ended)
        options = own_values(own, flags).get("options")
    except (MsgspecError, struct.error, UnicodeDecodeError, LookupError, TypeError, ValueError):
        pass  # damaged: the next call that reads the job itself buries it
    return FlowMember(id.decode(), worker, status, float(created_at), started_at, ended_at, options, bool(stranded))
