"""The value of one option: each check returns it as it is kept, or raises an error that says what it must be.

The message continues the name of the option: "max_retries must be at least 0, not -1".
"""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.core.schedules.cron import cron_problem, five_fields
from shiftwork.core.schedules.timing import zone_problem
from shiftwork.core.words import control_character, seconds_in
from shiftwork.core.workers.admission import RateLimit
from shiftwork.errors import ConfigurationError, ScheduleError, nearest
from shiftwork.sentences import sentence, series

Check = Callable[[Any], Any]
"""Returns the value as it is kept, or raises a `ConfigurationError` that says what the value must be."""

SHORTEST_TIMEOUT: Final = 0.1
"""The shortest time limit of a run. Less than a run may need to begin in its process would end the process, which it
shares with others, and never only the function."""
_NAME_LIMIT: Final = 200
_RATE: Final = re.compile(r"\s*(\d+)\s*/\s*(\d+(?:\.\d+)?)?\s*([smhd])\s*", re.ASCII)
_RATE_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MEMORY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.ASCII | re.IGNORECASE)
_MEMORY_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


# ── any value ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(value: Any) -> str:
    """Return a value as a message shows it, with its type."""
    whole_text = repr(value)
    part = whole_text if len(whole_text) <= 60 else whole_text[:59] + "…"  # noqa: PLR2004 - a line of an error message
    return f"{part} ({type(value).__name__})"


def or_none(check: Check) -> Check:
    """Return a check that lets None pass, and applies another check to anything else."""
    return lambda value: None if value is None else check(value)


def one_of(*known: str) -> Check:
    """Return a check for one of these words."""

    def check(value: Any) -> str:
        if value not in known:
            message = sentence("must be one of {names}, not {what}", names=", ".join(known), what=shown(value))
            if isinstance(value, str):
                message = series("; ", [message, nearest(value, known)])
            raise ConfigurationError(message)
        return str(value)

    return check


def switch(value: Any) -> bool:
    """Check a True or False."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"must be True or False, not {shown(value)}")
    return value


def text(value: Any) -> str:
    """Check a string that must not be empty."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"must be a non-empty string, not {shown(value)}")
    return value


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def number(
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    kind: type[ConfigurationError] = ConfigurationError,
) -> Check:
    """Return a check for a number within these bounds."""
    bounds = (
        *([] if above is None else [sentence("above {n}", n=f"{above:g}")]),
        *([] if at_least is None else [sentence("at least {n}", n=f"{at_least:g}")]),
        *([] if at_most is None else [sentence("at most {n}", n=f"{at_most:g}")]),
    )
    wanted = series(" and ", bounds)
    lower = above if at_least is None else at_least

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise kind(sentence("must be a number, {bound}, not {what}", bound=wanted, what=shown(value)))
        too_low = lower is not None and (value < lower or (value == lower and above is not None))
        if not isfinite(value) or too_low or (at_most is not None and value > at_most):
            raise kind(sentence("must be {bound}, not {what}", bound=wanted, what=value))
        return float(value)

    return check


