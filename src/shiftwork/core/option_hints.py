"""What to write instead of an option that does not exist."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from shiftwork.core.durations import seconds_in
from shiftwork.errors import meant_by, nearest, same_as

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
"""Options that exist, but not here."""

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
