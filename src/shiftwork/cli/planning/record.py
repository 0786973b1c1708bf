"""`shiftwork record`: the last day of a running system, as a scenario for `shiftwork plan`."""

from pathlib import Path

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import aside, say
from shiftwork.sim.recorded import recorded
from shiftwork.sim.writing import written


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Write to this file, instead of printing. It is replaced if it exists.",
)
@with_source
def record(output: Path | None, source: Source) -> None:
    """Write the last day as a scenario: arrivals by hour, run times, pools and machines as they are now.

    `shiftwork plan FILE` simulates it, with other bounds or more traffic. Nothing in the store is changed.
    """
    text = written(recorded(source.ask(lambda control: control.history.read())))
    if output is None or str(output) == "-":
        say(text.rstrip("\n"))
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{output} cannot be written: {error.strerror}"
        raise click.UsageError(message) from None
    aside(f"wrote {output}; next: shiftwork plan {output}")
