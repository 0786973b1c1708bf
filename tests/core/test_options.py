"""Options are checked at registration: every problem is named, with the worker, the option and the remedy."""

import ast
import inspect
from contextlib import suppress
from datetime import timedelta
from textwrap import dedent
from typing import Any, get_type_hints
from urllib.error import HTTPError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import Breaker, PoolConfig, Retry, WorkerConfig, WorkerExecutionMode
from shiftwork.core.options.configs import OTHER_NAMES, pool_config, worker_config
from shiftwork.core.options.option_types import NamedWorkerOptions, PoolOptions, TimingOptions, WorkerOptions
from shiftwork.core.options.value_checks import parse_rate
from shiftwork.core.schedules.timing import Timing
from shiftwork.core.words import seconds_in
from shiftwork.core.workers.admission import RateLimit
from shiftwork.errors import ConfigurationError, ScheduleError, UnknownOptionError

TRIGGERED = WorkerExecutionMode.TRIGGERED
CONTINUOUS = WorkerExecutionMode.CONTINUOUS


def refusal(name: str, options: dict[str, Any]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as raised:
        worker_config(name, options)
    return raised.value


def test_the_defaults_are_the_documented_policy() -> None:
    assert worker_config("fetch", {}) == WorkerConfig(name="fetch")


def test_every_given_option_is_kept() -> None:
    said: dict[str, Any] = {
        "execution_mode": "scheduled",
        "cron": "0 3 * * MON-FRI",
        "timezone": "Europe/Vienna",
        "timeout_seconds": None,
        "max_retries": 0,
        "retry": Retry(base_seconds=1.0, factor=1.0, max_seconds=10.0, jitter=0.0),
        "priority": 2,
        "max_consecutive_failures": None,
        "depends_on": {"a": "fresh", "b": "done"},
        "blocks": ["c", "c", "d"],
        "pool": "images",
        "breaker": Breaker(failures=1, name="smtp"),
        "rate_limit": "100/m",
        "max_running": 3,
        "overlap": "queue",
        "catch_up": "all",
        "keep_completed_seconds": 0,
    }
    config = worker_config("fetch", said)
    assert config.execution_mode is WorkerExecutionMode.SCHEDULED
    assert config.priority is JobPriority.HIGH
    assert config.depends_on == {"a": "fresh", "b": "done"}
    assert config.blocks == ("c", "d")
    assert config.keep_completed_seconds == 0.0
    assert (config.cron, config.timeout_seconds, config.rate_limit) == ("0 3 * * MON-FRI", None, "100/m")
    assert (config.breaker, config.retry) == (said["breaker"], said["retry"])


def test_every_field_of_the_config_is_an_option() -> None:
    for name in WorkerConfig.__struct_fields__:
        if name != "name":
            assert "unknown option" not in str(refusal("w", {name: object()})), name


def test_depends_on_is_a_mapping_however_it_was_written() -> None:
    for written in (["a", "b", "a"], ("a", "b"), {"a": "done", "b": "done"}):
        assert worker_config("w", {"depends_on": written}).demands == {"a": "done", "b": "done"}


def test_depends_on_is_shown_as_it_was_written() -> None:
    assert worker_config("w", {"depends_on": ["a", "b"]}).depends_on == ["a", "b"]
    assert worker_config("w", {"depends_on": {"a": "fresh"}}).depends_on == {"a": "fresh"}


def test_an_unknown_option_names_worker_option_and_nearest() -> None:
    error = refusal("fetch-data", {"interval_second": 5})
    assert isinstance(error, UnknownOptionError)
    assert str(error) == "worker 'fetch-data': unknown option 'interval_second'; did you mean 'interval_seconds'?"


def _rule_of_one(_attempt: int) -> float:
    return 1.0


async def _async_rule(_attempt: int, _error: Exception) -> float:
    return 1.0


BAD: list[tuple[dict[str, Any], type[ConfigurationError], str]] = [
    ({"interval_seconds": 0}, ScheduleError, "interval_seconds must be above 0"),
    ({"interval_seconds": -1}, ScheduleError, "interval_seconds must be at least 0, not -1"),
    ({"interval_seconds": "soon"}, ScheduleError, """interval_seconds must be a time, such as 90, "1h30m" or"""),
    ({"interval_seconds": True}, ScheduleError, "interval_seconds must be a time"),
    ({"interval_seconds": timedelta(minutes=-1)}, ScheduleError, "interval_seconds must be at least 0, not -60.0"),
    ({"interval_seconds": "0s"}, ScheduleError, "interval_seconds must be above 0"),
    ({"interval_seconds": float("nan")}, ScheduleError, "not nan"),
    ({"interval_seconds": float("inf")}, ScheduleError, "not inf"),
    ({"interval_seconds": 5, "cron": "* * * * *"}, ScheduleError, "cron and interval_seconds are both given"),
    ({"cron": "61 * * * *"}, ScheduleError, "bad minute"),
    ({"cron": "* * * *"}, ScheduleError, "five fields"),
    ({"cron": "0 0 3 * * *"}, ScheduleError, "five fields"),
    ({"cron": "@reboot"}, ScheduleError, "use @app.lifespan"),
    ({"cron": ""}, ScheduleError, "five fields"),
    ({"cron": 5}, ScheduleError, "must be a string"),
    ({"cron": "0 0 30 2 *"}, ScheduleError, "never fires: its months have no such day"),
    ({"cron": "0 0 */32 2 MON#6"}, ScheduleError, "cron"),
    ({"timezone": "Europe/Wien"}, ScheduleError, "did you mean 'Europe/Vienna'?"),
    ({"timezone": "../../etc/passwd"}, ScheduleError, "not a time zone"),
    ({"timezone": "Europe"}, ScheduleError, "not a time zone"),
    ({"timezone": ""}, ScheduleError, "not a time zone"),
    ({"timezone": None}, ScheduleError, "must be the name of a time zone"),
    ({"timeout_seconds": 0}, ConfigurationError, "timeout_seconds must be above 0, not 0"),
    ({"timeout_seconds": "1x"}, ConfigurationError, "timeout_seconds must be a time"),
    ({"max_retries": -1}, ConfigurationError, "max_retries must be at least 0, not -1"),
    ({"max_retries": 1.5}, ConfigurationError, "max_retries must be a whole number"),
    ({"max_retries": True}, ConfigurationError, "max_retries must be a whole number"),
    ({"max_consecutive_failures": 0}, ConfigurationError, "max_consecutive_failures must be at least 1"),
    ({"max_running": 0}, ConfigurationError, "max_running must be at least 1"),
    ({"priority": "HIGH"}, ConfigurationError, "priority must be a JobPriority"),
    ({"priority": 4}, ConfigurationError, "from 0 to 3, not 4"),
    ({"priority": True}, ConfigurationError, "priority must be a JobPriority"),
    ({"priority": 1.0}, ConfigurationError, "priority must be a JobPriority"),
    ({"execution_mode": "trigered"}, ConfigurationError, "did you mean 'triggered'?"),
    ({"execution_mode": 3}, ConfigurationError, "scheduled, triggered, continuous"),
    ({"depends_on": "fetch"}, ConfigurationError, "write ['fetch']"),
    ({"depends_on": {"fetch": "new"}}, ConfigurationError, """must be "done" or "fresh" for 'fetch'"""),
    ({"depends_on": 3}, ConfigurationError, "must be a list of worker names"),
    ({"depends_on": [3]}, ConfigurationError, "must contain worker names, not 3"),
    ({"depends_on": ["w"]}, ConfigurationError, "depends_on names the worker itself"),
    ({"depends_on": {"w": "fresh"}}, ConfigurationError, "depends_on names the worker itself"),
    ({"blocks": "cleanup"}, ConfigurationError, "write ['cleanup']"),
    ({"blocks": ["w"]}, ConfigurationError, "blocks names the worker itself"),
    ({"pool": ""}, ConfigurationError, "pool must not be empty"),
    ({"pool": None}, ConfigurationError, "pool must be a string"),
    ({"rate_limit": "100 per minute"}, ConfigurationError, '"100/m"'),
    ({"rate_limit": 100}, ConfigurationError, '"100/m"'),
    ({"rate_limit": "0/s"}, ConfigurationError, "not '0/s'"),
    ({"overlap": "skipp"}, ConfigurationError, "did you mean 'skip'?"),
    ({"catch_up": True}, ConfigurationError, "latest, none, all"),
    ({"keep_completed_seconds": -1}, ConfigurationError, "keep_completed_seconds must be at least 0"),
    ({"concurrency_key": "user"}, ConfigurationError, "only for triggered workers"),
    (
        {"concurrency_key": 3, "execution_mode": TRIGGERED},
        ConfigurationError,
        "concurrency_key must be a non-empty string",
    ),
    (
        {"concurrency_key": "", "execution_mode": TRIGGERED},
        ConfigurationError,
        "concurrency_key must be a non-empty string",
    ),
    ({"retry": "often"}, ConfigurationError, "must be a Retry(…) with any of base_seconds"),
    ({"retry": 5}, ConfigurationError, "must be a Retry(…), not 5; for a number of retries, write max_retries=…"),
    ({"retry": [1, 10]}, ConfigurationError, "must be a Retry(…), not a list; write Retry(delays=[1, 10])"),
    ({"retry": Retry}, ConfigurationError, "retry must be an object, not the class Retry; write Retry(…)"),
    ({"retry": Retry(on=ValueError)}, ConfigurationError, "list of exception classes, not one; write (ValueError,)"),  # type: ignore[arg-type]
    ({"retry": Retry(on=())}, ConfigurationError, "set max_retries=0"),
    ({"retry": Retry(on=[ValueError(), int])}, ConfigurationError, "on must contain exception classes"),  # type: ignore[list-item]
    ({"retry": Retry(never_on=["ValueErorr"])}, ConfigurationError, "did you mean 'ValueError'?"),
    ({"retry": Retry(on=[OSError], never_on=[OSError])}, ConfigurationError, "on and never_on both have OSError"),
    ({"retry": Retry(delays=[])}, ConfigurationError, "delays must be a list of times"),
    ({"retry": Retry(delays=[1, -1])}, ConfigurationError, "delays has -1, which is not a time of 0 or more"),
    ({"retry": Retry(delays=[1], factor=3)}, ConfigurationError, "delays replaces factor"),
    ({"retry": Retry(base_seconds=-1)}, ConfigurationError, "base_seconds must be at least 0"),
    ({"retry": Retry(factor=0.5)}, ConfigurationError, "factor must be at least 1"),
    ({"retry": Retry(jitter=2)}, ConfigurationError, "jitter must be at least 0 and at most 1, not 2"),
    ({"retry": Retry(max_seconds=float("inf"))}, ConfigurationError, "max_seconds must be at least 0, not inf"),
    ({"breaker": True}, ConfigurationError, "must be a Breaker(…)"),
    ({"breaker": Breaker(failures=0)}, ConfigurationError, "failures must be at least 1"),
    ({"breaker": Breaker(window_seconds=0)}, ConfigurationError, "window_seconds must be above 0"),
    ({"breaker": Breaker(cool_down_seconds=-3)}, ConfigurationError, "cool_down_seconds must be above 0"),
    ({"breaker": Breaker(name="")}, ConfigurationError, "name must not be empty"),
    ({"execution_mode": TRIGGERED, "cron": "* * * * *"}, ScheduleError, "cron has no meaning for a triggered"),
    ({"execution_mode": TRIGGERED, "interval_seconds": 5}, ScheduleError, "interval_seconds has no meaning"),
    ({"execution_mode": CONTINUOUS, "cron": "* * * * *"}, ScheduleError, "cron has no meaning for a continuous"),
    ({"execution_mode": CONTINUOUS, "interval_seconds": -1}, ScheduleError, "interval_seconds must be at least 0"),
]


@pytest.mark.parametrize(("options", "kind", "says"), BAD, ids=[str(options) for options, _, _ in BAD])
def test_a_bad_value_is_refused_with_worker_and_option(
    options: dict[str, Any], kind: type[ConfigurationError], says: str
) -> None:
    error = refusal("w", options)
    assert type(error) is kind
    assert says in str(error)
    assert "worker 'w'" in str(error)
    assert any(option in str(error) for option in options)


def test_the_least_that_an_option_may_be_is_accepted() -> None:
    continuous = {"execution_mode": CONTINUOUS, "interval_seconds": 0}
    least = {"max_retries": 0, "max_consecutive_failures": 1, "max_running": 1, "keep_completed_seconds": 0}
    worker = worker_config("w", {**continuous, **least})
    assert {name: getattr(worker, name) for name in least} == least
    rules = {
        "retry": Retry(base_seconds=0, factor=1, max_seconds=0, jitter=0),
        "breaker": Breaker(failures=1, window_seconds=0.1, cool_down_seconds=0.1),
    }
    worker = worker_config("w", rules)
    assert (worker.retry, worker.breaker) == (rules["retry"], rules["breaker"])
    assert worker_config("w", {"retry": Retry(jitter=1)}).retry == Retry(jitter=1)
    pool = {
        "min_workers": 0,
        "max_workers": 1,
        "scale_up_threshold": 1,
        "scale_down_threshold": 0,
        "target_latency_seconds": 0.1,
        "scale_down_after_seconds": 0,
        "heartbeat_interval": 0.1,
        "cpu": 0.1,
        "memory": 1,
        "max_jobs_per_instance": 1,
        "max_memory_per_instance": 1,
        "priority_aging_seconds": 0,
    }
    config = pool_config("p", pool)
    assert {name: getattr(config, name) for name in pool} == pool


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\tb", "a\x00", "a@b", "x" * 201, 5, None])
def test_a_bad_name_is_refused(name: Any) -> None:
    for refused in (worker_config, pool_config):
        with pytest.raises(ConfigurationError, match="the name must"):
            refused(name, {})


@pytest.mark.parametrize("name", ["a", "fetch-data", "Straßen bau", "x" * 200, "日次"])
def test_a_good_name_is_kept(name: str) -> None:
    assert worker_config(name, {}).name == name
    assert pool_config(name, {}).name == name


def test_several_problems_are_reported_at_once() -> None:
    error = refusal("w", {"intervall": 5, "timeout_seconds": 0, "cron": "nope", "blocks": "b"})
    assert type(error) is ConfigurationError
    lines = str(error).splitlines()
    assert lines[0] == "worker 'w' has 4 problems:"
    assert [line.split()[1] for line in lines[1:]] == ["unknown", "timeout_seconds", "cron", "blocks"]


def test_several_problems_of_one_kind_keep_their_kind() -> None:
    assert type(refusal("w", {"timezone": "Mars", "cron": "x"})) is ScheduleError
    assert type(refusal("w", {"foo": 1, "bar": 2})) is UnknownOptionError


class TestModes:
    """Options that are not given depend on the mode; given ones win."""

    def test_a_continuous_worker_has_defaults_of_its_own(self) -> None:
        config = worker_config("w", {"execution_mode": "continuous"})
        assert (config.interval_seconds, config.timeout_seconds, config.keep_completed_seconds) == (0.0, None, 3600.0)

    def test_the_options_of_a_continuous_worker_win(self) -> None:
        said = {"interval_seconds": 0, "timeout_seconds": 5, "keep_completed_seconds": 7}
        config = worker_config("w", {"execution_mode": CONTINUOUS, **said})
        assert (config.interval_seconds, config.timeout_seconds, config.keep_completed_seconds) == (0.0, 5.0, 7.0)

    @pytest.mark.parametrize(
        ("options", "retries"),
        [({"retry": Retry(delays=[1.0] * 5)}, 5), ({"retry": Retry(delays=[1.0])}, 3)],
    )
    def test_delays_say_how_often_unless_max_retries_does(self, options: dict[str, Any], retries: int) -> None:
        assert worker_config("w", options).max_retries == retries
        assert worker_config("w", {**options, "max_retries": 2}).max_retries == 2

    def test_defaults_hold_where_options_are_silent(self) -> None:
        defaults = {"execution_mode": TRIGGERED, "max_consecutive_failures": None, "max_retries": 9}
        config = worker_config("w", {"max_retries": 1}, defaults=defaults)
        assert config.execution_mode is TRIGGERED
        assert (config.max_consecutive_failures, config.max_retries) == (None, 1)

    def test_the_mode_of_the_defaults_brings_its_defaults(self) -> None:
        assert worker_config("w", {}, defaults={"execution_mode": CONTINUOUS}).timeout_seconds is None

    def test_a_concurrency_key_is_for_triggered_workers(self) -> None:
        assert worker_config("w", {"execution_mode": TRIGGERED, "concurrency_key": "user"}).concurrency_key == "user"

    def test_no_cron_is_not_a_cron(self) -> None:
        assert worker_config("w", {"cron": None, "interval_seconds": 5}).interval_seconds == 5.0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (1.5, 1.5),
        ("90", 90),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1d 12h", 129_600),
        (timedelta(hours=1), 3600),
    ],
)
def test_times_are_kept_in_seconds(written: Any, seconds: float) -> None:
    config = worker_config("w", {"every": written, "timeout_seconds": written})
    assert (config.interval_seconds, config.timeout_seconds) == (seconds, seconds)
    assert worker_config("w", {"interval_seconds": written}).interval_seconds == seconds
    assert pool_config("p", {"job_timeout": written}).job_timeout == seconds
    retry = worker_config("w", {"retry": Retry(base_seconds=written)}).retry
    assert retry.base_seconds == seconds
    assert worker_config("w", {"retry": Retry(delays=[written, 0])}).retry.delays == (seconds, 0)


