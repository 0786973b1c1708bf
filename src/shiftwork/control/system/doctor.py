"""The doctor: the store's real settings, how fast it is, and everything that is wrong now."""

import platform

from shiftwork.control.access.encryption import Encryption
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.system.health import System
from shiftwork.control.system.latency import measure
from shiftwork.core.health.health_values import Finding, Problem, in_order
from shiftwork.core.words import counted
from shiftwork.runtime.clock import Clock
from shiftwork.transfer.late import Left
from shiftwork.version import __version__
from shiftwork.views.diagnosis import Report


class Doctor:
    """Examines a store and what runs on it."""

    def __init__(self, access: StoreAccess, clock: Clock, system: System, encryption: Encryption) -> None:
        self._access = access
        self._encryption = encryption
        self._clock = clock
        self._system = system

    async def check(self) -> dict[str, Finding]:
        """Return the store's settings as it reports them, its encryption, its latency, and whether its clock agrees
        with ours.
        """
        store = await self._access.open()
        return (
            await store.check() | {"encryption": await self._encryption.finding()} | await measure(store, self._clock)
        )

    async def examine(self) -> Report:
        """Return the store's settings and everything that is wrong, critical problems first."""
        found = await self.check()
        here = f"{__version__}, Python {platform.python_version()}, {platform.system()}"
        findings = {"shiftwork": here, **{about: finding.text for about, finding in found.items()}}
        problems = [
            Problem(about, "store", f"{about}: {finding.text}", finding.remedy, finding.severity, target="store")
            for about, finding in found.items()
            if finding.severity
        ]
        problems += (await self._system.overview()).health.problems
        left = await self._access.left_behind()
        if left is not None:
            problems = [_moved(left)]
        return Report(store=self._access.url, findings=findings, problems=in_order(problems))


def _moved(left: Left) -> Problem:
    """Return the only problem that matters for a store whose content has moved."""
    if not left.late:
        message, remedy = f"its content has moved to {left.to}", "use that store, and delete this one"
        return Problem("moved", "store", message, remedy, target="store")
    late = counted(left.late, "job")
    message = f"its content has moved to {left.to}; added here since, and not moved: {late}"
    remedy = "give every process the new URL, then run the same `shiftwork move` again: it carries them over"
    return Problem("moved", "store", message, remedy, "critical", target="store")
