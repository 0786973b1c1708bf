"""Remedies as commands to type. The rules of health name Python methods; here a person has a shell."""

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Final

from shiftwork.core.health import Problem

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
    """Return where the runbook explains a problem of health: the same address in a checkout and on the built site."""
    return f"docs/how-to/runbook.md#problem-{problem.code}"
