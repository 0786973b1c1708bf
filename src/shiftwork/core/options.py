"""The options of workers and pools, checked at registration.

All problems of a worker or a pool are reported at once, each with its remedy. References between workers are checked in
`graph`, once all workers are registered.
"""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from shiftwork.core.admission import RateLimit
from shiftwork.core.bounds import bounds_at
from shiftwork.core.durations import seconds_in
from shiftwork.core.model import JobPriority, PoolConfig, PoolDoc, WorkerConfig, WorkerExecutionMode
from shiftwork.core.option_hints import option_hint
from shiftwork.core.policies import Breaker, Retry
from shiftwork.core.retry_options import check_rule, contradiction, delays, error_names, retried_names
from shiftwork.core.schedule import cron_problem, five_fields, zone_problem
from shiftwork.core.timing import Timing
from shiftwork.errors import ConfigurationError, ScheduleError, UnknownOptionError, nearest

Check = Callable[[Any], Any]
"""Returns the value as it is kept, or raises a `ConfigurationError` that says what the value must be."""
Config = TypeVar("Config", bound=Struct)

_NAME_LIMIT: Final = 200
_RATE: Final = re.compile(r"\s*(\d+)\s*/\s*(\d+(?:\.\d+)?)?\s*([smhd])\s*", re.ASCII)
_RATE_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MEMORY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.ASCII | re.IGNORECASE)
_MEMORY_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
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
    return _made(WorkerConfig, f"worker {name!r}", {"name": name, **values}, problems)


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
    return _made(PoolConfig, f"pool {name!r}", {"name": name, **values}, problems)


def check_bounds(pool: PoolConfig, change: PoolDoc, now: float) -> None:
    """Raise a `ConfigurationError` with every problem of the bounds that a person sets at run time."""
    held = bounds_at(pool, None, now)
    given = {"min_workers": change.min_workers, "max_workers": change.max_workers}
    problems: list[ConfigurationError] = []
    values = _checked({name: n for name, n in given.items() if n is not None}, _POOL_CHECKS, problems)
    low, high = values.get("min_workers", held.low), values.get("max_workers", held.high)
    if not problems and low > high:
        shown = [f"{n}" if name in values else f"{n} {held.why}" for name, n in zip(given, (low, high), strict=True)]
        problems.append(
            ConfigurationError(f"min_workers ({shown[0]}) must not be above max_workers ({shown[1]}); set both")
        )
    _made(PoolConfig, f"pool {pool.name!r}", {**structs.asdict(pool), **values}, problems)


def timing(subject: str, options: Mapping[str, Any]) -> Timing:
    """Return when something runs, by `TimingOptions`: a cron expression or an interval, not both.

    Raises a `ConfigurationError` with every problem.
    """
    problems: list[ConfigurationError] = []
    given = {name: value for name, value in options.items() if value is not None}
    written = _written(given, problems)
    values = _checked({option: given[name] for option, name in written.items()}, _TIMING_CHECKS, problems, written)
    if {"cron", "interval_seconds"} <= written.keys():
        problems.append(ScheduleError(f"cron and {written['interval_seconds']} are both given; remove one"))
    elif "timezone" in written and "interval_seconds" in written:
        problems.append(ScheduleError("timezone is the zone of a cron expression; give cron, or remove timezone"))
    if not {"cron", "interval_seconds"} & written.keys():
        problems.append(ScheduleError('no time is given; add cron="0 3 * * *" or every="5m"'))
    return _made(Timing, subject, values, problems)


def check_schedule(name: Any, **given: Any) -> None:
    """Raise a `ConfigurationError` with every problem of a stored schedule's name and options."""
    problems = _name_problems(name)
    values = _checked(given, _SCHEDULE_CHECKS, problems)
    if values.get("catch_up") == "all" and values.get("overlap") == "skip":
        problems.append(
            ConfigurationError(
                'catch_up="all" runs several missed fire times at once, and overlap="skip" only one; '
                'use overlap="allow", or catch_up="latest"'
            )
        )
    if problems:
        _made(Timing, f"schedule {name!r}", {}, problems)


