"""Remedies as commands to type. The rules of health name Python methods; here a person has a shell."""

import os
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Final

from shiftwork.core.health.health_values import CODES, Problem

RUNBOOK: Final = "docs/how-to/runbook"
"""The runbook in a checkout and on the built site, without the ending."""

_REMEDIES: Final[Mapping[str, Callable[[str], str]]] = {
    "worker_disabled": lambda name: f"fix the cause, then: shiftwork enable {name}",
    "worker_failing": lambda name: f"see the error: shiftwork jobs --worker {name}, then shiftwork job ID",
    "pool_paused": lambda name: f"when it may continue: shiftwork resume {name}",
    "no_leader": lambda _: "start a node: shiftwork run MODULE:NAME",
    "dead_letters": lambda _: "see why: shiftwork dead; then shiftwork retry --dead, or shiftwork discard --dead",
}


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
