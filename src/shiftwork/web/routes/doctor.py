"""The doctor. It is a change, because it writes in order to measure the store, and may read a whole file."""

from typing import Literal

from msgspec import Struct

from shiftwork.views.shapes.system import ProblemShape, problem_shape
from shiftwork.web.routing import post
from shiftwork.web.site import Site


class DoctorAnswer(Struct, frozen=True, kw_only=True):
    """The store's settings, and what is wrong."""

    status: Literal["ok", "degraded", "failing"]
    store: str
    findings: dict[str, str]
    problems: list[ProblemShape]


@post("/doctor")
async def doctor(site: Site) -> DoctorAnswer:
    """Examine the store's real settings, measure it, and return what is wrong. Answers are kept for 15 seconds."""
    report = await site.doctor.get()
    return DoctorAnswer(
        status=report.status,
        store=report.store,
        findings=report.findings,
        problems=[problem_shape(problem) for problem in report.problems],
    )
