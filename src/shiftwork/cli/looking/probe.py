"""`shiftwork probe`: is the node on this machine alive, or ready? For Kubernetes and similar; it needs no store."""

from pathlib import Path

import click

from shiftwork.cli.terminal.output import aside, json_option, say, show_json
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.serve.vitals import VITALS_FRESH_SECONDS, examine


@click.command()
@click.argument("question", type=click.Choice(["live", "ready"]))
@click.option(
    "--probe-file",
    type=click.Path(path_type=Path),
    envvar="SHIFTWORK_PROBE",
    required=True,
    metavar="PATH",
    help="The file that the node writes; or SHIFTWORK_PROBE.",
)
@click.option(
    "--within",
    type=seconds,
    default=f"{VITALS_FRESH_SECONDS:g}",
    show_default=True,
    metavar="TIME",
    help="How old the file may be.",
)
@json_option
@click.pass_context
def probe(ctx: click.Context, question: str, probe_file: Path, within: float, *, as_json: bool) -> None:
    """Exit with 0 if the node on this machine is alive, or ready; with 1 if it is not.

    The node must be started with --probe-file, or SHIFTWORK_PROBE in its environment. It is ready when it has started,
    is not stopping, and renews its lease.
    """
    well, words = examine(probe_file, ready=question == "ready", within=within)
    if as_json:
        show_json({"question": question, "ok": well, "text": words})
    elif well:
        say(words)
    else:
        aside(f"shiftwork: {words}")
    ctx.exit(0 if well else 1)
