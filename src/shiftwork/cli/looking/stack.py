"""`shiftwork stack`."""

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import aside, json_option, say, show_json
from shiftwork.views.formats import clock_time
from shiftwork.views.shapes.jobs import stack_shape


@click.command()
@click.argument("job_id", metavar="ID")
@with_source
@json_option
def stack(job_id: str, source: Source, *, as_json: bool) -> None:
    """Show what a running job is doing now: the stack of its function, then everything else in its process."""
    seen = source.ask(lambda control: control.jobs.stack(job_id))
    if as_json:
        show_json(stack_shape(seen))
        return
    aside(f"job {seen.job_id} at {clock_time(seen.at)}, on {seen.instance}, process {seen.pid}")
    say(seen.stack.rstrip())
