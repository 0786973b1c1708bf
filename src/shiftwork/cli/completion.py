"""`shiftwork completion`: the script that makes a shell complete commands and options."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from shiftwork.cli.terminal.output import say

SHELLS: Final = ("bash", "zsh", "fish")


COMPLETION_HELP: Final = """\
Print the script that makes a shell complete commands and options.

\b
bash  echo 'eval "$(shiftwork completion bash)"' >> ~/.bashrc
zsh   echo 'eval "$(shiftwork completion zsh)"' >> ~/.zshrc
fish  shiftwork completion fish > ~/.config/fish/completions/shiftwork.fish
"""


@click.command(help=COMPLETION_HELP)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows all three
    say(kind(context.find_root().command, {}, "shiftwork", "_SHIFTWORK_COMPLETE").source())
