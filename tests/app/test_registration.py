"""Bad input is refused clearly when it is given: each error names the thing, and the remedy."""

import asyncio
import functools
import inspect
import sys
from typing import Any, get_type_hints

import pytest

import shiftwork
from shiftwork import (
    ConfigurationError,
    Context,
    DependencyCycleError,
    DuplicateNameError,
    JobPriority,
    PoolConfig,
    Retry,
    ScheduleError,
    SignatureError,
    UnknownOptionError,
    UnknownPoolError,
    UnknownStoreError,
    UnknownWorkerError,
    WorkerConfig,
    WorkerOrchestrator,
)
from shiftwork.runtime.clock import until_idle
from tests.runtime.stage import DEADLINE, Stage, started


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"intervall_seconds": 5}, UnknownOptionError, ["'fetch'", "'intervall_seconds'", "'interval_seconds'"]),
        ({"interval_seconds": 0}, ScheduleError, ["'fetch'", "interval_seconds", "above 0"]),
        ({"interval_seconds": -5}, ScheduleError, ["'fetch'", "interval_seconds", "-5"]),
        ({"interval_seconds": "five"}, ScheduleError, ["'fetch'", "interval_seconds", "'five'"]),
        ({"cron": "every day"}, ScheduleError, ["'fetch'", "cron", "five fields"]),
        ({"cron": "99 * * * *"}, ScheduleError, ["'fetch'", "cron", "minute"]),
        ({"cron": "* * * * *", "interval_seconds": 5}, ScheduleError, ["cron and interval_seconds"]),
        ({"cron": "* * * * *", "timezone": "Europe/Wien"}, ScheduleError, ["timezone", "Europe/Vienna"]),
        ({"timeout_seconds": 0}, ConfigurationError, ["timeout_seconds"]),
        ({"max_retries": -1}, ConfigurationError, ["max_retries", "-1"]),
        ({"max_retries": 2.5}, ConfigurationError, ["max_retries", "2.5"]),
        ({"retry": 5}, ConfigurationError, ["retry", "Retry"]),
        ({"retry": Retry(jitter=7)}, ConfigurationError, ["retry", "jitter"]),
        ({"priority": 9}, ConfigurationError, ["priority", "9"]),
        ({"depends_on": "other"}, ConfigurationError, ["depends_on", "['other']"]),
        ({"depends_on": {"other": "fresch"}}, ConfigurationError, ["depends_on", '"fresh"']),
        ({"depends_on": ["fetch"]}, ConfigurationError, ["depends_on names the worker itself"]),
        ({"rate_limit": "fast"}, ConfigurationError, ["rate_limit", "100/m"]),
        ({"max_running": 0}, ConfigurationError, ["max_running"]),
        ({"overlap": "skipp"}, ConfigurationError, ["overlap", "'skip'"]),
        ({"execution_mode": "triggerd"}, ConfigurationError, ["execution_mode", "'triggered'"]),
        ({"execution_mode": "triggered", "cron": "* * * * *"}, ScheduleError, ["cron"]),
        ({"concurrency_key": "user"}, ConfigurationError, ["concurrency_key", "triggered"]),
        ({"blocks": [5]}, ConfigurationError, ["blocks", "5"]),
        ({"breaker": "smtp"}, ConfigurationError, ["breaker", "Breaker"]),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_at_registration(
    options: dict[str, Any], error: type[Exception], words: list[str]
) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(error) as raised:
        app.register_worker("fetch", nothing, **options)
    assert [word for word in ("'fetch'", *words) if word not in str(raised.value)] == []
    assert app.get_status()["workers"] == 0


def test_all_problems_are_reported_at_once() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError) as raised:
        app.register_worker("fetch", nothing, interval_seconds=-1, max_retries=-1, prioritee=3)  # type: ignore[call-arg]
    text = str(raised.value)
    assert [word for word in ("interval_seconds", "max_retries", "prioritee") if word not in text] == []


@pytest.mark.parametrize("name", ["", " fetch", "a@b", "x" * 201, "a\nb", 5, None])
def test_a_name_that_cannot_be_one_is_refused(name: Any) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match="name"):
        app.register_worker(name, nothing)
    with pytest.raises(ConfigurationError, match="name"):
        app.register_pool(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_worker": 1}, ["'mail'", "'min_worker'", "'min_workers'"]),
        ({"min_workers": 5, "max_workers": 2}, ["'mail'", "min_workers (5)", "max_workers (2)"]),
        ({"kind": "proces"}, ["'mail'", "kind", "'process'"]),
        ({"max_workers": 0}, ["'mail'", "max_workers"]),
        ({"job_timeout": -1}, ["'mail'", "job_timeout"]),
        ({"memory": "lots"}, ["'mail'", "memory", "512MB"]),
        ({"scale_up_threshold": 2, "scale_down_threshold": 5}, ["scale_down_threshold"]),
    ],
    ids=str,
)
def test_a_wrong_pool_is_refused(options: dict[str, Any], words: list[str]) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError) as raised:
        app.register_pool("mail", **options)
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"max_concurrent": -3}, "max_concurrent"),
        ({"max_concurrent": "5"}, "max_concurrent"),
        ({"tick_interval": 0}, "tick_interval"),
        ({"tick_interval": -1}, "tick_interval"),
        ({"tick_interval": float("nan")}, "tick_interval"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"max_payload_bytes": 0}, "max_payload_bytes"),
        ({"namespace": ""}, "namespace"),
    ],
    ids=str,
)
def test_a_wrong_setting_of_the_orchestrator_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        WorkerOrchestrator("memory://", **options)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqllite:///a.db", "did you mean 'sqlite'"),
        ("a.db", "sqlite:///a.db"),
        ("sqlite://a.db", "three slashes"),
        ("", "empty"),
    ],
)
def test_a_wrong_store_is_refused(url: str, words: str) -> None:
    with pytest.raises(UnknownStoreError, match=words):
        WorkerOrchestrator(url)


