"""The options of workers and pools, checked at registration.

All problems of a worker or a pool are reported at once, each with its remedy. References between workers are checked in
`graph`, once all workers are registered.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.option_structs import option_hint
from shiftwork.core.model.workers import Breaker, PoolConfig, Retry, WorkerConfig, WorkerExecutionMode
from shiftwork.core.options import value_checks as valid
from shiftwork.core.options.retry_rules import check_rule, contradiction, delays, error_names, retried_names
from shiftwork.core.options.value_checks import Check
from shiftwork.core.scaling.bounds import bounds_at
from shiftwork.core.schedules.timing import Timing
from shiftwork.errors import ConfigurationError, ScheduleError, UnknownOptionError
from shiftwork.sentences import error_text, sentence, series

Config = TypeVar("Config", bound=Struct)

OTHER_NAMES: Final = {"every": "interval_seconds", "is_enabled": "enabled"}
"""Other names of a worker's options: a readable one, and the one that the pattern uses."""
_CONTINUOUS_DEFAULTS: Final = {"interval_seconds": 0.0, "timeout_seconds": None, "keep_completed_seconds": 3600.0}


def worker_config(name: str, options: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None) -> WorkerConfig:
    """Return a worker's configuration. `defaults` hold for the options that are not given.

    Raises a `ConfigurationError` with every problem of this worker.
    """
    problems = _name_problems(name)
    written = _written(options, problems)
    given = {option: options[name] for option, name in written.items()}
    values = _checked({**(defaults or {}), **given}, _WORKER_CHECKS, problems, written)
    mode = values.get("execution_mode", WorkerExecutionMode.SCHEDULED)
    if mode is WorkerExecutionMode.CONTINUOUS:
        values = {**_CONTINUOUS_DEFAULTS, **values}
    if isinstance(retry := values.get("retry"), Retry) and retry.delays is not None:
        values.setdefault("max_retries", max(WorkerConfig(name=name).max_retries, len(retry.delays)))
    problems += _schedule_problems(mode, values, given, written)
    if mode is not WorkerExecutionMode.TRIGGERED and values.get("concurrency_key") is not None:
        problems.append(
            ConfigurationError("concurrency_key is only for triggered workers: other workers have no payload")
        )
    problems += [
        ConfigurationError(f"{option} names the worker itself; remove it")
        for option in ("depends_on", "blocks", "aliases")
        if name in values.get(option, ())
    ]
    return _made(WorkerConfig, sentence("worker {worker}", worker=f"{name!r}"), {"name": name, **values}, problems)


def pool_config(name: str, options: Mapping[str, Any]) -> PoolConfig:
    """Return a pool's configuration. Raises a `ConfigurationError` with every problem of this pool."""
    problems = _name_problems(name)
    values = _checked(options, _POOL_CHECKS, problems)
    if "scale_up_threshold" in values:
        # A low scale_up_threshold must not conflict with a default that the user never wrote.
        values.setdefault("scale_down_threshold", min(2, values["scale_up_threshold"] - 1))
    if "timezone" in values and not options.get("bounds"):
        problems.append(ConfigurationError("timezone is the zone of bounds by the clock; add bounds, or remove it"))
    if values.get("kind") == "process" and "processes" in values:
        problems.append(
            ConfigurationError("processes is for kind 'async' and 'thread': each slot of a process pool is a process")
        )
    problems += _ordered(values, "min_workers", "max_workers", strictly=False)
    problems += _ordered(values, "scale_down_threshold", "scale_up_threshold", strictly=True)
    return _made(PoolConfig, sentence("pool {pool}", pool=f"{name!r}"), {"name": name, **values}, problems)


def check_bounds(pool: PoolConfig, change: PoolDoc, now: float) -> None:
    """Raise a `ConfigurationError` with every problem of the bounds that a person sets at run time."""
    held = bounds_at(pool, None, now)
    given = {"min_workers": change.min_workers, "max_workers": change.max_workers}
    problems: list[ConfigurationError] = []
    values = _checked({name: n for name, n in given.items() if n is not None}, _POOL_CHECKS, problems)
    low, high = values.get("min_workers", held.low), values.get("max_workers", held.high)
    if not problems and low > high:
        shown = [
            f"{n}" if name in values else sentence("{n} {why}", n=n, why=held.why)
            for name, n in zip(given, (low, high), strict=True)
        ]
        problems.append(
            ConfigurationError(
                sentence(
                    "min_workers ({low}) must not be above max_workers ({high}); set both", low=shown[0], high=shown[1]
                )
            )
        )
    _made(PoolConfig, sentence("pool {pool}", pool=f"{pool.name!r}"), {**structs.asdict(pool), **values}, problems)