@pytest.mark.parametrize("written", ["", "h", "1h1", "30m1h", "1h1h", "-5s", "1 2", "5 parsecs", "1e3", b"5s", None])
def test_what_is_not_a_duration_is_none(written: Any) -> None:
    assert seconds_in(written) is None


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (_rule_of_one, "retry must be a function (attempt, error) → seconds or None"),
        (_async_rule, "retry must be a plain function"),
    ],
    ids=["one argument", "async"],
)
def test_a_function_that_cannot_be_a_policy_is_refused(rule: Any, says: str) -> None:
    assert says in str(refusal("w", {"retry": rule}))


def test_exceptions_of_a_policy_are_kept_as_names() -> None:
    retry = Retry(on=[OSError, HTTPError, "app.errors.Busy"], never_on={FileNotFoundError})  # type: ignore[arg-type]
    kept = worker_config("w", {"retry": retry}).retry
    assert kept.on == ("OSError", "urllib.error.HTTPError", "app.errors.Busy")
    assert kept.never_on == ("FileNotFoundError",)
    assert worker_config("w", {"retry": kept}).retry == kept


def test_type_checkers_know_every_option_and_no_other() -> None:
    workers = {*WorkerConfig.__struct_fields__} - {"name"}
    assert {*OTHER_NAMES.values()} <= workers
    assert get_type_hints(WorkerOptions).keys() == workers | OTHER_NAMES.keys()
    assert get_type_hints(TimingOptions).keys() == {*Timing.__struct_fields__, "every"}
    assert get_type_hints(NamedWorkerOptions).keys() == workers | OTHER_NAMES.keys() | {"name"}
    assert get_type_hints(PoolOptions).keys() == {*PoolConfig.__struct_fields__} - {"name"}


