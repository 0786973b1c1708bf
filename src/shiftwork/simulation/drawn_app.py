"""Draws the pools and workers of an episode, with policies of every kind."""

from random import Random
from typing import Any, Final

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import Breaker, Retry
from shiftwork.simulation.episode import Act, PoolPlan, WorkerPlan

POOL_KINDS: Final = ("process", "process", "async", "thread")
ACTS: Final[tuple[Act, ...]] = ("task", "task", "task", "timed", "timed", "durable")


def draw_pools(chance: Random, *, apart: bool) -> tuple[PoolPlan, ...]:
    """Draw the pools. `apart`: whether all of them run in processes of their own on every node."""
    return tuple(_pool(chance, number, apart=apart) for number in range(1, chance.choice((1, 2, 2, 3)) + 1))


def _pool(chance: Random, number: int, *, apart: bool) -> PoolPlan:
    kind = chance.choice(POOL_KINDS)
    most = chance.choice((1, 2, 3, 5))
    options: dict[str, Any] = {
        "kind": kind,
        "min_workers": chance.choice((0, 1, 1, most)),
        "max_workers": most,
        "scale_down_after_seconds": chance.choice((5, 20, 60)),
        "scale_up_threshold": chance.choice((2, 5, 20)),
    }
    if (apart or kind == "process") and chance.random() < 0.3:
        options["max_jobs_per_instance"] = chance.choice((1, 3, 10))
    if chance.random() < 0.3:
        options["heartbeat_interval"] = chance.choice((1, 2))
    if apart and kind != "process" and chance.random() < 0.3:
        options["processes"] = 2
    return PoolPlan(name=f"{kind}-{number}", options=options)


def draw_workers(chance: Random, pools: tuple[PoolPlan, ...], number: int, versions: int) -> tuple[WorkerPlan, ...]:
    """Draw the workers. The first one is a task, so that there is something to do."""
    made: list[WorkerPlan] = []
    for place in range(number):
        act: Act = "task" if not place else chance.choice(ACTS)
        made.append(
            _worker(chance, f"w{place + 1}", act, pools, made, version=versions if chance.random() < 0.2 else 1)
        )
    return tuple(made)


def _worker(
    chance: Random, name: str, act: Act, pools: tuple[PoolPlan, ...], before: list[WorkerPlan], *, version: int
) -> WorkerPlan:
    pool = chance.choice(pools)
    options: dict[str, Any] = {"pool": pool.name, **_policy(chance), **_gates(chance, act, before)}
    if act in ("task", "timed") and (pool.options["kind"] != "async" or chance.random() < 0.1):
        act = "plain task" if act == "task" else "plain timed"
    if act in ("timed", "plain timed"):
        options |= _schedule(chance)
        script = "|".join(_short(chance) for _ in range(chance.randint(1, 4)))
        return WorkerPlan(name=name, act=act, options=options, script=script, version=version)
    return WorkerPlan(name=name, act=act, options={"execution_mode": "triggered", **options}, version=version)


def _policy(chance: Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "timeout_seconds": chance.choice((1, 3, 10, 60)),
        "max_retries": chance.choice((0, 0, 1, 3)),
        "retry": Retry(chance.choice((0, 0.5, 2)), 1.5),
        "priority": chance.choice(list(JobPriority)),
        "max_consecutive_failures": chance.choice((None, None, 2, 5)),
        "keep_completed_seconds": 86_400,
    }
    if chance.random() < 0.15:
        options["breaker"] = Breaker(failures=2, window_seconds=20, cool_down_seconds=chance.choice((1, 5)))
    return options


def _gates(chance: Random, act: Act, before: list[WorkerPlan]) -> dict[str, Any]:
    """Draw what keeps runs of the worker from others: few workers have any of it."""
    options: dict[str, Any] = {}
    others = [plan.name for plan in before if plan.version == 1]
    timed = [plan.name for plan in before if plan.act in ("timed", "plain timed") and plan.version == 1]
    if others and chance.random() < 0.25:
        options["blocks"] = [chance.choice(others)]
    if timed and act == "timed" and chance.random() < 0.5:
        options["depends_on"] = {chance.choice(timed): chance.choice(("done", "fresh"))}
    if chance.random() < 0.2:
        options["max_running"] = chance.choice((1, 2))
    if chance.random() < 0.2:
        options["rate_limit"] = chance.choice(("60/m", "120/m", "3/s"))
    if act != "timed" and chance.random() < 0.2:
        options["concurrency_key"] = "{key}"
    return options


def _schedule(chance: Random) -> dict[str, Any]:
    kind = chance.random()
    overlap = {"overlap": chance.choice(("skip", "queue", "allow"))}
    if kind < 0.2:
        return {"execution_mode": "continuous", "interval_seconds": chance.choice((0, 0.5, 2))}
    if kind < 0.5:
        cron = chance.choice(("* * * * *", "*/2 * * * *"))
        return {"cron": cron, "catch_up": chance.choice(("latest", "none", "all")), **overlap}
    return {"interval_seconds": chance.choice((2, 5, 11)), **overlap}


def _short(chance: Random) -> str:
    seconds = chance.choice((0.01, 0.1, 0.15, 0.3, 1.0))
    return f"{seconds} fail" if chance.random() < 0.15 else f"{seconds}"
