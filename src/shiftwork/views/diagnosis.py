"""What `shiftwork doctor` reports, and what to do about a problem: a command to type, and a section of the runbook.

The rules of health name Python methods; here a person has a shell.
"""

import os
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.health.health_values import CODES, Problem
from shiftwork.sentences import sentence

RUNBOOK: Final = "docs/how-to/runbook"
"""The runbook in a checkout and on the built site, without the ending."""

_REMEDIES: Final[Mapping[str, Callable[[str], str]]] = {
    "worker_disabled": lambda name: sentence("fix the cause, then: shiftwork enable {worker}", worker=name),
    "worker_failing": lambda name: sentence(
        "see the error: shiftwork jobs --worker {worker}, then shiftwork job ID", worker=name
    ),
    "pool_paused": lambda name: sentence("when it may continue: shiftwork resume {pool}", pool=name),
    "no_leader": lambda _: sentence("start a node: shiftwork run MODULE:NAME"),
    "dead_letters": lambda _: sentence(
        "see why: shiftwork dead; then shiftwork retry --dead, or shiftwork discard --dead"
    ),
}


class Report(Struct, kw_only=True):
    """The store's real settings, and everything that is wrong."""

    store: str
    findings: dict[str, str]
    problems: list[Problem]

    @property
    def status(self) -> Literal["ok", "degraded", "failing"]:
        """Return the verdict that the worst problem demands."""
        if any(problem.severity == "critical" for problem in self.problems):
            return "failing"
        return "degraded" if self.problems else "ok"


def remedy(problem: Problem) -> str:
    """Return what to do about a problem."""
    known = _REMEDIES.get(problem.code)
    return known(quote(problem.subject)) if known else problem.remedy


def see(problem: Problem) -> str:
    """Return where the runbook explains a problem: on the documentation site that SHIFTWORK_DOCS names, as `make site`
    builds it, or in a checkout.
    """
    section = f"problem-{problem.code}" if problem.code in CODES else "findings-of-the-doctor"
    site = os.environ.get("SHIFTWORK_DOCS", "").rstrip("/")
    return f"{site}/{RUNBOOK}.html#{section}" if site else f"{RUNBOOK}.md#{section}"
