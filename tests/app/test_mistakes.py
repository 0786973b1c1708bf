"""Plausible mistakes, each with the words that its message must have: a tired person knows what to type next."""

import asyncio
import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from shiftwork import (
    Breaker,
    ConfigurationError,
    PayloadError,
    PoolConfig,
    Retry,
    ShiftworkError,
    SignatureError,
    WorkerConfig,
    WorkerOrchestrator,
)

App = WorkerOrchestrator


class Session:
    """Something that cannot be stored with a job."""


class Mailer:
    def send(self, to: str) -> None: ...


@dataclasses.dataclass
class Order:
    number: int
    session: Session | None = None


def resize(path: str, width: int = 100) -> None: ...


def generator() -> Any:
    yield 1


def lifespan_of(web: object) -> Any:
    yield web


async def fetch() -> None: ...


def with_context(ctx, n: int) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001


def customer(customer: str) -> None: ...


def session_of(session: Session) -> None: ...


def order_of(orders: list[Order]) -> None: ...


def worker(**options: Any) -> Callable[[App], object]:
    return lambda app: app.register_worker("w", fetch, **options)


def many(calls: Callable[[App], Any]) -> Callable[[App], object]:
    return lambda app: asyncio.run(app.enqueue_many(calls(app)))


def scheduled(call: Callable[[App], Any], **options: Any) -> Callable[[App], object]:
    return lambda app: asyncio.run(app.put_schedule("s", call(app), **options))


def pool(**options: Any) -> Callable[[App], object]:
    return lambda app: app.register_pool("mail", **options)


def call(*args: Any, **kwargs: Any) -> Callable[[App], object]:
    return lambda app: app.task(resize).call(*args, **kwargs)


