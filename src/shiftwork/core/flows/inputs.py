"""Results of other jobs, inserted into the payload of a job that needs them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Raw, msgpack

from shiftwork.core.model.job_parts import Input
from shiftwork.core.values.hidden import revealed

NOTHING: Final = msgpack.encode(None)


def insert(payload: bytes, inputs: Sequence[Input], results: Mapping[str, bytes | None]) -> bytes:
    """The payload with these results in their places. A job that returned nothing has None there."""
    whole = msgpack.decode(payload)
    for one in inputs:
        place: Any = whole
        for step in one.path[:-1]:
            place = place[step]
        place[one.path[-1]] = Raw(revealed(results.get(one.job) or NOTHING))
    return msgpack.encode(whole)
