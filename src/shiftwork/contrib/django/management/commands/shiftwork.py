"""`manage.py shiftwork COMMAND …` is `shiftwork COMMAND …` for the app of this project."""

from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence
from typing import Any

import click
from django.core.management.base import BaseCommand, DjangoHelpFormatter

from shiftwork.cli import main
from shiftwork.contrib.django.project_app import APP_NAME


class Command(BaseCommand):
    """Passes everything to the command line of shiftwork, which then uses the app of this project.

    `--store` or `--app` on the command line name another one, as always.
    """

    help = "Run and watch shiftwork: `manage.py shiftwork run`, `manage.py shiftwork --help`."

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run the command line as a program. The options of every `manage.py` command have taken effect already."""
        parser = ArgumentParser(add_help=False, allow_abbrev=False)
        for option in ("--settings", "--pythonpath"):
            parser.add_argument(option)
        _, rest = parser.parse_known_args(argv[2:])
        main(args=rest, prog_name=f"{argv[0]} {argv[1]}", default_map=for_project(main))

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take anything, for `call_command`."""
        parser.formatter_class = DjangoHelpFormatter
        parser.add_argument("args", nargs=REMAINDER)

    def handle(self, *args: str, **_: Any) -> None:
        """Run the command line inside this process: `call_command("shiftwork", "status")`."""
        main.main(args=list(args), prog_name="shiftwork", standalone_mode=False, default_map=for_project(main))


def for_project(group: click.Group) -> dict[str, Any]:
    """Return the defaults that make each command of the group use the app of this project."""
    defaults: dict[str, Any] = {}
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            defaults[name] = for_project(command)
        else:
            taken = {parameter.name for parameter in command.params} & {"app", "app_name"}
            defaults[name] = {str(parameter): APP_NAME for parameter in taken}
    return defaults
