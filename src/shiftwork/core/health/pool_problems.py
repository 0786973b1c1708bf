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
from shiftwork.sentences import sentence, series

DEFAULT_LATENCY_SECONDS: Final = 300.0
"""How long a job may wait in a pool that has no `target_latency_seconds` of its own."""
FAR_TOO_LONG: Final = 10.0
"""How many times its target a job waits until that is critical."""
STARTING_SECONDS: Final = 30.0
"""How long jobs may wait for the first slot of a pool that a node is about to start."""
STUCK_SECONDS: Final = 10.0
"""For how long at least nothing must have ended in a pool that counts as stuck."""
HANG_SECONDS: Final = 2.0
"""For how long at least nothing must have ended before more slots are no longer advised: clocks differ a little."""
STUCK_RUNS: Final = 5.0
"""The same as a number of usual runs."""
UNTIMED_SECONDS: Final = 45.0
"""The same while it runs a worker none of whose runs has ever ended."""


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
            message = sentence(
                "{jobs} of pool {pool} expired within {n} minutes, because they were not started in time",
                jobs=counted(pool.expired, "job"),
                pool=pool.name,
                n=LATELY_MINUTES,
            )
            more_time = sentence(
                "or give the jobs more time (expires_seconds); `shiftwork jobs --status cancelled` lists them, "
                "and `shiftwork retry ID` runs one after all"
            )
            held = _remedy(pool, now) if pool.queued else sentence("raise max_workers if they waited for a slot")
            remedy = series("; ", [held, more_time])
            target = f"cancelled:{pool.name}"
            yield Problem("jobs_expired", pool.name, message, remedy, since=pool.expired_since, target=target)


def dead_letters(pools: Sequence[PoolFacts]) -> Iterator[Problem]:
    """Yield one row about the dead letters of all pools."""
    dead = sorted((pool for pool in pools if pool.dead), key=lambda pool: (-pool.dead, pool.name))
    if not dead:
        return
    jobs, [first, *others] = sum(pool.dead for pool in dead), dead
    message = sentence("{jobs} of pool {pool} in the dead-letter queue", jobs=counted(jobs, "job"), pool=first.name)
    if others:
        each = series(", ", [sentence("{what} ({which})", what=pool.name, which=f"{pool.dead:,}") for pool in dead])
        message = sentence(
            "{jobs} of {pools} in the dead-letter queue: {each}",
            jobs=counted(jobs, "job"),
            pools=counted(len(dead), "pool"),
            each=each,
        )
    target = "dead" if others else f"dead:{first.name}"
    remedy = sentence("read their errors, then retry or discard each: retry_job, discard_job")
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
        late = sentence(
            "the oldest job of pool {pool} has waited {n} s, more than {n2} s",
            pool=name,
            n=f"{waited:.0f}",
            n2=f"{latency:g}",
        )
        message = series("; ", [late, held])
        words = late
        if pool.gate is not None:  # the row about the cause has the reason already
            held = sentence("of {n} queued, {n2} are held", n=f"{pool.queued:,}", n2=f"{pool.gate.jobs:,}")
            words = series("; ", [late, held])
        severity: Severity = "critical" if _waits_far_too_long(pool) else "warning"
        since = now - waited + latency
        yield Backlogged(
            Problem("pool_starved", name, message, _remedy(pool, now), severity, since, _target(pool)), words
        )


def _held(pool: PoolFacts, now: float) -> str:
    """Return in words what holds the queued jobs of a pool."""
    if pool.gate is not None:
        return sentence(
            "of {n} queued, {n2} are held: {why}", n=f"{pool.queued:,}", n2=f"{pool.gate.jobs:,}", why=pool.gate.why
        )
    held = sentence(
        "{n} queued, {n2} of {n3} slots are busy", n=f"{pool.queued:,}", n2=min(pool.running, pool.slots), n3=pool.slots
    )
    if not _may_hang(pool, now):
        return held
    silent = now - (pool.newest_start or now)
    ended = sentence("nothing has ended for {n} s ({words})", n=f"{silent:.0f}", words=_usual(pool))
    return series("; ", [held, ended])


def _latency(pool: PoolFacts) -> float:
    return pool.target_latency_seconds or DEFAULT_LATENCY_SECONDS


def _waits_too_long(pool: PoolFacts) -> bool:
    return pool.queued > 0 and (pool.oldest_wait_seconds or 0.0) > _latency(pool)


def _waits_far_too_long(pool: PoolFacts) -> bool:
    return pool.queued > 0 and (pool.oldest_wait_seconds or 0.0) > FAR_TOO_LONG * _latency(pool)