@pytest.mark.parametrize("kind", [Retry, Breaker])
def test_type_checkers_know_every_part_with_its_default(kind: type[Struct]) -> None:
    """People may write more than what is kept, so the constructor is declared beside the fields."""
    tree = ast.parse(dedent(inspect.getsource(kind)))
    (init,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    names = [argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs)]
    values = [ast.literal_eval(default) for default in (*init.args.defaults, *init.args.kw_defaults) if default]
    assert tuple(names) == kind.__struct_fields__
    assert kind(**dict(zip(names, values, strict=True))) == kind()


class TestPools:
    """Pools are checked like workers."""

    def test_the_defaults_are_the_documented_policy(self) -> None:
        assert pool_config("p", {}) == PoolConfig(name="p")

    def test_every_field_of_the_config_is_an_option(self) -> None:
        for name in PoolConfig.__struct_fields__:
            if name != "name":
                with pytest.raises(ConfigurationError) as raised:
                    pool_config("p", {name: object()})
                assert "unknown option" not in str(raised.value), name

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"max_worker": 3}, "unknown option 'max_worker'; did you mean 'max_workers'?"),
            ({"min_workers": 5, "max_workers": 2}, "min_workers (5) must not be above max_workers (2)"),
            ({"min_workers": 20}, "min_workers (20) must not be above max_workers (10 by default)"),
            ({"min_workers": -1}, "min_workers must be at least 0"),
            ({"max_workers": 0}, "max_workers must be at least 1"),
            ({"kind": "proces"}, "did you mean 'process'?"),
            ({"scale_up_threshold": 0}, "scale_up_threshold must be at least 1"),
            ({"scale_down_threshold": -1}, "scale_down_threshold must be at least 0"),
            ({"scale_up_threshold": 5, "scale_down_threshold": 5}, "must be below scale_up_threshold (5)"),
            ({"scale_down_threshold": 30}, "(30) must be below scale_up_threshold (20 by default)"),
            ({"target_latency_seconds": 0}, "target_latency_seconds must be above 0"),
            ({"scale_down_after_seconds": -1}, "scale_down_after_seconds must be at least 0"),
            ({"job_timeout": 0}, "job_timeout must be above 0"),
            ({"heartbeat_interval": 0}, "heartbeat_interval must be above 0"),
            ({"heartbeat_interval": "often"}, "heartbeat_interval must be a time"),
            ({"job_timeout": timedelta(0)}, "job_timeout must be above 0"),
            ({"cpu": 0}, "cpu must be above 0"),
            ({"cpu": -0.5}, "cpu must be above 0"),
            ({"labels": "gpu"}, "labels must be a list of labels, not one string; write ['gpu']"),
            ({"labels": {"gpu"}}, "labels must be a list of labels"),
            ({"labels": ["gpu", 3]}, "labels contains 3 (int): a label must be a string"),
            ({"labels": [" gpu"]}, "a label must not be empty, or start or end with white space"),
            ({"memory": "lots"}, '"512MB"'),
            ({"memory": 0}, "memory must be a number of bytes"),
            ({"memory": -5}, "memory must be a number of bytes"),
            ({"memory": True}, "memory must be a number of bytes"),
            ({"memory": 1.5}, "memory must be a number of bytes"),
            ({"processes": 0}, "processes must be at least 1"),
            ({"processes": 1.5}, "processes must be a whole number of at least 1"),
            ({"processes": "all"}, 'processes must be a whole number of at least 1, or "auto"'),
            ({"kind": "process", "processes": 2}, "each slot of a process pool is a process"),
            ({"procesess": 2}, "did you mean 'processes'?"),
            ({"max_jobs_per_instance": 0}, "max_jobs_per_instance must be at least 1"),
            ({"max_memory_per_instance": "1XB"}, "max_memory_per_instance must be"),
            ({"priority_aging_seconds": -1}, "priority_aging_seconds must be at least 0"),
        ],
        ids=str,
    )
    def test_a_bad_value_is_refused(self, options: dict[str, Any], says: str) -> None:
        with pytest.raises(ConfigurationError) as raised:
            pool_config("images", options)
        assert says in str(raised.value)
        assert "pool 'images'" in str(raised.value)

    @pytest.mark.parametrize(
        ("written", "size"),
        [(1, 1), ("512MB", 512_000_000), ("2GiB", 2 << 30), ("1.5 GiB", 3 << 29), ("64k", 64_000), ("10", 10)],
    )
    def test_memory_is_kept_in_bytes(self, written: Any, size: int) -> None:
        config = pool_config("p", {"memory": written, "max_memory_per_instance": written})
        assert (config.memory, config.max_memory_per_instance) == (size, size)

    def test_labels_are_kept_once_each(self) -> None:
        assert pool_config("p", {"labels": ["gpu", "ssd", "gpu"]}).labels == ("gpu", "ssd")

    def test_an_early_scale_up_needs_no_word_about_scaling_down(self) -> None:
        assert pool_config("p", {"scale_up_threshold": 1}).scale_down_threshold == 0
        assert pool_config("p", {"scale_up_threshold": 50}).scale_down_threshold == 2


