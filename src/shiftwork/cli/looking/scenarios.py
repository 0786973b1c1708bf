"""`shiftwork plan`: what pools would do with a day of traffic, in virtual time. `shiftwork record`: the last day of a
running system, as a scenario for it.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import aside, json_option, say, show_json, show_table, show_wrapped
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.errors import ConfigurationError
from shiftwork.sim.recorded import recorded
from shiftwork.sim.writing import written

if TYPE_CHECKING:
    from shiftwork.sim.study import ScenarioStudy


_PARTS: Final = 1000
_HELP: Final = """\
Simulate a day of traffic, and show what the pools would do.

SCENARIO is a TOML file: arrivals, run times, pools, machines, prices and targets (docs/planning.md). The pools
follow their real scaling rules, in virtual time; no store and no node is needed. A day takes some seconds.

\b
Examples:
  shiftwork plan examples/company.toml
  shiftwork plan examples/company.toml --html day.html
  shiftwork plan examples/company.toml --configuration elastic --load 1.5
  shiftwork plan examples/company.toml --configuration elastic --suggest
"""


@click.command(help=_HELP)
@click.argument("scenario", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--configuration", "names", multiple=True, metavar="NAME", help="Only this configuration; may be repeated."
)
@click.option(
    "--load", type=click.FloatRange(min=0, min_open=True), default=1.0, metavar="X", help="Multiply the traffic."
)
@click.option(
    "--suggest", "search", is_flag=True, help="Search for cheaper bounds and thresholds that meet the targets."
)
@click.option(
    "--headroom",
    type=click.FloatRange(min=1),
    default=1.0,
    metavar="X",
    help="With --suggest: meet the targets also with X times the traffic.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page with the curves."
)
@json_option
def plan(
    scenario: Path,
    names: tuple[str, ...],
    *,
    load: float,
    search: bool,
    headroom: float,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show the plan."""
    from shiftwork.sim.reading import read_scenario
    from shiftwork.sim.report.study_page import study_page
    from shiftwork.sim.report.study_shape import study_shape
    from shiftwork.sim.study import study_scenario
    from shiftwork.sim.traffic import multiplied

    read = multiplied(read_scenario(_text(scenario), name=scenario.name), load)
    bar = ProgressBar(terminal=True, noun=None) if sys.stderr.isatty() else None
    try:
        made = study_scenario(
            read,
            names,
            search=search,
            headroom=headroom,
            progress=lambda step, done: bar.show(step, int(done * _PARTS), _PARTS) if bar else None,
        )
    finally:
        if bar:
            bar.end()
    if html is not None:
        _write(html, study_page(made))
    if as_json:
        show_json(study_shape(made))
    else:
        _show(made)
        if html is not None:
            say()
            say(f"The curves are in {html}.")


def _text(path: Path) -> str:
    from shiftwork.sim.scenario_limits import MOST_FILE_BYTES

    try:
        if str(path) == "-":
            return sys.stdin.read(MOST_FILE_BYTES + 1)
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_FILE_BYTES + 1)  # one more than is allowed, so that it is refused
    except FileNotFoundError:
        message = f"there is no file {path}; `shiftwork record` writes a scenario from a running system"
        raise ConfigurationError(message) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise ConfigurationError(message) from None
    except UnicodeDecodeError:
        message = f"{path} is not a text file in UTF-8; a scenario is a TOML file"
        raise ConfigurationError(message) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise ConfigurationError(message) from None


def _show(made: "ScenarioStudy") -> None:
    from shiftwork.sim.report.study_page import lead
    from shiftwork.sim.report.study_words import (
        CHANGES,
        CONFIGURATIONS,
        POOLS,
        change_rows,
        configuration_rows,
        findings,
        pool_rows,
        suggestion_words,
        worker_rows,
    )

    say(f"{made.scenario.name}: {lead(made.scenario, made.simulated)}")
    say()
    show_table(CONFIGURATIONS, configuration_rows(made))
    say()
    show_table(POOLS, pool_rows(made))
    say()
    show_table(("P99 WAIT", *made.simulated), worker_rows(made))
    say()
    for one in findings(made):
        show_wrapped("- ", one)
    if made.suggestion is not None:
        say()
        show_wrapped("suggestion: ", suggestion_words(made, made.suggestion))
        rows = change_rows(made, made.suggestion)
        if rows:
            show_table(CHANGES, rows)


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