def parse_rate(text: str) -> RateLimit:
    """Return the rate limit that "100/m", "10/s", "5/h", "1000/d" or "20/30s" stands for."""
    found = _RATE.fullmatch(text)
    if found:
        count, length, unit = found.groups()
        seconds = float(length or 1) * _RATE_UNITS[unit]
        if int(count) > 0 and seconds > 0:
            return RateLimit(int(count), seconds)
    raise ConfigurationError(f'must be a count per time, such as "100/m", "10/s" or "20/30s", not {text!r}')


def parse_memory(value: Any) -> int:
    """Return how many bytes a number, "512MB" or "2GiB" stands for."""
    found = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if found:
        number, unit, binary = found.groups()
        size = int(float(number) * (1024 if binary else 1000) ** _MEMORY_POWERS[unit.upper()])
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        size = 0
    if size <= 0:
        raise ConfigurationError(
            f'must be a number of bytes, or a string such as "512MB" or "2GiB", not {_shown(value)}'
        )
    return size


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
            problems.append(type(error)(f"{written.get(option, option)} {error}"))
    return values


def _made(kind: type[Config], subject: str, values: dict[str, Any], problems: list[ConfigurationError]) -> Config:
    if not problems:
        return kind(**values)
    if len(problems) == 1:
        raise type(problems[0])(f"{subject}: {problems[0]}")
    kinds = {type(problem) for problem in problems}
    error = kinds.pop() if len(kinds) == 1 else ConfigurationError
    raise error("\n  - ".join([f"{subject} has {len(problems)} problems:", *map(str, problems)]))


def _name_problems(name: Any) -> list[ConfigurationError]:
    wrong = _wrong_name(name)
    return [ConfigurationError(f"the name {wrong}")] if wrong else []


def _wrong_name(name: Any) -> str | None:
    if not isinstance(name, str):
        return f"must be a string, not {_shown(name)}"
    if not name or name != name.strip():
        return "must not be empty, or start or end with white space"
    if len(name) > _NAME_LIMIT:
        return f"must have at most {_NAME_LIMIT} characters, not {len(name)}"
    if not name.isprintable():
        return f"must not contain control characters: {name!r}"
    if "@" in name:
        return f"must not contain '@', which separates the name from the time in job ids: {name!r}"
    return None


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


# ── single values ────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(value: Any) -> str:
    text = repr(value)
    shown = text if len(text) <= 60 else text[:59] + "…"  # noqa: PLR2004 - a line of an error message
    return f"{shown} ({type(value).__name__})"


def _number(
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    kind: type[ConfigurationError] = ConfigurationError,
) -> Check:
    bounds = (("above", above), ("at least", at_least), ("at most", at_most))
    wanted = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
    lower = above if at_least is None else at_least

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise kind(f"must be a number, {wanted}, not {_shown(value)}")
        too_low = lower is not None and (value < lower or (value == lower and above is not None))
        if not isfinite(value) or too_low or (at_most is not None and value > at_most):
            raise kind(f"must be {wanted}, not {value}")
        return float(value)

    return check


def _seconds(
    *, above: float | None = None, at_least: float | None = None, kind: type[ConfigurationError] = ConfigurationError
) -> Check:
    number = _number(above=above, at_least=at_least, kind=kind)

    def check(value: Any) -> float:
        seconds = seconds_in(value)
        if seconds is None:
            raise kind(f'must be a time, such as 90, "1h30m" or a timedelta, not {_shown(value)}')
        seconds_kept: float = number(seconds)
        return seconds_kept

    return check


