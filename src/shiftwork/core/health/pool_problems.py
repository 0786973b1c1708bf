"""What is wrong with pools: those that cannot run, that are stuck, and whose jobs wait too long, with what holds them.

A remedy is for what holds the jobs. More slots help only where jobs wait for a slot: where a gate holds them, the row
names the gate and leads to it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Final

from msgspec import Struct

from shiftwork.core.health.health_values import PoolFacts, Problem, Severity, gist
from shiftwork.core.observing.pool_stats import LATELY_MINUTES, MANY_EXPIRED
from shiftwork.core.scaling.backlog import Gate
from shiftwork.core.words import counted, seconds

DEFAULT_LATENCY_SECONDS: Final = 300.0
"""How long a job may wait in a pool that has no `target_latency_seconds` of its own."""
FAR_TOO_LONG: Final = 10.0
"""How many times its target a job waits until that is critical."""
STARTING_SECONDS: Final = 30.0
"""How long jobs may wait for the first worker of a pool that a node is about to start."""
STUCK_SECONDS: Final = 10.0
"""For how long at least nothing must have ended in a pool that counts as stuck."""
HANG_SECONDS: Final = 2.0
"""For how long at least nothing must have ended before more slots are no longer advised: clocks differ a little."""
STUCK_RUNS: Final = 5.0
"""The same as a number of usual runs."""
UNTIMED_SECONDS: Final = 45.0
"""The same while it runs a worker of which no run has ever ended."""


def of_pools(pools: Sequence[PoolFacts], now: float) -> Iterator[Problem]:
    """Yield what is wrong with each pool, apart from its backlog and its dead letters."""
    deserted = [pool for pool in pools if _is_deserted(pool)]
    yield from _deserted(deserted, now)
    for pool in pools:
        if pool.paused:
            yield _paused(pool)
        elif pool not in deserted:
            yield from _serving(pool, now)
        if pool.expired >= MANY_EXPIRED:
            message = (
                f"{counted(pool.expired, 'job')} of pool {pool.name} expired within {LATELY_MINUTES} minutes, because "
                "they were not started in time"
            )
            more_time = (
                "or give the jobs more time (expires_seconds); `shiftwork jobs --status cancelled` lists them, and "
                "`shiftwork retry ID` runs one after all"
            )
            held = _remedy(pool, now) if pool.queued else "raise max_workers if they waited for a slot"
            remedy = f"{held}; {more_time}"
            yield Problem("jobs_expired", pool.name, message, remedy, since=pool.expired_since, target=_target(pool))


def dead_letters(pools: Sequence[PoolFacts]) -> Iterator[Problem]:
    """Yield one row about the dead letters of all pools."""
    dead = sorted((pool for pool in pools if pool.dead), key=lambda pool: (-pool.dead, pool.name))
    if not dead:
        return
    jobs, [first, *others] = sum(pool.dead for pool in dead), dead
    message = f"{counted(jobs, 'job')} of pool {first.name} in the dead-letter queue"
    if others:
        each = ", ".join(f"{pool.name} ({pool.dead:,})" for pool in dead)
        message = f"{counted(jobs, 'job')} of {counted(len(dead), 'pool')} in the dead-letter queue: {each}"
    target = "dead" if others else f"dead:{first.name}"
    remedy = "read their errors, then retry or discard each: retry_job, discard_job"
    yield Problem("dead_letters", "dead letters", message, remedy, target=target)


class Backlogged(Struct, frozen=True):
    """A pool whose jobs wait too long."""

    problem: Problem
    words: str
    """What the row about the cause of it says about the pool."""


def backlogged(pools: Sequence[PoolFacts], now: float) -> Iterator[Backlogged]:
    """Yield the pools whose jobs wait longer than they should, although instances serve them."""
    for pool in pools:
        name, waited, latency = pool.name, pool.oldest_wait_seconds, _latency(pool)
        if waited is None or not _waits_too_long(pool) or pool.paused or not pool.served:
            continue
        held = _held(pool, now)
        late = f"the oldest job of pool {name} has waited {waited:.0f} s, more than {latency:g} s"
        message, words = f"{late}; {held}", late
        if pool.gate is not None:  # the row about the cause has the reason already
            words += f"; of {pool.queued:,} queued, {pool.gate.jobs:,} are held"
        severity: Severity = "critical" if _waits_far_too_long(pool) else "warning"
        since = now - waited + latency
        yield Backlogged(
            Problem("pool_starved", name, message, _remedy(pool, now), severity, since, _target(pool)), words
        )


def _held(pool: PoolFacts, now: float) -> str:
    """Return in words what holds the queued jobs of a pool."""
    if pool.gate is not None:
        return f"of {pool.queued:,} queued, {pool.gate.jobs:,} are held: {pool.gate.why}"
    held = f"{pool.queued:,} queued, {min(pool.running, pool.slots)} of {pool.slots} slots are busy"
    if not _may_hang(pool, now):
        return held
    return held + f"; nothing has ended for {now - (pool.newest_start or now):.0f} s ({_usual(pool)})"


def _latency(pool: PoolFacts) -> float:
    return pool.target_latency_seconds or DEFAULT_LATENCY_SECONDS


def _waits_too_long(pool: PoolFacts) -> bool:
    return pool.queued > 0 and (pool.oldest_wait_seconds or 0.0) > _latency(pool)


def _waits_far_too_long(pool: PoolFacts) -> bool:
    return pool.queued > 0 and (pool.oldest_wait_seconds or 0.0) > FAR_TOO_LONG * _latency(pool)


def _paused(pool: PoolFacts) -> Problem:
    because = f": {pool.reason}" if pool.reason else ""
    message = f"pool {pool.name} is paused{because}; {pool.queued} queued"
    severity: Severity = "warning"
    if _waits_far_too_long(pool):
        severity, message = "critical", f"{message}, the oldest for {pool.oldest_wait_seconds:.0f} s"
    remedy = f"call resume_pool({pool.name!r}) to let it continue"
    return Problem("pool_paused", pool.name, message, remedy, severity, pool.paused_at, f"pool:{pool.name}")


def _serving(pool: PoolFacts, now: float) -> Iterator[Problem]:
    target, since = f"pool:{pool.name}", _begun(pool, now)
    if pool.failing:
        yield _failing(pool)
    if pool.unplaced is not None and pool.hosting == "ready":
        severity: Severity = "critical" if pool.queued and not pool.served else "warning"
        message = (
            f"pool {pool.name} should have more workers than fit on any node: {pool.unplaced}; {pool.queued} queued"
        )
        remedy = f"add a node, or lower what pool {pool.name} asks for: cpu, memory, min_workers, max_workers"
        yield Problem("pool_unplaced", pool.name, message, remedy, severity, since, target)
    elif not pool.served and not pool.failing:
        yield from _unserved(pool, since)
    yield from _stuck(pool, now)


def _begun(pool: PoolFacts, now: float) -> float | None:
    """Return since when jobs have waited without an instance, or with too few; None if that is not known."""
    waiting = now - pool.oldest_wait_seconds if pool.queued and pool.oldest_wait_seconds is not None else None
    return max((at for at in (waiting, pool.served_until) if at is not None), default=None)


def _failing(pool: PoolFacts) -> Problem:
    nodes = sorted(pool.failing)
    where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes)})"
    message = f"the processes of pool {pool.name} cannot be started on {where}: {gist(pool.failing[nodes[0]])}"
    remedy = (
        "fix the cause and restart the node, which keeps trying; its log and `shiftwork events` have the whole error"
    )
    return Problem("pool_failing", pool.name, message, remedy, "critical", target=f"pool:{pool.name}")


def _stuck(pool: PoolFacts, now: float) -> Iterator[Problem]:
    """Yield whether every slot is busy and none has become free for much longer than runs usually take.

    A slot that becomes free starts the next queued job at once. So while jobs are queued and every slot is busy,
    nothing has ended since the last of the running jobs started. First runs may simply be long: that is a warning.
    """
    if pool.newest_start is None or not pool.queued or not 0 < pool.slots <= pool.running:
        return
    silent, usual, untimed = now - pool.newest_start, pool.usual_seconds, pool.untimed or pool.usual_seconds is None
    many, long = STUCK_RUNS * (usual or 0.0), pool.long_seconds or 0.0
    if silent <= max(STUCK_SECONDS, many, long, UNTIMED_SECONDS if untimed else 0.0):
        return
    message = (
        f"all {pool.slots} slots of pool {pool.name} are busy and nothing has ended for {silent:.0f} s ({_usual(pool)})"
    )
    message += f"; {pool.queued:,} queued"
    there = _eldest(pool)
    remedy = (
        f"see where a run hangs: shiftwork stack {there}; then end it: shiftwork cancel {there}, or restart the node; "
        "give the worker a timeout_seconds"
    )
    severity: Severity = "warning" if untimed else "critical"
    yield Problem("pool_stuck", pool.name, message, remedy, severity, pool.newest_start, f"pool:{pool.name}")


def _may_hang(pool: PoolFacts, now: float) -> bool:
    """Return whether a pool without a free slot may be stuck, although it is too early to be sure."""
    if pool.newest_start is None or not 0 < pool.slots <= pool.running:
        return False
    usual = None if pool.untimed else pool.usual_seconds
    return usual is None or now - pool.newest_start > max(HANG_SECONDS, STUCK_RUNS * usual, pool.long_seconds or 0.0)


def _usual(pool: PoolFacts) -> str:
    """Return in words how long runs usually take."""
    if pool.usual_seconds is None:
        return "no run has ended before"
    many, long = STUCK_RUNS * pool.usual_seconds, pool.long_seconds or 0.0
    usual = f"usual: {seconds(pool.usual_seconds)}"
    return f"{usual}, long ones {seconds(long)}" if long > many else usual


def _eldest(pool: PoolFacts) -> str:
    """Return the id of the job that has run for longest, for a command."""
    return quote(pool.eldest) if pool.eldest else "ID"


def _is_deserted(pool: PoolFacts) -> bool:
    """Return whether a pool has something to do and there is no node at all."""
    idle = pool.served or pool.paused or pool.failing
    return pool.hosting == "nobody" and not idle and bool(pool.queued or pool.min_workers)


def _deserted(pools: Sequence[PoolFacts], now: float) -> Iterator[Problem]:
    """Yield one row about all pools that wait for the first node."""
    if not pools:
        return
    first, *others = sorted(pools, key=lambda pool: (-pool.queued, pool.name))
    severity: Severity = "critical" if first.queued else "warning"
    message = f"no live instance serves pool {first.name}; {first.queued} queued"
    remedy = (
        f"start a node that has pool {first.name}: shiftwork run MODULE:NAME; if one runs, its log says why instances "
        "end"
    )
    if others:
        each = ", ".join(f"{pool.name} ({pool.queued:,} queued)" for pool in (first, *others))
        message = f"no live instance serves {counted(len(pools), 'pool')}: {each}"
        remedy = "start a node that has them: shiftwork run MODULE:NAME; if one runs, its log says why instances end"
    since = min((at for pool in pools if (at := _begun(pool, now)) is not None), default=None)
    yield Problem("pool_unserved", first.name, message, remedy, severity, since, f"pool:{first.name}")


def _unserved(pool: PoolFacts, since: float | None) -> Iterator[Problem]:
    name, queued, target = pool.name, pool.queued, f"pool:{pool.name}"
    severity: Severity = "critical" if queued else "warning"
    if pool.hosting == "unknown" and queued:
        message = f"no live node knows pool {name}; {queued} queued"
        remedy = f"start a node whose app registers pool {name}: shiftwork run MODULE:NAME"
        yield Problem("pool_unhosted", name, message, remedy, severity, since, target)
    elif pool.hosting == "labels" and (queued or pool.min_workers):
        message = f"no live node has the labels of pool {name} ({', '.join(pool.labels)}); {queued} queued"
        options = " ".join(f"--label {label}" for label in pool.labels)
        remedy = f"start one: shiftwork run MODULE:NAME {options}"
        yield Problem("pool_unhosted", name, message, remedy, severity, since, target)
    elif pool.hosting == "drained" and queued:
        message = f"every node that could serve pool {name} is drained or stopping; {queued} queued"
        remedy = "start another node, or undrain one: shiftwork nodes, then shiftwork drain NODE --undo"
        yield Problem("pool_unserved", name, message, remedy, severity, since, target)
    elif pool.hosting == "ready" and queued and (pool.oldest_wait_seconds or 0.0) > STARTING_SECONDS:
        message = f"pool {name} has no worker, and its oldest job has waited {pool.oldest_wait_seconds:.0f} s"
        remedy = "check the logs of the nodes: the processes of this pool should have started by now"
        yield Problem("pool_unserved", name, message, remedy, severity, since, target)


# ── remedies for what holds a backlog ────────────────────────────────────────────────────────────────────────────────

NO_SLOTS: Final = "more slots do not help"


def _remedy(pool: PoolFacts, now: float) -> str:
    """Return what to do about jobs of the pool that wait."""
    if pool.gate is not None:
        others = pool.queued - pool.gate.jobs if pool.running >= pool.slots else 0
        slots = NO_SLOTS if others <= 0 else f"more slots help at most the other {others:,}"
        return f"{_REMEDIES[pool.gate.code](pool.gate)}; {slots}"
    if _may_hang(pool, now):
        return f"see whether its runs hang: shiftwork stack {_eldest(pool)}; more slots help only if they do not"
    if pool.running < pool.slots:
        name = quote(pool.name)
        return (
            f"find out why they wait although slots are free: shiftwork jobs --status queued --pool {name}, then "
            "shiftwork explain ID"
        )
    if pool.max_workers is not None and pool.slots >= pool.max_workers:
        most, name = pool.max_workers, quote(pool.name)
        return f"raise max_workers, {most} now (shiftwork scale {name} --max …); add a node if none has room for more"
    if pool.max_workers is None:
        return "wait while the pool grows by itself; if it does not, add a node"
    return f"wait while the pool grows by itself, to at most {pool.max_workers} slots; if it does not, add a node"


def _target(pool: PoolFacts) -> str:
    """Return where that is done."""
    gate = pool.gate
    if gate is None or gate.code == "paused":
        return f"pool:{pool.name}"
    return f"breaker:{gate.by}" if gate.code == "breaker" else f"worker:{gate.by}"


def _rate_limit(gate: Gate) -> str:
    raised = f"raise rate_limit of {gate.by} if what it protects allows it"
    if not gate.per_second:
        return raised
    return f"{raised}; the queue takes about {seconds(gate.jobs / gate.per_second)} at this rate"


_REMEDIES: Final[Mapping[str, Callable[[Gate], str]]] = {
    "rate_limit": _rate_limit,
    "max_running": lambda gate: f"raise max_running of {gate.by}, or wait",
    "concurrency_key": lambda gate: (
        f"see which keys they share: shiftwork jobs --worker {quote(gate.by)} --status queued; spread the keys, or "
        "raise their limit"
    ),
    "breaker": lambda gate: f"fix what breaker {gate.by} guards; it closes when a probe succeeds",
    "paused": lambda gate: f"when it may continue: shiftwork resume {quote(gate.by)}",
    "disabled": lambda gate: f"fix the cause, then: shiftwork enable {quote(gate.by)}",
    "dependency": lambda gate: f"see why {gate.by} does not succeed: shiftwork jobs --worker {quote(gate.by)}",
    "blocked": lambda gate: f"see what {gate.by} does: shiftwork jobs --worker {quote(gate.by)} --status processing",
}
"""What to do about each gate that can hold a backlog: every code of `core.scaling.backlog`."""
