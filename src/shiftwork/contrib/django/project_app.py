"""The one app of a Django project, made from its settings when it is first used."""

from threading import Lock
from typing import Any, Final, cast

from django.core.exceptions import ImproperlyConfigured

from shiftwork.app import WorkerOrchestrator
from shiftwork.contrib.django.database_connections import fresh_connections
from shiftwork.contrib.django.site_settings import SETTING, SiteSettings, site_settings
from shiftwork.errors import ConfigurationError, UnknownStoreError

APP_NAME: Final = "shiftwork.contrib.django.project:app"
"""How `shiftwork run` and the processes that it starts name the app."""

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