def _paused(pool: PoolFacts) -> Problem:
    paused = sentence("pool {pool} is paused", pool=pool.name)
    if pool.reason:
        paused = sentence("pool {pool} is paused: {reason}", pool=pool.name, reason=pool.reason)
    severity: Severity = "warning"
    queued = sentence("{n} queued", n=pool.queued)
    if _waits_far_too_long(pool):
        queued = sentence("{n} queued, the oldest for {n2} s", n=pool.queued, n2=f"{pool.oldest_wait_seconds:.0f}")
        severity = "critical"
    message = series("; ", [paused, queued])
    remedy = sentence("call resume_pool({pool}) to let it continue", pool=f"{pool.name!r}")
    return Problem("pool_paused", pool.name, message, remedy, severity, pool.paused_at, f"pool:{pool.name}")


def _serving(pool: PoolFacts, now: float) -> Iterator[Problem]:
    target, since = f"pool:{pool.name}", _begun(pool, now)
    if pool.failing:
        yield _failing(pool)
    if pool.unplaced is not None and pool.hosting == "ready":
        severity: Severity = "critical" if pool.queued and not pool.served else "warning"
        message = sentence(
            "pool {pool} should have more slots than fit on any node: {why}; {n} queued",
            pool=pool.name,
            why=pool.unplaced,
            n=pool.queued,
        )
        remedy = sentence(
            "add a node, or lower what pool {pool} asks for: cpu, memory, min_workers, max_workers", pool=pool.name
        )
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
    where = (
        sentence("node {node}", node=nodes[0])
        if len(nodes) == 1
        else sentence("{n} nodes ({nodes})", n=len(nodes), nodes=series(", ", nodes))
    )
    message = sentence(
        "the processes of pool {pool} cannot be started on {where}: {error}",
        pool=pool.name,
        where=where,
        error=gist(pool.failing[nodes[0]]),
    )
    remedy = sentence(
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
    message = sentence(
        "all {n} slots of pool {pool} are busy and nothing has ended for {n2} s ({words})",
        n=pool.slots,
        pool=pool.name,
        n2=f"{silent:.0f}",
        words=_usual(pool),
    )
    message = series("; ", [message, sentence("{n} queued", n=f"{pool.queued:,}")])
    there = _eldest(pool)
    remedy = sentence(
        "see where a run hangs: shiftwork stack {id}; then end it: shiftwork cancel {job}, or restart "
        "the node; give the worker a timeout_seconds",
        id=there,
        job=there,
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
        return sentence("no run has ended before")
    many, long = STUCK_RUNS * pool.usual_seconds, pool.long_seconds or 0.0
    usual = sentence("usual: {time}", time=seconds(pool.usual_seconds))
    if long <= many:
        return usual
    return sentence("usual: {time}, long ones {time2}", time=seconds(pool.usual_seconds), time2=seconds(long))


def _eldest(pool: PoolFacts) -> str:
    """Return the id of the job that has run for longest, for a command."""
    return quote(pool.eldest) if pool.eldest else "ID"


def _is_deserted(pool: PoolFacts) -> bool:
    """Return whether a pool has something to do and there is no node at all."""
    idle = pool.served or pool.paused or pool.failing
    return pool.hosting == "no_node" and not idle and bool(pool.queued or pool.min_workers)


def _deserted(pools: Sequence[PoolFacts], now: float) -> Iterator[Problem]:
    """Yield one row about all pools that wait for the first node."""
    if not pools:
        return
    first, *others = sorted(pools, key=lambda pool: (-pool.queued, pool.name))
    severity: Severity = "critical" if first.queued else "warning"
    message = sentence("no live instance serves pool {pool}; {n} queued", pool=first.name, n=first.queued)
    remedy = sentence(
        "start a node that has pool {pool}: shiftwork run MODULE:NAME; if one runs, its log says why instances end",
        pool=first.name,
    )
    if others:
        each = series(
            ", ",
            [sentence("{pool} ({n} queued)", pool=pool.name, n=f"{pool.queued:,}") for pool in (first, *others)],
        )
        message = sentence("no live instance serves {pools}: {each}", pools=counted(len(pools), "pool"), each=each)
        remedy = sentence(
            "start a node that has them: shiftwork run MODULE:NAME; if one runs, its log says why instances end"
        )
    since = min((at for pool in pools if (at := _begun(pool, now)) is not None), default=None)
    yield Problem("pool_unserved", first.name, message, remedy, severity, since, f"pool:{first.name}")


def _unserved(pool: PoolFacts, since: float | None) -> Iterator[Problem]:
    name, queued, target = pool.name, pool.queued, f"pool:{pool.name}"
    severity: Severity = "critical" if queued else "warning"
    if pool.hosting == "unknown" and queued:
        message = sentence("no live node knows pool {pool}; {n} queued", pool=name, n=queued)
        remedy = sentence("start a node whose app registers pool {pool}: shiftwork run MODULE:NAME", pool=name)
        yield Problem("pool_unhosted", name, message, remedy, severity, since, target)
    elif pool.hosting == "labels" and (queued or pool.min_workers):
        message = sentence(
            "no live node has the labels of pool {pool} ({labels}); {n} queued",
            pool=name,
            labels=series(", ", pool.labels),
            n=queued,
        )
        options = " ".join(f"--label {label}" for label in pool.labels)
        remedy = sentence("start one: shiftwork run MODULE:NAME {options}", options=options)
        yield Problem("pool_unhosted", name, message, remedy, severity, since, target)
    elif pool.hosting == "drained" and queued:
        message = sentence(
            "every node that could serve pool {pool} is drained or stopping; {n} queued", pool=name, n=queued
        )
        remedy = sentence("start another node, or undrain one: shiftwork nodes, then shiftwork drain NODE --undo")
        yield Problem("pool_unserved", name, message, remedy, severity, since, target)
    elif pool.hosting == "ready" and queued and (pool.oldest_wait_seconds or 0.0) > STARTING_SECONDS:
        message = sentence(
            "pool {pool} has no slot, and its oldest job has waited {n} s",
            pool=name,
            n=f"{pool.oldest_wait_seconds:.0f}",
        )
        remedy = sentence("check the logs of the nodes: the processes of this pool should have started by now")
        yield Problem("pool_unserved", name, message, remedy, severity, since, target)


# ── remedies for what holds a backlog ────────────────────────────────────────────────────────────────────────────────

NO_SLOTS: Final = sentence("more slots do not help")


def _remedy(pool: PoolFacts, now: float) -> str:
    """Return what to do about jobs of the pool that wait."""
    if pool.gate is not None:
        others = pool.queued - pool.gate.jobs if pool.running >= pool.slots else 0
        slots = NO_SLOTS if others <= 0 else sentence("more slots help at most the other {n}", n=f"{others:,}")
        return series("; ", [_REMEDIES[pool.gate.code](pool.gate), slots])
    if _may_hang(pool, now):
        return sentence(
            "see whether its runs hang: shiftwork stack {id}; more slots help only if they do not", id=_eldest(pool)
        )
    if pool.running < pool.slots:
        name = quote(pool.name)
        return sentence(
            "find out why they wait although slots are free: shiftwork jobs --status queued --pool {pool}, "
            "then shiftwork explain ID",
            pool=name,
        )
    if pool.max_workers is not None and pool.slots >= pool.max_workers:
        most, name = pool.max_workers, quote(pool.name)
        return sentence(
            "raise max_workers, {n} now (shiftwork scale {pool} --max …); add a node if none has room for more",
            n=most,
            pool=name,
        )
    if pool.max_workers is None:
        return sentence("wait while the pool grows by itself; if it does not, add a node")
    return sentence(
        "wait while the pool grows by itself, to at most {n} slots; if it does not, add a node", n=pool.max_workers
    )


def _target(pool: PoolFacts) -> str:
    """Return where that is done."""
    gate = pool.gate
    if gate is None or gate.code == "paused":
        return f"pool:{pool.name}"
    return f"breaker:{gate.by}" if gate.code == "breaker" else f"worker:{gate.by}"


def _rate_limit(gate: Gate) -> str:
    raised = sentence("raise rate_limit of {worker} if what it protects allows it", worker=gate.by)
    if not gate.per_second:
        return raised
    time = seconds(gate.jobs / gate.per_second)
    return series("; ", [raised, sentence("the queue takes about {time} at this rate", time=time)])


_REMEDIES: Final[Mapping[str, Callable[[Gate], str]]] = {
    "rate_limit": _rate_limit,
    "max_running": lambda gate: sentence("raise max_running of {worker}, or wait", worker=gate.by),
    "concurrency_key": lambda gate: sentence(
        "see which keys they share: shiftwork jobs --worker {worker} --status queued; spread the keys, "
        "or raise their limit",
        worker=quote(gate.by),
    ),
    "breaker": lambda gate: sentence(
        "fix what breaker {breaker} guards; it closes when a probe succeeds", breaker=gate.by
    ),
    "paused": lambda gate: sentence("when it may continue: shiftwork resume {pool}", pool=quote(gate.by)),
    "disabled": lambda gate: sentence("fix the cause, then: shiftwork enable {worker}", worker=quote(gate.by)),
    "dependency": lambda gate: sentence(
        "see why {worker} does not succeed: shiftwork jobs --worker {name}", worker=gate.by, name=quote(gate.by)
    ),
    "blocked": lambda gate: sentence(
        "see what {worker} does: shiftwork jobs --worker {name} --status processing",
        worker=gate.by,
        name=quote(gate.by),
    ),
    "unserved": lambda gate: sentence(
        "start a node whose app registers {worker}: shiftwork run MODULE:NAME", worker=gate.by
    ),
}
"""What to do about each gate that can hold a backlog: every code of `core.scaling.backlog`."""