def _whole(at_least: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigurationError(f"must be a whole number of at least {at_least}, not {_shown(value)}")
        if value < at_least:
            raise ConfigurationError(f"must be at least {at_least}, not {value}")
        return int(value)

    return check


def _processes(value: Any) -> int | str:
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        raise ConfigurationError(f'must be a whole number of at least 1, or "auto", not {_shown(value)}')
    return int(_whole(at_least=1)(value))


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _one_of(*known: str) -> Check:
    def check(value: Any) -> str:
        if value not in known:
            hint = f"; {nearest(value, known)}" if isinstance(value, str) else ""
            raise ConfigurationError(f"must be one of {', '.join(known)}, not {_shown(value)}{hint}")
        return str(value)

    return check


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"must be True or False, not {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"must be a non-empty string, not {_shown(value)}")
    return value


def _name(value: Any) -> str:
    wrong = _wrong_name(value)
    if wrong:
        raise ConfigurationError(wrong)
    return str(value)


def _mode(value: Any) -> WorkerExecutionMode:
    return WorkerExecutionMode(_one_of(*(mode.value for mode in WorkerExecutionMode))(value))


def _priority(value: Any) -> JobPriority:
    if isinstance(value, bool) or not isinstance(value, int) or value not in set(JobPriority):
        name = value.strip().upper() if isinstance(value, str) else ""
        remedy = f"; write JobPriority.{name}" if name in JobPriority.__members__ else ""
        raise ConfigurationError(f"must be a JobPriority or a whole number from 0 to 3, not {_shown(value)}{remedy}")
    return JobPriority(value)


def _cron(value: Any) -> str:
    if not isinstance(value, str):
        raise ScheduleError(f"must be a string, not {_shown(value)}")
    expression = five_fields(value)
    problem = cron_problem(expression)
    if problem:
        raise ScheduleError(problem)
    return expression


def _timezone(value: Any) -> str:
    if not isinstance(value, str):
        key = getattr(value, "key", None)
        remedy = f"; write {key!r}" if isinstance(key, str) else ""
        raise ScheduleError(f"must be the name of a time zone, not {_shown(value)}{remedy}")
    problem = zone_problem(value)
    if problem:
        raise ScheduleError(problem)
    return value


def _dependencies(value: Any) -> list[str] | dict[str, str]:
    if not isinstance(value, Mapping):
        return list(_names(value))
    for name, demand in zip(_names(list(value)), value.values(), strict=True):
        if demand not in {"done", "fresh"}:
            raise ConfigurationError(f'must be "done" or "fresh" for {name!r}, not {_shown(demand)}')
    return dict(value)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of worker names, not one string; write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"must be a list of worker names, not {_shown(value)}")
    for name in value:
        if not isinstance(name, str) or not name:
            meant = getattr(name, "name", None)  # a Worker
            remedy = f"; write {meant!r}" if isinstance(meant, str) else ""
            raise ConfigurationError(f"must contain worker names, not {_shown(name)}{remedy}")
    return tuple(dict.fromkeys(value))


def _aliases(value: Any) -> tuple[str, ...]:
    names = _names(value)
    for name in names:
        wrong = _wrong_name(name)
        if wrong:
            raise ConfigurationError(f"contains a name that {wrong}")
    return names


def _labels(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of labels, not one string; write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"must be a list of labels, not {_shown(value)}")
    return tuple(dict.fromkeys(map(_label, value)))


def _label(value: Any) -> str:
    try:
        return _name(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"contains {_shown(value)}: a label {error}") from None


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
        raise ConfigurationError(f"must be a {kind.__name__}(…) with any of {fields}, not {_shown(value)}")
    problems: list[ConfigurationError] = []
    parts = _checked({field: getattr(value, field) for field in kind.__struct_fields__}, checks, problems)
    if problems:
        raise ConfigurationError("is invalid: " + "; ".join(map(str, problems)))
    return kind(**parts)


def _clock_bounds(value: Any) -> dict[str, tuple[int, int]]:
    if not isinstance(value, Mapping):
        example = '{"0 10 * * *": (10, 25), "0 14 * * *": (2, 25)}'
        raise ConfigurationError(f"must be a dict of cron expressions, such as {example}, not {_shown(value)}")
    found: dict[str, tuple[int, int]] = {}
    for cron, pair in value.items():
        if not isinstance(cron, str):
            raise ScheduleError(f"must have cron expressions as keys, not {_shown(cron)}")
        expression = _cron(cron)
        if expression in found:
            raise ScheduleError(f"has {expression!r} twice; remove one")
        found[expression] = _pair(pair, f"for {cron!r}")
    return found


