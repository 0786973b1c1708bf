"""Instances and their orders, from the replies of the server."""

import struct
from collections.abc import Sequence
from typing import Any, Final

from shiftwork.core.doc_kinds import BEAT
from shiftwork.core.observing.beats import InstanceRecord, Orders
from shiftwork.store.redis.server.client import seconds

BEAT_PREFIX: Final = struct.Struct("<dd")
"""What precedes a stored beat: when its lease ends, and when it came."""


def orders(cancel: Sequence[Any], lost: Sequence[bytes], time: list[bytes]) -> Orders:
    """Return the orders of a reply of `beat`."""
    return Orders([(id.decode(), fence) for id, fence in cancel], [name.decode() for name in lost], seconds(time))


def read_instances(flat: Sequence[bytes]) -> list[InstanceRecord]:
    """Return all instances by name, without those that cannot be read: their next beat replaces them."""
    found = []
    for body in flat[1::2]:
        beat = BEAT.decode(body[BEAT_PREFIX.size :])
        if beat is not None:
            found.append(InstanceRecord(beat, *BEAT_PREFIX.unpack_from(body)))
    return sorted(found, key=lambda record: record.beat.instance)
