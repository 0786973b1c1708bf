"""What `shiftwork doctor` reports."""

from typing import Literal

from msgspec import Struct

from shiftwork.core.health import Problem


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
