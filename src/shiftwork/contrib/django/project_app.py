"""The one app of a Django project: made from its settings when it is first used, with the tasks of the installed apps,
and with fresh database connections around each job.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from importlib import import_module
from threading import Lock
from typing import Any, Final, cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections, reset_queries
from django.utils.module_loading import module_has_submodule

from shiftwork.app import WorkerOrchestrator
from shiftwork.contrib.django.site_settings import SETTING, SiteSettings, site_settings
from shiftwork.errors import ConfigurationError, UnknownStoreError
from shiftwork.runtime.context.context import Context

APP_NAME: Final = "shiftwork.contrib.django.project:app"
"""How `shiftwork run` and the processes that it starts name the app."""


OUR_APP: Final = "shiftwork.contrib.django"
"""Our own module `tasks` is the backend of `django.tasks`, and defines none."""

_making: Final = Lock()
_made: list[WorkerOrchestrator] = []


def project_app() -> WorkerOrchestrator:
    """Return the app of this project. Raises `ImproperlyConfigured` if the settings do not make one."""
    with _making:
        if not _made:
            _made.append(new_app(site_settings()))
        return _made[0]


def new_app(given: SiteSettings) -> WorkerOrchestrator:
    """Return a new app with these settings. Raises `ImproperlyConfigured`, naming the setting that is wrong."""
    options: Any = dict(given.options)
    try:
        app = WorkerOrchestrator(given.store, **options)
    except UnknownStoreError as error:
        message = f'{SETTING}["STORE"]: {error}'
        raise ImproperlyConfigured(message) from None
    except (ConfigurationError, TypeError) as error:
        message = f"{SETTING}: {error}"
        raise ImproperlyConfigured(message) from None
    for name, pool in given.pools.items():
        try:
            app.register_pool(name, **cast("Any", dict(pool)))
        except (ConfigurationError, TypeError) as error:
            message = f'{SETTING}["POOLS"]: {error}'
            raise ImproperlyConfigured(message) from None
    app.around_job(fresh_connections)
    return app


def import_task_modules(names: Iterable[str]) -> None:
    """Import these modules of every installed app that has them. What they raise is not caught."""
    for name in names:
        for config in apps.get_app_configs():
            if config.name != OUR_APP and module_has_submodule(config.module, name):
                import_module(f"{config.name}.{name}")


def fresh_connections(_: Context) -> AbstractContextManager[None] | AbstractAsyncContextManager[None]:
    """Return what surrounds one run: in the thread of a plain function, or on the event loop of a coroutine."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _in_this_thread()
    return _in_a_thread_of_its_own()


@contextmanager
def _in_this_thread() -> Iterator[None]:
    reset_queries()
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@asynccontextmanager
async def _in_a_thread_of_its_own() -> AsyncIterator[None]:
    async with ThreadSensitiveContext():
        try:
            yield
        finally:
            await sync_to_async(connections.close_all)()
