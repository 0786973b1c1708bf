"""What the doctor finds: the store's real settings, and all that is wrong now."""

import platform
from importlib.metadata import version
from typing import Literal, Protocol

from msgspec import Struct

from shiftwork.core.health import Finding, Problem
from shiftwork.transfer.late import Left
from shiftwork.views.overview import Overview


class Patient(Protocol):
    """Whom the doctor examines. `WorkerOrchestrator` is one."""

    @property
    def store_url(self) -> str: ...

    async def check(self) -> dict[str, Finding]: ...

    async def overview(self) -> Overview: ...

    async def left_behind(self) -> Left | None: ...


class Report(Struct, kw_only=True):
    """All that the doctor found."""

    store: str
    findings: dict[str, str]
    problems: list[Problem]

    @property
    def status(self) -> Literal["ok", "degraded", "failing"]:
        """The worst of it."""
        if any(problem.severity == "critical" for problem in self.problems):
            return "failing"
        return "degraded" if self.problems else "ok"


async def examine(patient: Patient) -> Report:
    """Read the store's settings, measure it, and ask what is wrong; what is critical first."""
    found = await patient.check()
    here = f"{version('shiftwork')}, Python {platform.python_version()}, {platform.system()}"
    findings = {"shiftwork": here, **{about: finding.text for about, finding in found.items()}}
    problems = [
        Problem(about, "store", f"{about}: {finding.text}", finding.remedy, finding.severity)
        for about, finding in found.items()
        if finding.severity
    ]
    problems += (await patient.overview()).health.problems
    left = await patient.left_behind()
    if left is not None:
        problems = [_moved(left)]
    problems.sort(key=lambda problem: problem.severity != "critical")
    return Report(store=patient.store_url, findings=findings, problems=problems)


def _moved(left: Left) -> Problem:
    """What is wrong with a store that nobody should use any more is only that."""
    if not left.late:
        return Problem(
            "moved", "store", f"everything in it has moved to {left.to}", "use that one, and delete this one"
        )
    late = f"{left.late:,} job{'' if left.late == 1 else 's'}"
    message = f"everything in it has moved to {left.to}; added here since, and not moved: {late}"
    remedy = "give every process the new URL, then carry them: shiftwork move, as before"
    return Problem("moved", "store", message, remedy, "critical")