def whole(at_least: int) -> Check:
    """Return a check for a whole number."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigurationError(
                sentence("must be a whole number of at least {n}, not {what}", n=at_least, what=shown(value))
            )
        if value < at_least:
            raise ConfigurationError(
                sentence("must be {bound}, not {what}", bound=sentence("at least {n}", n=at_least), what=value)
            )
        return int(value)

    return check


def seconds(
    *, above: float | None = None, at_least: float | None = None, kind: type[ConfigurationError] = ConfigurationError
) -> Check:
    """Return a check for a duration within these bounds, which is kept in seconds."""
    checked_number = number(above=above, at_least=at_least, kind=kind)

    def check(value: Any) -> float:
        given = seconds_in(value)
        if given is None:
            raise kind(f'must be a time, such as 90, "1h30m" or a timedelta, not {shown(value)}')
        seconds_kept: float = checked_number(given)
        return seconds_kept

    return check


def timeout(value: Any) -> float:
    """Check the time limit of a run."""
    limit: float = seconds(above=0)(value)
    return long_enough(limit)


def long_enough(limit: float) -> float:
    """Return the time limit of a run, unless no run could end within it."""
    if limit < SHORTEST_TIMEOUT:
        raise ConfigurationError(
            sentence(
                "must be at least {n} seconds, not {n2}: a run needs that long to begin",
                n=f"{SHORTEST_TIMEOUT:g}",
                n2=f"{limit:g}",
            )
        )
    return limit


def processes(value: Any) -> int | str:
    """Check a number of processes, or "auto"."""
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        raise ConfigurationError(f'must be a whole number of at least 1, or "auto", not {shown(value)}')
    return int(whole(at_least=1)(value))


def parse_memory(value: Any) -> int:
    """Return how many bytes a number, "512MB" or "2GiB" stands for."""
    found = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if found:
        number, unit, binary = found.groups()
        bytes_ = float(number) * (1024 if binary else 1000) ** _MEMORY_POWERS[unit.upper()]
        size = int(bytes_) if isfinite(bytes_) else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        size = 0
    if size <= 0:
        raise ConfigurationError(
            f'must be a number of bytes, or a string such as "512MB" or "2GiB", not {shown(value)}'
        )
    return size


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def name(value: Any) -> str:
    """Check the name of a worker, a pool or a breaker."""
    wrong = wrong_name(value)
    if wrong:
        raise ConfigurationError(wrong)
    return str(value)


def wrong_name(name: Any) -> str | None:
    """Return what is wrong with a name; None if it is valid."""
    if not isinstance(name, str):
        return f"must be a string, not {shown(name)}"
    if not name or name != name.strip():
        return sentence("must not be empty, or start or end with white space")
    if len(name) > _NAME_LIMIT:
        return sentence("must have at most {n} characters, not {n2}", n=_NAME_LIMIT, n2=len(name))
    if not name.isprintable():
        return sentence("must not contain control characters: {what}", what=f"{name!r}")
    if "@" in name:
        return sentence(
            "must not contain '@', which separates the name from the time in job ids: {what}", what=f"{name!r}"
        )
    return None


def names(value: Any) -> tuple[str, ...]:
    """Check a list of workers, and keep each once."""
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of worker names, not one string; write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"must be a list of worker names, not {shown(value)}")
    for name in value:
        if not isinstance(name, str) or not name:
            meant = getattr(name, "name", None)  # a Worker
            remedy = f"; write {meant!r}" if isinstance(meant, str) else ""
            raise ConfigurationError(f"must contain worker names, not {shown(name)}{remedy}")
    return tuple(dict.fromkeys(value))


def aliases(value: Any) -> tuple[str, ...]:
    """Check the former names of a worker."""
    listed = names(value)
    for name in listed:
        wrong = wrong_name(name)
        if wrong:
            raise ConfigurationError(f"contains a name that {wrong}")
    return listed


def labels(value: Any) -> tuple[str, ...]:
    """Check the labels of nodes, and keep each once."""
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of labels, not one string; write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"must be a list of labels, not {shown(value)}")
    return tuple(dict.fromkeys(map(_label, value)))


def _label(value: Any) -> str:
    try:
        return name(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"contains {shown(value)}: a label {error}") from None


# ── a worker's options ────────────────────────────────────────────────────────────────────────────────────────────────


def mode(value: Any) -> WorkerExecutionMode:
    """Check an execution mode, or its name."""
    return WorkerExecutionMode(one_of(*(mode.value for mode in WorkerExecutionMode))(value))


def priority(value: Any) -> JobPriority:
    """Check a priority, or its number."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in set(JobPriority):
        name = value.strip().upper() if isinstance(value, str) else ""
        remedy = f"; write JobPriority.{name}" if name in JobPriority.__members__ else ""
        raise ConfigurationError(f"must be a JobPriority or a whole number from 0 to 3, not {shown(value)}{remedy}")
    return JobPriority(value)


def dependencies(value: Any) -> list[str] | dict[str, str]:
    """Check the workers to depend on: a list of names, or a dict with what is demanded of each."""
    if not isinstance(value, Mapping):
        return list(names(value))
    for name, demand in zip(names(list(value)), value.values(), strict=True):
        if demand not in {"done", "fresh"}:
            raise ConfigurationError(f'must be "done" or "fresh" for {name!r}, not {shown(demand)}')
    return dict(value)


def rate(value: Any) -> str:
    """Check a rate limit, which is kept as it is written."""
    if not isinstance(value, str):
        raise ConfigurationError(f'must be a string such as "100/m", not {shown(value)}')
    parse_rate(value)
    return value