MISTAKES: list[tuple[str, Callable[[App], object], list[str]]] = [
    # ── the options of a worker
    ("timeout", worker(timeout=30), ["'timeout'", "did you mean 'timeout_seconds'?"]),
    ("every", worker(every="never"), ["every must be a time", "not 'never'"]),
    ("every 0", worker(every=0), ["every must be above 0"]),
    ("every twice", worker(every=5, interval_seconds=5), ["every is another name for interval_seconds; remove one"]),
    ("every and cron", worker(every=5, cron="* * * * *"), ["cron and every are both given"]),
    ("every of a task", worker(every=5, execution_mode="triggered"), ["every has no meaning for a triggered worker"]),
    ("every of a pool", pool(every="10s"), ["option of a worker"]),
    ("interval", worker(interval=timedelta(minutes=5)), ["write interval_seconds=300"]),
    ("minutes", worker(minutes=5), ["write interval_seconds=300"]),
    ("queue", worker(queue="mail"), ["did you mean 'pool'?"]),
    ("max_attempts", worker(max_attempts=3), ["did you mean 'max_retries'?"]),
    ("concurrency", worker(concurrency=3), ["did you mean 'max_running'?"]),
    ("countdown", worker(countdown=3), ["task.with_options(delay_seconds=…).enqueue(…)"]),
    ("eta", worker(eta=3), ["task.with_options(run_at=…).enqueue(…)"]),
    ("max_workers", worker(max_workers=3), ["option of a pool", "max_running"]),
    ("tz", worker(cron="0 3 * * *", tz="UTC"), ["did you mean 'timezone'?"]),
    ("PST", worker(cron="0 3 * * *", timezone="PST"), ["IANA", "America/Los_Angeles"]),
    ("Vienna", worker(cron="0 3 * * *", timezone="Vienna"), ["did you mean 'Europe/Vienna'?"]),
    ("offset", worker(cron="0 3 * * *", timezone="+02:00"), ["IANA", "Europe/Vienna"]),
    ("ZoneInfo", worker(cron="0 3 * * *", timezone=ZoneInfo("UTC")), ["write 'UTC'"]),
    ("six fields", worker(cron="0 0 3 * * *"), ["none for seconds", "remove the first"]),
    ("words for cron", worker(cron="every day"), ["five fields", "0 3 * * *"]),
    ("seven fields", worker(cron="0 0 3 * * * 2027"), ["none for seconds and years", "remove the first and the last"]),
    ("@reboot", worker(cron="@reboot"), ["@app.lifespan", "@app.on_deploy"]),
    ("@fortnightly", worker(cron="@fortnightly"), ["@daily"]),
    ("a day that never comes", worker(cron="0 0 31 2 *"), ["never fires", "write L for the last day"]),
    ("W in cron", worker(cron="0 0 15W * *"), ["LW", "check the date in the function"]),
    ("? in cron", worker(cron="0 0 ? * 1"), ["write * instead"]),
    ("+ in cron", worker(cron="0 0 1 * +1"), ["check the weekday in the function"]),
    ("a letter in cron", worker(cron="٣ 0 * * *"), ["contains '٣'"]),
    ("schedule", worker(schedule="0 3 * * *"), ["did you mean 'cron'?"]),
    ("priority by name", worker(priority="high"), ["write JobPriority.HIGH"]),
    ("retry as a number", worker(retry=5), ["Retry(…)", "base_seconds"]),
    (
        "a worker as dependency",
        lambda app: app.register_worker("b", fetch, depends_on=[app.task(resize)]),  # type: ignore[list-item]
        ["write 'resize'"],
    ),
    ("enabled as text", worker(enabled="no"), ["True or False"]),
    ("rate in words", worker(rate_limit="100 per minute"), ['"100/m"']),
    # ── policies and pools
    ("Retry(max_retries)", lambda _: Retry(max_retries=3), ["Retry has no 'max_retries'", "@app.task(max_retries=…)"]),  # type: ignore[call-arg]
    ("Retry(delay)", lambda _: Retry(delay=3), ["did you mean 'base_seconds'"]),  # type: ignore[call-arg]
    ("Breaker(threshold)", lambda _: Breaker(threshold=3), ["did you mean 'failures'"]),  # type: ignore[call-arg]
    ("PoolConfig by place", lambda _: PoolConfig("mail"), ["by name", "PoolConfig(name=…)"]),  # type: ignore[call-arg]
    ("WorkerConfig without a name", lambda _: WorkerConfig(), ["WorkerConfig", "'name'"]),  # type: ignore[call-arg]
    ("pool concurrency", pool(concurrency=3), ["did you mean 'max_workers'?"]),
    ("pool queue", pool(queue="mail"), ["a queue of its own", "pool=…"]),
    (
        "pool without a name",
        lambda app: app.register_pool(max_workers=3),
        ["has no name", "app.register_pool('NAME', …)"],
    ),
    ("pool id", lambda app: app.register_pool(id="mail"), ["app.register_pool('mail', …)"]),  # type: ignore[call-arg]
    ("dict with an id", lambda app: app.register_pool({"id": "mail"}), ["'name'", "'id'"]),
    ("PoolConfig with an id", lambda _: PoolConfig(id="mail"), ["did you mean 'name'"]),  # type: ignore[call-arg]
    ("WorkerConfig with an id", lambda _: WorkerConfig(id="mail"), ["did you mean 'name'"]),  # type: ignore[call-arg]
    (
        "a config of another name",
        lambda app: app.register_worker("w", fetch, WorkerConfig(name="v")),
        ["'w'", "'v'", "one name"],
    ),
    (
        "a config of a pool for a worker",
        lambda app: app.register_worker(PoolConfig(name="mail"), fetch),  # type: ignore[arg-type]
        ["name of a worker", "not PoolConfig"],
    ),
    ("a list for a name", lambda app: app.register_pool(["mail"]), ["name of a pool", "['mail'] (list)"]),  # type: ignore[arg-type]
    (
        "a worker without a name",
        lambda app: app.register_worker(fn=fetch),
        ["has no name", "register_worker('NAME', …)"],
    ),
    ("a worker with an id", lambda app: app.register_worker({"id": "w", "fn": fetch}), ["'name'", "'id'"]),
    ("a dict without a function", lambda app: app.register_worker({"name": "w"}), ["has no function"]),
    ("a number for options", lambda app: app.register_pool("mail", 3), ["second argument is a dict", "by name"]),  # type: ignore[arg-type]
    ("pool type", pool(type="thread"), ["did you mean 'kind'?"]),
    ("multiprocessing", pool(kind="multiprocessing"), ["did you mean 'process'?"]),
    ("pool interval", pool(interval_seconds=3), ["option of a worker"]),
    ("pool timeout", pool(timeout_seconds=3), ["did you mean 'job_timeout'?"]),
    # ── functions
    (
        "payload of a scheduled worker",
        lambda app: app.worker(customer),
        ["'customer'", "annotated str", "@app.task", "customer: Context"],
    ),
    ("a method", lambda app: app.task(Mailer.send), ["'self'", "object.method"]),
    ("a class", lambda app: app.task(Mailer), ["Mailer is a class", "Mailer(…)"]),
    ("a called function", lambda app: app.register_worker("w", fetch()), ["without parentheses"]),  # type: ignore[arg-type]
    ("no function", lambda app: app.register_worker("w"), ["has no function", "app.register_worker('w', function, …)"]),
    ("no name", lambda app: app.register_worker(fetch), ["app.register_worker('fetch', fetch, …)"]),  # type: ignore[arg-type]
    ("options by place", lambda app: app.register_worker("w", fetch, 60), ["dict of options", "by name"]),  # type: ignore[arg-type]
    ("a generator", lambda app: app.task(generator), ["remove its yield"]),
    ("a session", lambda app: app.task(session_of), ["session_of", "'session'", "Session", "such as an id"]),
    ("a session deep inside", lambda app: app.task(order_of), ["'orders'", "Session"]),
    ("a decorator's name by place", lambda app: app.task("mail"), ["@app.task(name='mail')"]),  # type: ignore[call-overload]
    # ── calls
    ("delay in enqueue", call("a", delay_seconds=5), ["resize.with_options(delay_seconds=5).enqueue(path=…)"]),
    ("countdown in enqueue", call(path="a", countdown=5), ["resize.with_options(delay_seconds=5)"]),
    ("queue in enqueue", call("a", queue="mail"), ["'queue'", "@app.task(pool=…)"]),
    ("delay()", lambda app: app.task(resize).delay("a"), ["did you mean 'enqueue'?"]),  # type: ignore[attr-defined]
    ("apply_async()", lambda app: app.task(resize).apply_async(), ["did you mean 'enqueue'?"]),  # type: ignore[attr-defined]
    ("an unannotated context", lambda app: app.task(with_context).call(n=1), ["'ctx'", "ctx: Context"]),
    ("too many", call("a", 1, 2), ["2 positional arguments (path, width)"]),
    (
        "naive run_at",
        lambda app: app.task(resize).with_options(run_at=datetime(2026, 1, 1)),  # noqa: DTZ001
        ["no time zone"],
    ),
    ("many: a worker", many(lambda app: app.task(resize)), ["a list of calls: [WORKER.call(…)"]),
    ("many: one call", many(call("a")), ["a list of calls"]),
    ("many: workers", many(lambda app: [app.task(resize)]), ["takes a call, as WORKER.call(…) returns it, not"]),
    ("a schedule of a worker", scheduled(lambda app: app.task(resize), every=5), ["schedule 's' takes a call"]),
    ("evry", scheduled(call("a"), evry=5), ["did you mean 'every'?"]),
    ("no schedule", scheduled(call("a")), ["""add cron="0 3 * * *" or every="5m\""""]),
    # ── addresses
    ("a path", lambda _: App("jobs.db"), ["sqlite:///jobs.db"]),
    ("a Path", lambda _: App(Path("jobs.db")), ["sqlite:///jobs.db"]),  # type: ignore[arg-type]
    ("tick_interval", lambda _: App(5.0), ["write tick_interval=5.0"]),  # type: ignore[arg-type]
    (
        "options of the app by place",
        lambda _: App(5.0, 5),  # type: ignore[arg-type,call-arg]
        ["by name: WorkerOrchestrator(tick_interval=5.0, max_concurrent=5)"],
    ),
    ("a URL and a number", lambda _: App("memory://", 5), ['WorkerOrchestrator("memory://", max_concurrent=5)']),  # type: ignore[call-arg,arg-type]
    ("milliseconds", lambda _: App(tick_interval_ms=5000), ["'tick_interval_ms'", "write tick_interval=5"]),  # type: ignore[call-arg]
    ("milliseconds as in JavaScript", lambda _: App(tickIntervalMs=5000), ["write tick_interval=5"]),  # type: ignore[call-arg]
    ("a namespace by place", lambda _: App("memory://", "shop"), ["namespace='shop'"]),  # type: ignore[call-arg]
    (
        "a URL and numbers",
        lambda _: App("memory://", 5.0, 3),  # type: ignore[call-arg,arg-type]
        ['WorkerOrchestrator("memory://", tick_interval=5.0, max_concurrent=3)'],
    ),
    ("options of the app as a dict", lambda _: App({"tick_interval": 5}), ["WorkerOrchestrator(**options)"]),  # type: ignore[arg-type]
    ("max_concurrent_workers", lambda _: App(max_concurrent_workers=5), ["did you mean 'max_concurrent'?"]),  # type: ignore[call-arg]
    ("queue of the app", lambda _: App(queue="mail"), ["app.register_pool(…)", "pool=…"]),  # type: ignore[call-arg]
    ("url", lambda _: App(url="memory://"), ["did you mean 'store'?"]),  # type: ignore[call-arg]
    ("two slashes", lambda _: App("sqlite://jobs.db"), ["sqlite:///jobs.db"]),
    ("valkey", lambda _: App("valkey://localhost"), ["did you mean 'redis'?"]),
    ("a driver", lambda _: App("postgresql+psycopg2://h/d"), ["did you mean 'postgresql'?"]),
    ("mysql", lambda _: App("mysql://h/d"), ["postgresql", "redis", "sqlite"]),
    # ── hooks
    ("job.finished", lambda app: app.on("job.finished", print), ["job.failed"]),
    (
        "a coroutine around jobs",
        lambda app: app.around_job(asyncio.sleep),  # type: ignore[type-var]
        ["yields once"],
    ),
    ("a lifespan of FastAPI", lambda app: app.lifespan(lifespan_of), ["without arguments: lifespan_of()", "'web'"]),  # type: ignore[type-var]
    ("around nothing", lambda app: app.around_job(generator), ["one argument, the Context: generator(ctx)"]),  # type: ignore[type-var]
    ("two lifespans", lambda app: (app.lifespan(nullcontext), app.lifespan(nullcontext)), ["let one function enter"]),
]


@pytest.mark.parametrize(("make", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_the_message_says_what_to_type(make: Callable[[App], object], words: list[str]) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises((ShiftworkError, AttributeError)) as raised:
        make(app)
    assert [word for word in words if word not in str(raised.value)] == []


def test_each_kind_of_mistake_has_its_error() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(SignatureError):
        app.worker(customer)
    with pytest.raises(ConfigurationError):
        Retry(max_retries=3)  # type: ignore[call-arg]
    with pytest.raises(PayloadError):
        app.task(resize).call(delay_seconds=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("written", "kept"), [("@daily", "0 0 * * *"), (" @Hourly", "0 * * * *"), ("0 3 * * Fri#L", "0 3 * * 5L")]
)
def test_nicknames_of_cron_expressions_are_understood(written: str, kept: str) -> None:
    assert WorkerOrchestrator("memory://").register_worker("w", fetch, cron=written).config.cron == kept
