"""Requests for the stacks of running jobs, and the replies: one small record, which is empty at rest.

A person's process adds a request; writing it wakes every node; the node that runs the job adds its reply to the
request; the process that asked reads the reply and removes the request.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

KEPT_SECONDS: Final = 30.0
"""A request that is older was left behind by a process that has died."""
MOST_KEPT: Final = 20


class StackReply(Struct, frozen=True, kw_only=True):
    """What a job was doing."""

    at: float
    instance: str
    pid: int
    stack: str


class StackRequest(Struct, frozen=True, kw_only=True):
    """A request to see what one run of a job is doing, with the reply once there is one."""

    job: str
    fence: int
    asked_at: float
    reply: StackReply | None = None


class StackRequests(Struct, frozen=True):
    """All open requests (doc kind "stack_requests")."""

    requests: dict[str, StackRequest] = field(default_factory=dict)
    """Each is stored under a key that only the process that asked knows."""


def kept(requests: Mapping[str, StackRequest], now: float) -> StackRequests:
    """Return the requests without those that were left behind, and no more than the newest few."""
    fresh = {key: request for key, request in requests.items() if request.asked_at > now - KEPT_SECONDS}
    newest = sorted(fresh.items(), key=lambda item: item[1].asked_at)[-MOST_KEPT:]
    return StackRequests(dict(newest))