def parse_rate(text: str) -> RateLimit:
    """Return the rate limit that "100/m", "10/s", "5/h", "1000/d" or "20/30s" stands for."""
    found = _RATE.fullmatch(text)
    if found:
        count, length, unit = found.groups()
        seconds = float(length or 1) * _RATE_UNITS[unit]
        if int(count) > 0 and seconds > 0:
            return RateLimit(int(count), seconds)
    raise ConfigurationError(
        sentence('must be a count per time, such as "100/m", "10/s" or "20/30s", not {what}', what=f"{text!r}")
    )


# ── times, and bounds by the clock ────────────────────────────────────────────────────────────────────────────────────


def cron(value: Any) -> str:
    """Check a cron expression, which is kept in five fields."""
    if not isinstance(value, str):
        raise ScheduleError(f"must be a string, not {shown(value)}")
    expression = five_fields(value)
    problem = cron_problem(expression)
    if problem:
        raise ScheduleError(problem)
    return expression


def timezone(value: Any) -> str:
    """Check the name of a time zone."""
    if not isinstance(value, str):
        key = getattr(value, "key", None)
        remedy = f"; write {key!r}" if isinstance(key, str) else ""
        raise ScheduleError(f"must be the name of a time zone, not {shown(value)}{remedy}")
    problem = zone_problem(value)
    if problem:
        raise ScheduleError(problem)
    return value


def clock_bounds(value: Any) -> dict[str, tuple[int, int]]:
    """Check bounds by the clock: a minimum and a maximum for each cron expression."""
    if not isinstance(value, Mapping):
        example = '{"0 10 * * *": (10, 25), "0 14 * * *": (2, 25)}'
        raise ConfigurationError(f"must be a dict of cron expressions, such as {example}, not {shown(value)}")
    found: dict[str, tuple[int, int]] = {}
    for written, pair in value.items():
        if not isinstance(written, str):
            raise ScheduleError(f"must have cron expressions as keys, not {shown(written)}")
        expression = cron(written)
        if expression in found:
            raise ScheduleError(f"has {expression!r} twice; remove one")
        found[expression] = _pair(pair, f"for {written!r}")
    return found


def _pair(value: Any, subject: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise ConfigurationError(f"{subject} must be a pair (minimum, maximum), such as (10, 25), not {shown(value)}")
    numbers = []
    for word, n, check in zip(("minimum", "maximum"), value, (whole(at_least=0), whole(at_least=1)), strict=True):
        try:
            numbers.append(check(n))
        except ConfigurationError as error:
            raise ConfigurationError(f"{subject}: the {word} {error}") from None
    low, high = numbers
    if low > high:
        raise ConfigurationError(f"{subject}: the minimum {low} must not be above the maximum {high}")
    return low, high


MOST_TAGS: Final = 20
LONGEST_TAG: Final = 100
TAG_PATTERN: Final = r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"
"""The form of a tag: no control characters, and no space at either end."""

_tag = re.compile(TAG_PATTERN)


def tags_in(value: Any) -> tuple[str, ...]:
    """Return the tags that people have written, each once. The `ConfigurationError` does not name the option."""
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of tags, not one string; write tags=[{value!r}]")
    if not isinstance(value, list | tuple | set | frozenset):
        raise ConfigurationError(f"must be a list of strings, not {value!r}")
    for tag in value:
        _check(tag)
    tags = tuple(dict.fromkeys(sorted(value) if isinstance(value, set | frozenset) else value))
    if len(tags) > MOST_TAGS:
        raise ConfigurationError(f"must have at most {MOST_TAGS} tags, not {len(tags)}")
    return tags


def _check(tag: Any) -> None:
    if not isinstance(tag, str):
        raise ConfigurationError(f"must be a list of strings, not of {type(tag).__name__}: {tag!r}")
    if len(tag) > LONGEST_TAG:
        raise ConfigurationError(f"has a tag of {len(tag)} characters, {tag[:20]!r}…; the limit is {LONGEST_TAG}")
    if not _tag.fullmatch(tag) or control_character(tag):
        what = "an empty tag" if not tag.strip() else f"the tag {tag!r}"
        raise ConfigurationError(
            f"has {what}: a tag has at least one character, no control characters, and no space at either end"
        )
