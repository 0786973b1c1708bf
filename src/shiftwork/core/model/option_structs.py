"""Option structs that people write themselves, such as `Retry(…)`, and that explain a wrong argument."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import StructMeta

from shiftwork.core.words import seconds_in
from shiftwork.errors import ConfigurationError, UnknownOptionError, meant_by, nearest, same_as

_ELSEWHERE: Final[Mapping[str, str]] = {
    "max_workers": "it is an option of a pool: app.register_pool(…, max_workers=…); for one worker, max_running",
    "min_workers": "it is an option of a pool: app.register_pool(…, min_workers=…)",
    "processes": "it is an option of a pool: app.register_pool(…, processes=…)",
    "kind": "it is an option of a pool: app.register_pool(…, kind=…), and the worker names that pool: pool=…",
    "delay_seconds": "it is an option of a job: task.with_options(delay_seconds=…).enqueue(…)",
    "run_at": "it is an option of a job: task.with_options(run_at=…).enqueue(…)",
    "unique_key": "it is an option of a job: task.with_options(unique_key=…).enqueue(…)",
    "job_id": "it is an option of a job: task.with_options(job_id=…).enqueue(…)",
    "interval_seconds": "it is an option of a worker: @app.worker(interval_seconds=…)",
    "every": "it is an option of a worker: @app.worker(every=…)",
    "cron": "it is an option of a worker: @app.worker(cron=…)",
    "max_retries": "it is an option of a worker: @app.task(max_retries=…)",
    "expires_seconds": "it is an option of a job: task.with_options(expires_seconds=…).enqueue(…)",
    "tags": "it is an option of a job: task.with_options(tags=[…]).enqueue(…)",
    "max_running": "it is an option of a worker; for a pool, max_workers",
    "max_concurrent": "it is the size of the default pool: WorkerOrchestrator(max_concurrent=…); "
    "for a worker use max_running, for a pool max_workers",
    "queue": "a pool has a queue of its own: app.register_pool(…), and a worker names its pool: pool=…",
}
"""What to write instead of options that belong elsewhere."""

_UNITS: Final = {"minutes": 60.0, "hours": 3600.0}
_MILLISECONDS: Final = ("_ms", "_millis", "_milliseconds", "Ms", "Millis", "Milliseconds")
_DURATIONS: Final = ("_seconds", "_interval")
"""How options end that are seconds."""


def option_hint(option: str, value: Any, known: Iterable[str]) -> str:
    """Return what to write instead: the nearest name, a duration in seconds, or where the option belongs."""
    names = [*known]
    if option in _ELSEWHERE and same_as(option, names) is None:
        return _ELSEWHERE[option]
    meant = meant_by(option, names)
    unit = 0.001 if option.endswith(_MILLISECONDS) else _UNITS.get(option)
    if meant and meant[0].endswith(_DURATIONS) and (isinstance(value, str | timedelta) or unit is not None):
        seconds = seconds_in(value)
        if seconds is not None:
            return f"write {meant[0]}={seconds * (unit or 1.0):g}"
    elsewhere = [] if meant else meant_by(option, _ELSEWHERE)
    return _ELSEWHERE[elsewhere[0]] if elsewhere else nearest(option, names)


class OptionStructMeta(StructMeta):
    """The class of such structs. A wrong argument raises a `ConfigurationError` that names the remedy."""

    if not TYPE_CHECKING:  # a type checker knows the fields

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - the struct's class
            try:
                return super().__call__(*args, **kwargs)
            except TypeError as error:
                raise _explained(cls, args, kwargs, error) from None


def _explained(cls: StructMeta, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> ConfigurationError:
    fields = cls.__struct_fields__
    every = f"{cls.__name__} has {', '.join(fields)}"
    for name, value in kwargs.items():
        if name not in fields:
            hint = option_hint(name, value, fields)
            return UnknownOptionError(f"{cls.__name__} has no {name!r}: {hint.removesuffix('?')}; {every}")
    if args:
        return ConfigurationError(f"{cls.__name__} takes its options by name: {cls.__name__}({fields[0]}=…); {every}")
    return ConfigurationError(f"{cls.__name__}: {error}; {every}")
