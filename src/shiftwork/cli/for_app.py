"""The command line inside the command line of a framework, which has the app already: `flask shiftwork status`."""

from collections.abc import Sequence
from typing import Any

import click

from shiftwork.cli.entry import main


def run_for_app(app_name: str, args: Sequence[str], prog_name: str) -> None:
    """Run a command with this app, unless `--store` or `--app` names another. Raises `SystemExit`."""
    main.main(args=list(args), prog_name=prog_name, default_map=_defaults(main, app_name))


def _defaults(group: click.Group, app_name: str) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            defaults[name] = _defaults(command, app_name)
        else:
            taken = {str(parameter.name) for parameter in command.params} & {"app", "app_name"}
            defaults[name] = dict.fromkeys(taken, app_name)
    return defaults