def test_one_name_for_two_is_refused() -> None:
    app = WorkerOrchestrator("memory://")
    app.register_worker("fetch", nothing)
    with pytest.raises(DuplicateNameError, match="there is a worker 'fetch' already"):
        app.register_worker("fetch", nothing)
    with pytest.raises(DuplicateNameError, match="there is a worker 'fetch' already"):
        app.task(name="fetch")(nothing)
    app.register_pool("mail")
    with pytest.raises(DuplicateNameError, match="there is a pool 'mail' already"):
        app.register_pool("mail")


@pytest.mark.parametrize("function", [functools.partial(print, 1), type("Callable", (), {"__call__": nothing})()])
def test_a_function_without_a_name_needs_one(function: Any) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match="name"):
        app.worker()(function)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("usr", "'usr': did you mean 'user'"),
        ("{usr}", "did you mean 'user'"),
        ("{user", "cannot be read"),
        ("{}", "concurrency_key"),
        ("note", "required parameter 'note'"),
    ],
)
def test_a_concurrency_key_must_be_made_of_required_arguments(key: str, words: str) -> None:
    app = WorkerOrchestrator("memory://")

    def mail(user: str, note: str = "") -> None: ...

    with pytest.raises(SignatureError, match=words):
        app.task(concurrency_key=key)(mail)


async def test_a_concurrency_key_that_a_payload_cannot_make_is_refused(stage: Stage) -> None:
    app = stage.app()

    @app.task(concurrency_key="{user[id]}")
    async def mail(user: dict[str, int]) -> None: ...

    with pytest.raises(shiftwork.PayloadTypeError, match="mail: its concurrency key"):
        await mail.enqueue({"name": 5})


# ── all together, at start ───────────────────────────────────────────────────────────────────────────────────────────


async def refused(app: WorkerOrchestrator, error: type[Exception], *words: str) -> None:
    with pytest.raises(error) as raised:
        await app.start()
    assert [word for word in words if word not in str(raised.value)] == []
    assert app.get_status()["state"] == "stopped"


@pytest.mark.parametrize("option", ["depends_on", "blocks"])
async def test_an_unregistered_worker(stage: Stage, option: str) -> None:
    app = stage.app()
    app.register_worker("fetch-data", nothing)
    app.register_worker("process", nothing, {option: ["fetch-date"]})
    await refused(app, UnknownWorkerError, "'process'", "'fetch-date'", "did you mean 'fetch-data'")


