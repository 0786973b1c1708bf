"""Problems, workers, breakers, events and tokens as programs see them, by `--json` and over HTTP."""

from typing import Any, Literal

from msgspec import Struct

from shiftwork.core.health.health_values import Problem, Severity
from shiftwork.core.model.doc_types import Role, Token
from shiftwork.core.model.event import Event, actor_of
from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.core.observing.event_rows import EventRow, text_of
from shiftwork.core.workers.breaker import BreakerStatus
from shiftwork.core.workers.state import is_failing, reason_of
from shiftwork.sentences import restored
from shiftwork.views.diagnosis import remedy, see
from shiftwork.views.formats import PRIORITY_NAMES, PriorityName, iso, json_safe, past_iso, shaped
from shiftwork.views.overview import BreakerView, Overview, WorkerView
from shiftwork.views.shapes.pools import PoolShape, pool_shape


class ProblemShape(Struct, frozen=True, kw_only=True):
    """A problem, and what to do about it."""

    severity: Severity
    code: str
    subject: str
    message: str
    remedy: str
    see: str
    """Where the runbook explains it: an address if SHIFTWORK_DOCS is set, or a path in the source."""
    since: float | None
    """When it began, in epoch seconds; null if that cannot be known."""
    target: str
    """Where it is solved: "pool:NAME", "worker:NAME", "node:NAME", "flow:ID", "breaker:NAME", "dead:POOL", "dead",
    "store" or "leader"; empty if that is nowhere in particular."""


class WorkerShape(Struct, frozen=True, kw_only=True):
    """A worker: its policy, its state, and the numbers of its jobs."""

    name: str
    mode: WorkerExecutionMode
    schedule: str
    rescheduled_at: str | None
    """When a person changed its schedule at run time; null if it is the one in the code."""
    rescheduled_by: str | None
    pool: str
    priority: PriorityName
    timeout_seconds: float | None
    max_retries: int
    depends_on: dict[str, str]
    blocks: tuple[str, ...]
    breaker: str | None
    """The name of the breaker that guards it."""
    known: bool
    """Whether a live node has it; true of every worker while no node is live."""
    enabled: bool
    reason: str | None
    running: int
    queued: int
    scheduled: int
    waiting: int
    """How many jobs wait for other jobs of their flow."""
    retrying: int
    dead: int
    failures: int
    last_run_at: str | None
    last_end_at: str | None
    last_success_at: str | None
    last_error: str | None
    last_error_at: str | None
    failing: bool
    """Whether the last attempt that succeeded or failed is one that failed."""
    next_due_at: str | None


class BreakerViewShape(Struct, frozen=True, kw_only=True):
    """A breaker: what it guards, its state, and who holds it open, if a person does."""

    name: str
    workers: list[str]
    """The workers that it guards; none if all of them are gone."""
    state: BreakerStatus
    since: str | None
    """Since when it has had this state; null if it was never open."""
    failures: int
    """How many failures opened it; while it is closed, how many it has counted lately."""
    until: str | None
    """When a run may probe it; null if it is not open, or if only a person closes it."""
    forced_by: str | None
    """Who holds it open; null if its failures opened it, or if it is not open."""
    reason: str | None


class EventShape(Struct, frozen=True, kw_only=True):
    """An event, or several jobs of one worker that died of one error within a minute."""

    seq: int
    at: str
    name: str
    subject: str
    message: str
    data: dict[str, Any]
    by: str | None
    """Who caused it; null if no person and no program did."""
    text: str
    """What happened, in one sentence."""
    count: int
    """How many events it stands for; all other fields are those of the newest."""
    first_at: str
    """When the oldest of them happened."""


class TokenShape(Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    role: Role
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class SummaryShape(Struct, frozen=True, kw_only=True):
    """What is wrong, the leader, the nodes and the pools."""

    at: str
    store: str
    status: Literal["ok", "degraded", "failing"]
    problems: list[ProblemShape]
    leader: str | None
    nodes: list[str]
    pools: list[PoolShape]


class StatusShape(SummaryShape, frozen=True, kw_only=True):
    """The overview, with every worker."""

    workers: list[WorkerShape]


def status_shape(seen: Overview) -> StatusShape:
    """Return the overview with every worker."""
    return shaped(
        StatusShape,
        seen,
        at=past_iso(seen.at),
        status=seen.health.status,
        problems=[problem_shape(problem) for problem in seen.health.problems],
        pools=[pool_shape(pool) for pool in seen.pools],
        workers=[worker_shape(worker) for worker in seen.workers],
    )


def problem_shape(problem: Problem) -> ProblemShape:
    """Return a problem, with the remedy as a command."""
    return shaped(ProblemShape, problem, remedy=remedy(problem), see=see(problem))


def worker_shape(worker: WorkerView) -> WorkerShape:
    config, state = worker.config, worker.state
    return shaped(
        WorkerShape,
        worker,
        state,
        config,
        worker.stats,
        mode=config.execution_mode,
        rescheduled_at=None if worker.rescheduled is None else iso(worker.rescheduled.at),
        rescheduled_by=None if worker.rescheduled is None else worker.rescheduled.by,
        priority=PRIORITY_NAMES[config.priority],
        depends_on=config.demands,
        breaker=None if config.breaker is None else config.breaker.name or config.name,
        reason=reason_of(state),
        running=worker.stats.processing,
        last_run_at=iso(state.last_started),
        last_end_at=iso(state.last_ended),
        last_success_at=iso(state.last_success),
        failing=is_failing(state),
        next_due_at=iso(worker.next_due),
    )


def breaker_shape(breaker: BreakerView) -> BreakerViewShape:
    return shaped(BreakerViewShape, breaker, since=iso(breaker.since), until=iso(breaker.until))


def event_shape(event: Event) -> EventShape:
    """Return an event by itself."""
    return event_row_shape(EventRow(event=event, first_at=event.at))


def event_row_shape(row: EventRow) -> EventShape:
    """Return an event, or several that are shown as one."""
    event = row.event
    return shaped(
        EventShape,
        event,
        row,
        at=past_iso(event.at),
        message=restored(event.message, event.parts),
        data=json_safe(event.data),
        by=actor_of(event),
        text=text_of(row),
    )


def token_shape(token: Token) -> TokenShape:
    """Return a token, without its secret."""
    return shaped(TokenShape, token)
