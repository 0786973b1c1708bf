"""The Django app: it imports the tasks of the installed apps, and registers the system checks."""

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from shiftwork.contrib.django.project_app import OUR_APP, import_task_modules
from shiftwork.contrib.django.site_settings import site_settings


class ShiftworkConfig(AppConfig):
    """`shiftwork.contrib.django` in `INSTALLED_APPS`."""

    name = OUR_APP
    label = "shiftwork"
    verbose_name = "shiftwork"

    def ready(self) -> None:
        """Import the tasks. With wrong settings, leave that to `manage.py check`, which reports what is wrong."""
        from shiftwork.contrib.django import system_checks  # noqa: F401, PLC0415 - importing registers them

        try:
            names = site_settings().task_modules
        except ImproperlyConfigured:
            return
        import_task_modules(names)
