"""System checks, for `manage.py check`: the setting, the registered workers, and with `--deploy` the store.

shiftwork.E001   the setting SHIFTWORK does not make an app
shiftwork.E002   the registered workers and pools do not fit together
shiftwork.E003   a queue of TASKS has no pool
shiftwork.E004   TASKS uses shiftwork, but INSTALLED_APPS does not name it
shiftwork.W001   the store cannot be reached (--deploy)
shiftwork.W002   the store is forgotten when the process ends (--deploy)
shiftwork.W003   the store is a file relative to the working directory (--deploy)
"""

from collections.abc import Iterator
from typing import Any, Final

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Advice
from django.core.exceptions import ImproperlyConfigured

from shiftwork.contrib.django.project_app import project_app
from shiftwork.contrib.django.site_settings import SETTING, site_settings
from shiftwork.errors import ConfigurationError, ShiftworkError

TAG: Final = "shiftwork"


@register(TAG)
def check_setting(**_: Any) -> list[CheckMessage]:
    """Report every problem of the setting."""
    try:
        project_app()
    except ImproperlyConfigured as error:
        return [Error(line, id="shiftwork.E001") for line in str(error).splitlines()]
    return []


@register(TAG)
def check_workers(**_: Any) -> list[CheckMessage]:
    """Report workers in unknown pools, unknown dependencies, and cycles."""
    try:
        project_app().registered()
    except ImproperlyConfigured:
        return []  # check_setting reports it
    except ConfigurationError as error:
        hint = f'Pools are registered in {SETTING}["POOLS"].' if "pool" in str(error) else None
        return [Error(line, hint=hint, id="shiftwork.E002") for line in str(error).splitlines()]
    return []


@register(TAG, deploy=True)
def check_store(**_: Any) -> list[CheckMessage]:
    """Report a store that cannot be reached, or that other processes cannot see."""
    try:
        store, app = site_settings().store, project_app()
    except ImproperlyConfigured:
        return []
    found = list(_doubts(store))
    if not found or not store.startswith("memory:"):
        try:
            app.blocking.check()
        except ShiftworkError as error:
            found.append(Advice(f"The store cannot be used: {error}", id="shiftwork.W001"))
    return found


def _doubts(store: str) -> Iterator[CheckMessage]:
    if store.startswith("memory:"):
        yield Advice(
            f'{SETTING}["STORE"] is memory://: no other process sees its jobs, and they end with the process.',
            hint="Use sqlite:////…, redis://… or postgresql://….",
            id="shiftwork.W002",
        )
    if store.startswith("sqlite:///") and not store.startswith("sqlite:////"):
        yield Advice(
            f'{SETTING}["STORE"] is a relative path: a process that starts in another folder uses another file.',
            hint='Write an absolute path, for example f"sqlite:///{BASE_DIR}/shiftwork.db".',
            id="shiftwork.W003",
        )