def _pair(value: Any, subject: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise ConfigurationError(f"{subject} must be a pair (minimum, maximum), such as (10, 25), not {_shown(value)}")
    numbers = []
    for word, n, check in zip(("minimum", "maximum"), value, (_whole(at_least=0), _whole(at_least=1)), strict=True):
        try:
            numbers.append(check(n))
        except ConfigurationError as error:
            raise ConfigurationError(f"{subject}: the {word} {error}") from None
    low, high = numbers
    if low > high:
        raise ConfigurationError(f"{subject}: the minimum {low} must not be above the maximum {high}")
    return low, high


def _rate(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f'must be a string such as "100/m", not {_shown(value)}')
    parse_rate(value)
    return value


_RETRY_CHECKS: Final[Mapping[str, Check]] = {
    "base_seconds": _seconds(at_least=0),
    "factor": _number(at_least=1),
    "max_seconds": _seconds(at_least=0),
    "jitter": _number(at_least=0, at_most=1),
    "delays": delays,
    "on": retried_names,
    "never_on": error_names,
}
_BREAKER_CHECKS: Final[Mapping[str, Check]] = {
    "failures": _whole(at_least=1),
    "window_seconds": _seconds(above=0),
    "cool_down_seconds": _seconds(above=0),
    "name": _or_none(_name),
}
_WORKER_CHECKS: Final[Mapping[str, Check]] = {
    "execution_mode": _mode,
    "interval_seconds": _seconds(at_least=0, kind=ScheduleError),
    "cron": _or_none(_cron),
    "timezone": _timezone,
    "timeout_seconds": _or_none(_seconds(above=0)),
    "max_retries": _whole(at_least=0),
    "retry": _retry,
    "priority": _priority,
    "max_consecutive_failures": _or_none(_whole(at_least=1)),
    "depends_on": _dependencies,
    "blocks": _names,
    "aliases": _aliases,
    "pool": _name,
    "breaker": _or_none(_breaker),
    "rate_limit": _or_none(_rate),
    "max_running": _or_none(_whole(at_least=1)),
    "concurrency_key": _or_none(_text),
    "overlap": _one_of("skip", "queue", "allow"),
    "catch_up": _one_of("latest", "none", "all"),
    "keep_completed_seconds": _seconds(at_least=0),
    "enabled": _switch,
}
_TIMING_CHECKS: Final[Mapping[str, Check]] = {
    "cron": _cron,
    "interval_seconds": _seconds(at_least=0, kind=ScheduleError),
    "timezone": _timezone,
}
_SCHEDULE_CHECKS: Final[Mapping[str, Check]] = {
    "catch_up": _one_of("latest", "none", "all"),
    "overlap": _one_of("skip", "allow"),
}
_POOL_CHECKS: Final[Mapping[str, Check]] = {
    "kind": _one_of("async", "thread", "process"),
    "min_workers": _whole(at_least=0),
    "max_workers": _whole(at_least=1),
    "scale_up_threshold": _whole(at_least=1),
    "scale_down_threshold": _whole(at_least=0),
    "target_latency_seconds": _or_none(_seconds(above=0)),
    "scale_down_after_seconds": _seconds(at_least=0),
    "job_timeout": _or_none(_seconds(above=0)),
    "heartbeat_interval": _seconds(above=0),
    "cpu": _or_none(_number(above=0)),
    "memory": _or_none(parse_memory),
    "processes": _processes,
    "max_jobs_per_instance": _or_none(_whole(at_least=1)),
    "max_memory_per_instance": _or_none(parse_memory),
    "priority_aging_seconds": _seconds(at_least=0),
    "labels": _labels,
    "bounds": _clock_bounds,
    "timezone": _timezone,
    "look_ahead": _switch,
}
