"""Draws what clients do: the jobs that they add, with scripts and options of every kind, and what they change."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.core.model.jobs import JobPriority
from shiftwork.simulation.episode import SCHEDULE_NAMES, JobPlan, OrderKind, OrderPlan, PoolPlan, WorkerPlan, job_id

ORDER_KINDS: Final[tuple[OrderKind, ...]] = (
    *("cancel", "cancel", "requeue", "requeue", "send", "send", "pause", "resume", "disable", "enable", "trigger"),
    *("schedule", "schedule", "unschedule", "reschedule", "wait", "wait"),
)
CHANGE_SHARE: Final = 0.15
SIGNAL_SHARE: Final = 0.6
"""How many of the jobs that wait for a signal are sent one."""
SCHEDULE_SHARE: Final = 0.2
"""How many episodes have a stored schedule from early on."""
EVERY: Final = (1.0, 3.0, 7.0, 20.0, "* * * * *")
"""How often schedules fire that people put or change."""
LENGTHS: Final = (0.0, 0.01, 0.01, 0.05, 0.1, 0.12, 0.2, 0.2, 0.5, 1.0, 2.5)
"""How long runs take. Some are about as long as runs may hold up others that wait in their process."""


def draw_orders(
    chance: Random, workers: tuple[WorkerPlan, ...], pools: tuple[PoolPlan, ...], seconds: float, number: int
) -> tuple[OrderPlan, ...]:
    """Draw orders, in the order of their times, some spread out, others in bursts; then signals, and a schedule."""
    bursts = [chance.uniform(0, seconds) for _ in range(3)]
    times = sorted(
        round(min(seconds, chance.choice(bursts) + chance.expovariate(3)), 3)
        if chance.random() < 0.5
        else round(chance.uniform(0, seconds), 3)
        for _ in range(number)
    )
    tasks = [plan for plan in workers if plan.act in ("task", "plain task", "durable")]
    orders: list[OrderPlan] = []
    known: list[str] = []
    for place, at in enumerate(times):
        order = _change(chance, at, workers, pools, known) if chance.random() < CHANGE_SHARE else None
        order = order or _addition(chance, at, tasks)
        known += [job_id(place, one) for one in range(len(order.jobs))]
        orders.append(order)
    signals = [_signal(chance, order.at, id) for order, id in _waiting(orders) if chance.random() < SIGNAL_SHARE]
    early = [_schedule(chance, chance.uniform(0, seconds / 2), tasks)] if chance.random() < SCHEDULE_SHARE else []
    return (*orders, *signals, *early)


def _waiting(orders: list[OrderPlan]) -> Iterator[tuple[OrderPlan, str]]:
    """Yield the ids of jobs that wait for a signal, each with the order that adds it."""
    for place, order in enumerate(orders):
        for number, job in enumerate(order.jobs):
            if "wait:" in job.script:
                yield order, job_id(place, number)


def _signal(chance: Random, at: float, id: str) -> OrderPlan:
    return OrderPlan(at=round(at + chance.expovariate(0.5), 3), kind="send", about=id)


def _schedule(chance: Random, at: float, tasks: list[WorkerPlan]) -> OrderPlan:
    plain = [plan for plan in tasks if plan.act != "durable"]
    job = JobPlan(worker=chance.choice(plain).name, script=chance.choice(("0.01", "0.2", "0.1 fail")))
    return OrderPlan(
        at=round(at, 3), kind="schedule", about=chance.choice(SCHEDULE_NAMES), jobs=(job,), every=chance.choice(EVERY)
    )


def _change(
    chance: Random, at: float, workers: tuple[WorkerPlan, ...], pools: tuple[PoolPlan, ...], known: list[str]
) -> OrderPlan | None:
    kind = chance.choice(ORDER_KINDS)
    if kind in ("cancel", "send", "wait"):
        return OrderPlan(at=at, kind=kind, about=chance.choice(known[-10:])) if known else None
    if kind == "requeue":
        return OrderPlan(at=at, kind=kind)
    if kind in ("pause", "resume"):
        return OrderPlan(at=at, kind=kind, about=chance.choice(pools).name)
    if kind in ("trigger", "reschedule"):
        timed = [plan for plan in workers if plan.act in ("timed", "plain timed")]
        return _timing(chance, at, kind, chance.choice(timed)) if timed else None
    if kind == "schedule":
        return _schedule(chance, at, [plan for plan in workers if plan.act in ("task", "plain task")])
    if kind == "unschedule":
        return OrderPlan(at=at, kind=kind, about=chance.choice(SCHEDULE_NAMES))
    return OrderPlan(at=at, kind=kind, about=chance.choice(workers).name)


def _timing(chance: Random, at: float, kind: OrderKind, worker: WorkerPlan) -> OrderPlan:
    continuous = worker.options.get("execution_mode") == "continuous"
    every = chance.choice(EVERY[:-1] if continuous else EVERY)  # the last one is cron
    return OrderPlan(at=at, kind=kind, about=worker.name, every=every)


def _quick(chance: Random, at: float, worker: WorkerPlan) -> OrderPlan:
    """Draw many jobs that take next to no time, and a few among them that hold up those behind them."""
    scripts = (
        chance.choice(("0.099", "0.1", "0.2", "0.05")) if chance.random() < 0.1 else chance.choice(("0.0", "0.003"))
        for _ in range(chance.choice((30, 60, 90)))
    )
    return OrderPlan(at=at, kind="many", jobs=tuple(JobPlan(worker=worker.name, script=one) for one in scripts))


def _addition(chance: Random, at: float, tasks: list[WorkerPlan]) -> OrderPlan:
    quick = [plan for plan in tasks if plan.act == "plain task"]
    if quick and chance.random() < 0.06:
        return _quick(chance, at, chance.choice(quick))
    kind: OrderKind = chance.choice(("enqueue", "enqueue", "enqueue", "many", "many", "flow"))
    number = 1 if kind == "enqueue" else chance.choice((2, 3, 5, 12)) if kind == "many" else chance.choice((2, 3, 4))
    same = chance.choice(tasks) if chance.random() < 0.5 else None
    jobs = []
    for place in range(number):
        job = _job(chance, same or chance.choice(tasks), in_flow=kind == "flow")
        if kind == "flow" and place:
            after = tuple(sorted({chance.randrange(place) for _ in range(chance.choice((1, 1, 2)))}))
            whatever = chance.random() < 0.3
            job = replace(job, after=after, whatever=whatever, given=not whatever and chance.random() < 0.4, options={})
        jobs.append(job)
    return OrderPlan(at=at, kind=kind, jobs=tuple(jobs))


def _job(chance: Random, worker: WorkerPlan, *, in_flow: bool) -> JobPlan:
    script = _durable(chance) if worker.act == "durable" else _script(chance, worker)
    options = _options(chance)
    if in_flow:
        options.pop("unique_key", None)
    return JobPlan(worker=worker.name, script=script, options=options, key=chance.choice(("", "a", "b")))


def _script(chance: Random, worker: WorkerPlan) -> str:
    parts = [_run(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    if str(worker.options["pool"]).startswith("process") and chance.random() < 0.05:
        end = chance.choice((f"{chance.choice(LENGTHS)} crash:9", "crash:11", "0.05 block:4"))
        parts = [end] * chance.choice((1, 1, 2, 3)) + parts
    if worker.act == "plain task":
        parts = [part.replace("extend:w1", "progress") for part in parts]  # only a coroutine can
    if "snooze" in parts[-1]:
        parts.append("0.01")  # it would go on for ever
    return "|".join(parts)


def _run(chance: Random) -> str:
    length, draw = chance.choice(LENGTHS), chance.random()
    if draw < 0.8:
        return f"{length}"
    ends = ("fail", "fail", "fail", "giveup", "retry:0.5", "snooze:1", "hang:3", "block:2", "progress", "extend:w1")
    return f"{length} {chance.choice(ends)}"


def _durable(chance: Random) -> str:
    words = ("step:0.05", "step:0.3", "sleep:0.5", "sleep:3", "wait:go:2", "wait:go:6", "flaky:1", "0.05", "extend:w1")
    return " ".join(chance.choice(words) for _ in range(chance.randint(1, 5)))


def _options(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.6:
        return {}
    every: dict[str, Any] = {
        "delay_seconds": round(chance.uniform(0, 5), 2),
        "priority": chance.choice(list(JobPriority)),
        "max_retries": chance.choice((0, 2)),
        "timeout_seconds": chance.choice((1, 4)),
        "unique_key": chance.choice(("one", "two")),
        "expires_seconds": chance.choice((1, 5)),
    }
    names = chance.sample(sorted(every), chance.choice((1, 1, 2)))
    return {name: every[name] for name in names}
