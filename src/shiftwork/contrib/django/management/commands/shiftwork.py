"""`manage.py shiftwork COMMAND …` is `shiftwork COMMAND …` for the app of this project."""

import os
import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, DjangoHelpFormatter

from shiftwork.cli import main
from shiftwork.cli.entry import defaults_for_app
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
        # `run --reload` starts `python -m shiftwork` again with these arguments.
        sys.argv = [argv[0], *rest]
        os.environ.setdefault("SHIFTWORK_APP", APP_NAME)
        main(args=rest, prog_name=f"{argv[0]} {argv[1]}", default_map=defaults_for_app(main, APP_NAME))

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take anything, for `call_command`."""
        parser.formatter_class = DjangoHelpFormatter
        parser.add_argument("args", nargs=REMAINDER)

    def handle(self, *args: str, **_: Any) -> None:
        """Run the command line inside this process: `call_command("shiftwork", "status")`."""
        main.main(
            args=list(args), prog_name="shiftwork", standalone_mode=False, default_map=defaults_for_app(main, APP_NAME)
        )
