"""The setting `SHIFTWORK` of a Django project: what it may hold, and what is wrong with it, in words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from msgspec import Struct

from shiftwork.errors import nearest

SETTING: Final = "SHIFTWORK"
_ORCHESTRATOR: Final = (
    "ENABLE_HEALTH_CHECKS",
    "ENCRYPTION_KEYS",
    "LEASE_SECONDS",
    "MAX_CONCURRENT",
    "MAX_PAYLOAD_BYTES",
    "NAMESPACE",
    "TICK_INTERVAL",
)
"""What `WorkerOrchestrator` takes under the same name in lower case."""
_OURS: Final = ("STORE", "POOLS", "TASK_MODULES", "DASHBOARD_URL")
_EXAMPLE: Final = f'{SETTING} = {{"STORE": "sqlite:////var/lib/shop/shiftwork.db"}}'


class SiteSettings(Struct, frozen=True, kw_only=True):
    """The setting, checked for its form. The values themselves are checked by what uses them."""

    store: str
    pools: Mapping[str, Mapping[str, Any]] = {}
    task_modules: tuple[str, ...] = ("tasks",)
    """The modules of each installed app that are imported at the start."""
    dashboard_url: str | None = None
    """Where the dashboard is, for a link on the first page of the admin."""
    options: Mapping[str, Any] = {}
    """Everything else that `WorkerOrchestrator` is made with."""


def site_settings() -> SiteSettings:
    """Return the setting. Raises `ImproperlyConfigured` with all problems, each with the name of its part."""
    given = getattr(settings, SETTING, None)
    problems = list(setting_problems(given))
    if problems:
        raise ImproperlyConfigured("\n".join(problems))
    assert isinstance(given, Mapping)  # noqa: S101 - `setting_problems` has seen it
    return SiteSettings(
        store=given["STORE"],
        pools=given.get("POOLS") or {},
        task_modules=tuple(given.get("TASK_MODULES", ("tasks",))),
        dashboard_url=given.get("DASHBOARD_URL"),
        options={name.lower(): value for name, value in given.items() if name in _ORCHESTRATOR},
    )


def setting_problems(given: object) -> Iterator[str]:
    """Yield what is wrong with the form of the setting."""
    if not isinstance(given, Mapping):
        wrong = "is missing" if given is None else f"must be a dict, not {given!r}"
        yield f"The setting {SETTING} {wrong}. Write, for example, {_EXAMPLE}."
        return
    known = (*_OURS, *_ORCHESTRATOR)
    for name in given:
        if name not in known:
            yield f"{SETTING} has no key {name!r}: {nearest(str(name).upper(), known)}."
    if not isinstance(given.get("STORE"), str):
        wrong = f"must be a URL, not {given['STORE']!r}" if "STORE" in given else "is missing"
        yield f'{SETTING}["STORE"] {wrong}. Write, for example, {_EXAMPLE}.'
    yield from _pool_problems(given.get("POOLS"))
    modules = given.get("TASK_MODULES", ())
    if not isinstance(modules, list | tuple) or not all(isinstance(name, str) for name in modules):
        yield f'{SETTING}["TASK_MODULES"] must be a list of names of modules, such as ["tasks"], not {modules!r}.'
    if not isinstance(given.get("DASHBOARD_URL"), str | None):
        yield f'{SETTING}["DASHBOARD_URL"] must be a URL, not {given["DASHBOARD_URL"]!r}.'


def _pool_problems(pools: object) -> Iterator[str]:
    example = '{"mail": {"kind": "async", "max_workers": 20}}'
    if pools is None:
        return
    if not isinstance(pools, Mapping):
        yield f'{SETTING}["POOLS"] must be a dict, such as {example}, not {pools!r}.'
        return
    for name, options in pools.items():
        if not isinstance(options, Mapping):
            yield f'{SETTING}["POOLS"][{name!r}] must be a dict of options, as in {example}, not {options!r}.'
