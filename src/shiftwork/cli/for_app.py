"""The command line inside that of a framework, which has the app already: `flask shiftwork`, `manage.py shiftwork`."""

from typing import Any

import click


def defaults_for_app(group: click.Group, app_name: str) -> dict[str, Any]:
    """Return the `default_map` that makes each command use this app, unless `--store` or `--app` names another."""
    defaults: dict[str, Any] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            taken = {str(parameter.name) for parameter in command.params} & {"app", "app_name"}
            defaults[name] = dict.fromkeys(taken, app_name)
        if isinstance(command, click.Group):
            defaults[name] |= defaults_for_app(command, app_name)
    return defaults