async def test_a_cycle(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("a", nothing, depends_on=["b"])
    app.register_worker("b", nothing, depends_on=["c"])
    app.register_worker("c", nothing, depends_on=["a"])
    await refused(app, DependencyCycleError, "a → b → c → a", "remove one depends_on")


async def test_an_unregistered_pool(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("mail")
    app.register_worker("send", nothing, pool="mial")
    await refused(app, UnknownPoolError, "worker send", "'mial'", "did you mean 'mail'", "register_pool")


async def test_several_problems_are_reported_together(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("a", nothing, pool="nowhere")
    app.register_worker("b", nothing, depends_on=["nobody"])
    await refused(app, ConfigurationError, "'nowhere'", "'nobody'")


async def test_after_a_refusal_it_can_be_fixed_and_started(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("b", nothing, depends_on=["a"])
    await refused(app, UnknownWorkerError, "'a'")
    app.register_worker("a", nothing)
    await app.start()
    await until_idle()
    assert await (await app.get_job("b@first")).ended(DEADLINE)


# ── what a handle is ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_can_be_called_like_the_function_it_is() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task()
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8
    assert repr(double) == "<Worker double: triggered in pool default>"


async def test_an_async_worker_too() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task()
    async def double(n: int) -> int:
        return 2 * n

    assert await double(4) == 8


async def test_parentheses_without_options_may_be_left_out() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.worker
    def tick() -> None: ...

    assert (double.config.execution_mode, double.config.max_consecutive_failures) == ("triggered", None)
    assert (tick.config.execution_mode, tick.config.interval_seconds) == ("scheduled", 300)
    async with started(app):
        assert await (await double.enqueue(n=4)).result(DEADLINE) == 8


@pytest.mark.parametrize("decorator", ["task", "worker"])
def test_options_are_given_by_name(decorator: str) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match=rf"by name, not 'mail': @app.{decorator}\(name='mail'\)"):
        getattr(app, decorator)("mail")


def test_a_hook_names_its_event() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match=r'@app.on\("job.dead"\)'):
        app.on(nothing)  # type: ignore[call-overload]


def test_names_are_the_functions_or_given() -> None:
    app = WorkerOrchestrator("memory://")
    assert app.worker()(nothing).name == "nothing"
    assert app.worker(name="something")(nothing).name == "something"
    assert app.task(name="work")(nothing).name == "work"


async def test_the_registered_workers_and_pools_are_known_everywhere(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("mail")
    app.register_worker("send", nothing, pool="mail")
    await app.start()
    stranger = stage.app()
    assert list(await stranger.workers()) == ["send"]
    assert list(await stranger.pools()) == ["mail"]
    assert (await stranger.workers())["send"].pool == "mail"


async def test_triggering_here_does_not_change_what_is_known_of_a_pool(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("mail", min_workers=3, max_workers=7)
    app.register_worker("send", nothing, pool="mail")
    assert await app.trigger_worker("send")
    assert (await stage.app().pools())["mail"].max_workers == 7


# ── the handle is like its function ──────────────────────────────────────────────────────────────────────────────────


def test_a_handle_is_like_its_function() -> None:
    app = WorkerOrchestrator("memory://")

    async def fetch(ctx: Context, url: str, *, deep: bool = False) -> bytes:
        """Fetch it."""
        return url.encode()

    def plain(n: int) -> int:
        return n

    marked = inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction
    fetched = app.task(name="other", max_retries=1)(fetch)
    for handle in (fetched, fetched.with_options(job_id="x")):
        assert (handle.name, handle.__name__, handle.__doc__) == ("other", "fetch", "Fetch it.")
        assert (handle.__module__, handle.__qualname__) == (fetch.__module__, fetch.__qualname__)  # type: ignore[attr-defined]
        assert inspect.unwrap(handle) is fetch
        assert inspect.signature(handle) == inspect.signature(fetch)
        assert get_type_hints(handle) == get_type_hints(fetch)
        assert marked(handle)
    assert not marked(app.task(plain))
    assert app.task(name="part")(functools.partial(plain, 3))() == 3  # type: ignore[call-arg]  # a partial may take a context


# ── configs as the pattern writes them ───────────────────────────────────────────────────────────────────────────────


def test_a_pool_may_be_given_as_a_dict_or_as_a_config() -> None:
    app = WorkerOrchestrator("memory://")
    options = {"name": "mail", "max_workers": 3, "scale_up_threshold": 2}
    by_dict = app.register_pool(options)
    assert (by_dict.name, by_dict.max_workers, by_dict.scale_down_threshold) == ("mail", 3, 1)
    assert options == {"name": "mail", "max_workers": 3, "scale_up_threshold": 2}, "it is not changed"
    by_config = app.register_pool(PoolConfig(name="images", max_workers=3), kind="thread")
    assert (by_config.name, by_config.max_workers, by_config.kind) == ("images", 3, "thread")

    by_name = app.register_pool("pages", {"max_workers": 3}, kind="thread")
    assert (by_name.name, by_name.max_workers, by_name.kind) == ("pages", 3, "thread")


@pytest.mark.parametrize("inside", ["fn", "function", None])
def test_a_worker_may_be_given_as_a_dict(inside: str | None) -> None:
    app = WorkerOrchestrator("memory://")

    def fetch() -> None: ...

    options: dict[str, Any] = {"name": "fetch", "interval_seconds": 7} | ({inside: fetch} if inside else {})
    before = dict(options)
    worker = app.register_worker(options, None if inside else fetch, timeout_seconds=9)
    assert (worker.name, worker.config.interval_seconds, worker.config.timeout_seconds) == ("fetch", 7, 9)
    assert worker.function is fetch
    assert options == before, "it is not changed"


@pytest.mark.parametrize("place", ["first", "third"])
def test_a_worker_may_be_given_as_a_config(place: str) -> None:
    app = WorkerOrchestrator("memory://")
    config = WorkerConfig(name="fetch", interval_seconds=7, depends_on=["login"], priority=JobPriority.HIGH)
    app.register_worker("login", lambda: None)
    if place == "first":
        worker = app.register_worker(config, lambda: None, timeout_seconds=9)
    else:
        worker = app.register_worker("fetch", lambda: None, config, timeout_seconds=9)
    assert worker.config == app.registered()[0]["fetch"]
    made = worker.config
    assert (made.name, made.interval_seconds, made.timeout_seconds, made.priority) == ("fetch", 7, 9, JobPriority.HIGH)
    assert list(made.depends_on) == ["login"]