class TestRates:
    """Rate limits are a count per time."""

    @pytest.mark.parametrize(
        ("text", "rate"),
        [
            ("100/m", RateLimit(100, 60)),
            ("10/s", RateLimit(10, 1)),
            ("5/h", RateLimit(5, 3600)),
            ("1000/d", RateLimit(1000, 86_400)),
            ("20/30s", RateLimit(20, 30)),
            ("3/0.5s", RateLimit(3, 0.5)),
            (" 1 / 2 m ", RateLimit(1, 120)),
        ],
    )
    def test_reads(self, text: str, rate: RateLimit) -> None:
        assert parse_rate(text) == rate

    @pytest.mark.parametrize(
        "text", ["", "100", "/m", "100/", "0/m", "1/0s", "-1/m", "1/x", "1/mm", "1.5/m", "\u0661/m", "1/m/m"]
    )
    def test_refuses(self, text: str) -> None:
        with pytest.raises(ConfigurationError, match="must be a count per time"):
            parse_rate(text)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(WorkerConfig.__struct_fields__[1:]) | st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.lists(st.text(max_size=3)),
        max_size=4,
    )
)
def test_every_option_is_kept_or_refused_with_a_configuration_error(options: dict[str, Any]) -> None:
    with suppress(ConfigurationError):
        config = worker_config("w", options)
        assert config.interval_seconds >= 0
        assert isinstance(config.demands, dict)
        assert isinstance(config.blocks, tuple)
