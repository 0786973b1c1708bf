"""Importing the modules of the installed apps that define tasks."""

from collections.abc import Iterable
from importlib import import_module
from typing import Final

from django.apps import apps
from django.utils.module_loading import module_has_submodule

OURS: Final = "shiftwork.contrib.django"
"""Our own module `tasks` is the backend of `django.tasks`, and defines none."""


def import_task_modules(names: Iterable[str]) -> None:
    """Import these modules of every installed app that has them. What they raise is not caught."""
    for name in names:
        for config in apps.get_app_configs():
            if config.name != OURS and module_has_submodule(config.module, name):
                import_module(f"{config.name}.{name}")