def timing(subject: str, options: Mapping[str, Any]) -> Timing:
    """Return when something runs, by `TimingOptions`: a cron expression or an interval, not both.

    Raises a `ConfigurationError` with every problem.
    """
    problems: list[ConfigurationError] = []
    given = {name: value for name, value in options.items() if value is not None}
    written = _written(given, problems)
    values = _checked({option: given[name] for option, name in written.items()}, _TIMING_CHECKS, problems, written)
    if {"cron", "interval_seconds"} <= written.keys():
        problems.append(
            ScheduleError(sentence("cron and {option} are both given; remove one", option=written["interval_seconds"]))
        )
    elif "timezone" in written and "interval_seconds" in written:
        problems.append(
            ScheduleError(sentence("timezone is the zone of a cron expression; give cron, or remove timezone"))
        )
    if not {"cron", "interval_seconds"} & written.keys():
        problems.append(ScheduleError(sentence('no time is given; add cron="0 3 * * *" or every="5m"')))
    return _made(Timing, subject, values, problems)


def check_schedule(name: Any, **given: Any) -> None:
    """Raise a `ConfigurationError` with every problem of a stored schedule's name and options."""
    problems = _name_problems(name)
    values = _checked(given, _SCHEDULE_CHECKS, problems)
    if values.get("catch_up") == "all" and values.get("overlap") == "skip":
        problems.append(
            ConfigurationError(
                sentence(
                    'catch_up="all" runs several missed fire times at once, and overlap="skip" only one; use '
                    'overlap="allow", or catch_up="latest"'
                )
            )
        )
    if problems:
        _made(Timing, sentence("schedule {name}", name=f"{name!r}"), {}, problems)


# ── gathering ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(options: Mapping[str, Any], problems: list[ConfigurationError]) -> dict[str, str]:
    """Return by which name each option was written. An option that was written twice is added to the problems."""
    written: dict[str, str] = {}
    for name in options:
        option = OTHER_NAMES.get(name, name)
        if option in written:
            other = name if name != option else written[option]
            problems.append(ConfigurationError(f"{other} is another name for {option}; remove one"))
        written[option] = name
    return written


def _checked(
    given: Mapping[str, Any],
    checks: Mapping[str, Check],
    problems: list[ConfigurationError],
    written: Mapping[str, str] = {},
) -> dict[str, Any]:
    """Return the valid options as they are kept; the others are added to the problems, as they were written."""
    values: dict[str, Any] = {}
    for option, value in given.items():
        check = checks.get(option)
        if check is None:
            names = [*checks, *(other for other, meant in OTHER_NAMES.items() if meant in checks)]
            problems.append(UnknownOptionError(f"unknown option {option!r}; {option_hint(str(option), value, names)}"))
            continue
        try:
            values[option] = check(value)
        except ConfigurationError as error:
            said = sentence("{option} {problem}", option=written.get(option, option), problem=error_text(error))
            problems.append(type(error)(said))
    return values


def _made(kind: type[Config], subject: str, values: dict[str, Any], problems: list[ConfigurationError]) -> Config:
    if not problems:
        return kind(**values)
    if len(problems) == 1:
        raise type(problems[0])(sentence("{subject}: {problem}", subject=subject, problem=error_text(problems[0])))
    kinds = {type(problem) for problem in problems}
    error = kinds.pop() if len(kinds) == 1 else ConfigurationError
    raise error(
        series(
            "\n  - ",
            [sentence("{subject} has {n} problems:", subject=subject, n=len(problems)), *map(error_text, problems)],
        )
    )


def _name_problems(name: Any) -> list[ConfigurationError]:
    wrong = valid.wrong_name(name)
    return [ConfigurationError(sentence("the name {problem}", problem=wrong))] if wrong else []


def _schedule_problems(
    mode: WorkerExecutionMode, values: Mapping[str, Any], options: Mapping[str, Any], written: Mapping[str, str]
) -> list[ConfigurationError]:
    every = written.get("interval_seconds", "interval_seconds")
    given = [written[option] for option in ("cron", "interval_seconds") if options.get(option) is not None]
    if mode is WorkerExecutionMode.TRIGGERED:
        return [ScheduleError(f"{option} has no meaning for a triggered worker; remove it") for option in given]
    problems: list[ConfigurationError] = []
    if mode is WorkerExecutionMode.CONTINUOUS and "cron" in given:
        problems.append(ScheduleError("cron has no meaning for a continuous worker; make it a scheduled one"))
    elif len(given) > 1:
        problems.append(ScheduleError(f"cron and {every} are both given; remove one"))
    if mode is WorkerExecutionMode.SCHEDULED and values.get("interval_seconds") == 0:
        problems.append(ScheduleError(f"{every} must be above 0, not 0; for a loop, use a continuous worker"))
    return problems


def _ordered(values: Mapping[str, Any], low: str, high: str, *, strictly: bool) -> list[ConfigurationError]:
    pool = PoolConfig(name="defaults")
    lower, upper = (values.get(option, getattr(pool, option)) for option in (low, high))
    if lower < upper or (lower == upper and not strictly):
        return []
    shown = [
        f"{value}" if option in values else f"{value} by default" for option, value in ((low, lower), (high, upper))
    ]
    relation = "be below" if strictly else "not be above"
    return [ConfigurationError(f"{low} ({shown[0]}) must {relation} {high} ({shown[1]})")]


