"""`windlass doctor`: the store's real settings, the app's configuration, and what is wrong now."""

import platform
from importlib.metadata import version

import click
from msgspec import Struct

from windlass.app import WorkerOrchestrator
from windlass.cli.connect import Source, with_source
from windlass.cli.output import json_option, show_json, show_wrapped
from windlass.cli.status import show_health
from windlass.cli.words import counted, one_line
from windlass.core.health import Problem
from windlass.errors import ConfigurationError
from windlass.shapes import problem_shape
from windlass.transfer.late import Left


class Report(Struct, kw_only=True):
    """All that the doctor found."""

    store: str
    findings: dict[str, str]
    problems: list[Problem]

    @property
    def status(self) -> str:
        """The worst of it."""
        if any(problem.severity == "critical" for problem in self.problems):
            return "failing"
        return "degraded" if self.problems else "ok"


@click.command()
@with_source
@json_option
def doctor(source: Source, *, as_json: bool) -> None:
    """Examine the store, the app if one is named, and what runs. Ends with 1 if something is critical."""
    report = source.ask(lambda app: _examine(app, source.app))
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


async def _examine(app: WorkerOrchestrator, name: str) -> Report:
    found = await app.check()
    here = f"{version('windlass')}, Python {platform.python_version()}, {platform.system()}"
    findings = {"windlass": here, **{about: finding.text for about, finding in found.items()}}
    problems = [
        Problem(about, "store", f"{about}: {finding.text}", finding.remedy, finding.severity)
        for about, finding in found.items()
        if finding.severity
    ]
    problems += (await app.overview()).health.problems
    left = await app.left_behind()
    if left is not None:
        problems = [_moved(left)]
    if name:
        findings["app"], wrong = _app(app, name)
        problems = [*wrong, *problems]
    problems.sort(key=lambda problem: problem.severity != "critical")
    return Report(store=app.store_url, findings=findings, problems=problems)


def _moved(left: Left) -> Problem:
    """What is wrong with a store that nobody should use any more is only that."""
    if not left.late:
        return Problem(
            "moved", "store", f"everything in it has moved to {left.to}", "use that one, and delete this one"
        )
    message = f"everything in it has moved to {left.to}; added here since, and not moved: {counted(left.late, 'job')}"
    remedy = "give every process the new URL, then carry them: windlass move, as before"
    return Problem("moved", "store", message, remedy, "critical")


def _app(app: WorkerOrchestrator, name: str) -> tuple[str, list[Problem]]:
    try:
        workers, pools = app.registered()
    except ConfigurationError as error:
        message = f"{name} cannot start: {error}"
        return message, [Problem("configuration", name, message, "mend the registration", "critical")]
    return f"{name}, {counted(len(workers), 'worker')} in {counted(len(pools), 'pool')}, can start", []


def _show(report: Report) -> None:
    wide = max(map(len, report.findings))
    for name, finding in report.findings.items():
        show_wrapped(f"{name:<{wide}}  ", one_line(finding))
    click.echo()
    show_health(report.status, report.problems)
