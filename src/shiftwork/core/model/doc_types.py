"""The docs of a store, and the types of those that come with no rules. `core.doc_kinds` decodes all of them.

The other types stand beside their rules: a breaker's state in `core.workers.breaker`, a schedule's cursor in
`core.schedules.fire_times`, and so on.
"""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Any, Final, Literal

from msgspec import Struct, field

from shiftwork.sentences import restored


class Doc(Struct, frozen=True, gc=False):
    """A small record that is changed by compare-and-set. Version 0 means that it must not exist yet."""

    kind: str
    name: str
    body: bytes
    version: int = 0


class PoolDoc(Struct, frozen=True):
    """What people changed about a pool at run time (doc kind "pool")."""

    paused: bool = False
    reason: str | None = None
    since: float | None = None
    min_workers: int | None = None
    max_workers: int | None = None


class LostNode(Struct, frozen=True):
    """A node that vanished without leaving."""

    at: float
    """When its last beat arrived."""
    host: str


class Plan(Struct, frozen=True, kw_only=True):
    """How many slots of which pool each node runs (doc kind "plan"). The leader writes it, nodes follow it."""

    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of slots, by node and pool."""
    unplaced: dict[str, str] = field(default_factory=dict)
    """The pools that should have more slots than fit on the nodes, each with the reason."""
    unplaced_parts: dict[str, list[Any]] = field(default_factory=dict)
    """What these reasons are made of: `sentences.parts_of`."""
    drained: dict[str, float] = field(default_factory=dict)
    """The nodes that a person wants empty, each with the time since when."""
    lost: dict[str, LostNode] = field(default_factory=dict)
    """The nodes that vanished a short while ago and have not been replaced."""

    def why_unplaced(self, pool: str) -> str | None:
        """Return why a pool has fewer slots than it should; None if it has as many."""
        why = self.unplaced.get(pool)
        return None if why is None else restored(why, self.unplaced_parts.get(pool))


# ── a move to another store: these records do not move ───────────────────────────────────────────────────────────────


class Departure(Struct, frozen=True, kw_only=True):
    """Where the content of this store goes, or has gone (doc kind "departure", in the source)."""

    token: str
    to: str
    state: Literal["moving", "moved", "abandoned"] = "moving"
    at: float = 0.0
    horizon: float = 0.0
    """Of the jobs created after this instant, only those in `carried` have moved."""
    carried: tuple[str, ...] = ()


class Arrival(Struct, frozen=True, kw_only=True):
    """Where the content of this store comes from (doc kind "arrival", in the destination)."""

    token: str
    """The token of the departure that belongs to it."""
    source: str
    done: bool = False


# ── access ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Role = Literal["read", "operate"]


class TokenSession(Struct, frozen=True, kw_only=True):
    """A browser that logged in with a token, without what its cookie holds."""

    digest: bytes
    expires_at: float


class Token(Struct, frozen=True, kw_only=True):
    """A token, without its secret (doc kind "token", by id)."""

    id: str
    name: str
    role: Role
    digest: bytes
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    sessions: tuple[TokenSession, ...] = ()
    """The browsers that are logged in with it, oldest first."""

    def holds(self, now: float) -> bool:
        """Return whether it grants access now."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def find_session(self, digest: bytes, now: float) -> TokenSession | None:
        """Return the session with this digest, if it grants access now."""
        if not self.holds(now):
            return None
        return next((one for one in self.sessions if compare_digest(one.digest, digest) and now < one.expires_at), None)


# ── requests for the stacks of running jobs ──────────────────────────────────────────────────────────────────────────

STACK_REQUEST_SECONDS: Final = 30.0
"""A request that is older was left behind by a process that has died."""
MOST_STACK_REQUESTS: Final = 20


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
    """All open requests to see what jobs are doing (doc kind "stack_requests").

    A person's process adds a request, and writing it wakes every node. The node that runs the job adds its reply to the
    request. The process that asked reads the reply and removes the request, so the record is empty most of the time.
    """

    requests: dict[str, StackRequest] = field(default_factory=dict)
    """Each is stored under a key that only the process that asked knows."""


def kept_stack_requests(requests: Mapping[str, StackRequest], now: float) -> StackRequests:
    """Return the requests without those that were left behind, and no more than the newest few."""
    fresh = {key: request for key, request in requests.items() if request.asked_at > now - STACK_REQUEST_SECONDS}
    newest = sorted(fresh.items(), key=lambda item: item[1].asked_at)[-MOST_STACK_REQUESTS:]
    return StackRequests(dict(newest))