# ── policies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _retry(value: Any) -> Retry:
    if callable(value):  # `retry_options.rule_in` finds the function; timeouts follow the default policy
        check_rule(value)
        return Retry()
    if isinstance(value, list | tuple):
        raise ConfigurationError(f"must be a Retry(…), not a list; write Retry(delays={value!r})")
    if isinstance(value, int):
        either = "for a number of retries, write max_retries=…; for a wait, Retry(base_seconds=…)"
        raise ConfigurationError(f"must be a Retry(…), not {value!r}; {either}")
    retry = _parts(value, Retry, _RETRY_CHECKS)
    problem = contradiction(retry)
    if problem is not None:
        raise ConfigurationError(f"is invalid: {problem}")
    return retry


def _breaker(value: Any) -> Breaker:
    return _parts(value, Breaker, _BREAKER_CHECKS)


def _parts(value: Any, kind: type[Config], checks: Mapping[str, Check]) -> Config:
    """Return a struct of options with each of its fields checked."""
    if not isinstance(value, kind):
        fields = ", ".join(kind.__struct_fields__)
        raise ConfigurationError(f"must be a {kind.__name__}(…) with any of {fields}, not {valid.shown(value)}")
    problems: list[ConfigurationError] = []
    parts = _checked({field: getattr(value, field) for field in kind.__struct_fields__}, checks, problems)
    if problems:
        raise ConfigurationError("is invalid: " + "; ".join(map(str, problems)))
    return kind(**parts)


_RETRY_CHECKS: Final[Mapping[str, Check]] = {
    "base_seconds": valid.seconds(at_least=0),
    "factor": valid.number(at_least=1),
    "max_seconds": valid.seconds(at_least=0),
    "jitter": valid.number(at_least=0, at_most=1),
    "delays": delays,
    "on": retried_names,
    "never_on": error_names,
}
_BREAKER_CHECKS: Final[Mapping[str, Check]] = {
    "failures": valid.whole(at_least=1),
    "window_seconds": valid.seconds(above=0),
    "cool_down_seconds": valid.seconds(above=0),
    "name": valid.or_none(valid.name),
}
_WORKER_CHECKS: Final[Mapping[str, Check]] = {
    "execution_mode": valid.mode,
    "interval_seconds": valid.seconds(at_least=0, kind=ScheduleError),
    "cron": valid.or_none(valid.cron),
    "timezone": valid.timezone,
    "timeout_seconds": valid.or_none(valid.timeout),
    "max_retries": valid.whole(at_least=0),
    "retry": _retry,
    "priority": valid.priority,
    "max_consecutive_failures": valid.or_none(valid.whole(at_least=1)),
    "depends_on": valid.dependencies,
    "blocks": valid.names,
    "aliases": valid.aliases,
    "pool": valid.name,
    "breaker": valid.or_none(_breaker),
    "rate_limit": valid.or_none(valid.rate),
    "max_running": valid.or_none(valid.whole(at_least=1)),
    "concurrency_key": valid.or_none(valid.text),
    "overlap": valid.one_of("skip", "queue", "allow"),
    "catch_up": valid.one_of("latest", "none", "all"),
    "keep_completed_seconds": valid.seconds(at_least=0),
    "enabled": valid.switch,
}
_TIMING_CHECKS: Final[Mapping[str, Check]] = {
    "cron": valid.cron,
    "interval_seconds": valid.seconds(at_least=0, kind=ScheduleError),
    "timezone": valid.timezone,
}
_SCHEDULE_CHECKS: Final[Mapping[str, Check]] = {
    "catch_up": valid.one_of("latest", "none", "all"),
    "overlap": valid.one_of("skip", "allow"),
}
_POOL_CHECKS: Final[Mapping[str, Check]] = {
    "kind": valid.one_of("async", "thread", "process"),
    "min_workers": valid.whole(at_least=0),
    "max_workers": valid.whole(at_least=1),
    "scale_up_threshold": valid.whole(at_least=1),
    "scale_down_threshold": valid.whole(at_least=0),
    "target_latency_seconds": valid.or_none(valid.seconds(above=0)),
    "scale_down_after_seconds": valid.seconds(at_least=0),
    "job_timeout": valid.or_none(valid.timeout),
    "heartbeat_interval": valid.seconds(above=0),
    "cpu": valid.or_none(valid.number(above=0)),
    "memory": valid.or_none(valid.parse_memory),
    "processes": valid.processes,
    "max_jobs_per_instance": valid.or_none(valid.whole(at_least=1)),
    "max_memory_per_instance": valid.or_none(valid.parse_memory),
    "priority_aging_seconds": valid.seconds(at_least=0),
    "labels": valid.labels,
    "bounds": valid.clock_bounds,
    "timezone": valid.timezone,
    "look_ahead": valid.switch,
}
