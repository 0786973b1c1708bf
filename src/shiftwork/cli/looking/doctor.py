"""`shiftwork doctor`: the store's real settings, the app's configuration, and what is wrong now."""

import time

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.looking.status import NO_STORE, NoAnswer, show_health, within_patience
from shiftwork.cli.terminal.formatting import one_line
from shiftwork.cli.terminal.output import json_option, say, show_json, show_wrapped
from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Problem
from shiftwork.core.words import counted
from shiftwork.errors import ConfigurationError
from shiftwork.serve.loading import load_app
from shiftwork.views.diagnosis import Report
from shiftwork.views.shapes.system import problem_shape


@click.command()
@with_source
@json_option
def doctor(source: Source, *, as_json: bool) -> None:
    """Examine the store, the app if one is named, and what runs.

    The exit code is 1 for a critical problem, and 3 if the store does not answer.
    """
    report = source.ask(lambda control: within_patience(control, _examine(control, source.app)))
    if isinstance(report, NoAnswer):
        report.show(as_json=as_json)
        click.get_current_context().exit(NO_STORE)
    if as_json:
        show_json(
            {
                "status": report.status,
                "store": report.store,
                "findings": report.findings,
                "problems": [problem_shape(problem) for problem in report.problems],
            }
        )
    else:
        _show(report)
    if report.status == "failing":
        click.get_current_context().exit(1)


async def _examine(control: Control, name: str) -> Report:
    report = await control.doctor.examine()
    if name:
        report.findings["app"], wrong = _app(name)
        report.problems = [*wrong, *report.problems]
    return report


def _app(name: str) -> tuple[str, list[Problem]]:
    try:
        workers, pools = load_app(name).registered()
    except ConfigurationError as error:
        message = f"{name} cannot start: {error}"
        return message, [Problem("configuration", name, message, "fix the registration", "critical")]
    return f"{name}, {counted(len(workers), 'worker')} in {counted(len(pools), 'pool')}, can start", []


def _show(report: Report) -> None:
    wide = max(map(len, report.findings))
    for name, finding in report.findings.items():
        show_wrapped(f"{name:<{wide}}  ", one_line(finding))
    say()
    show_health(report.status, report.problems, now=time.time())
