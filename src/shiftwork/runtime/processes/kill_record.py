"""Which jobs were in a process that was killed from outside: once may be chance, twice makes them suspects."""

from collections.abc import Iterable
from typing import Final

MOST: Final = 10_000
"""How many jobs are remembered, the latest."""


class KillRecord:
    """Remembers jobs for one node, as long as it runs."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._ids

    def add(self, ids: Iterable[str]) -> None:
        """Remember that these jobs were in a process that was killed from outside."""
        for job_id in ids:
            self._ids.pop(job_id, None)
            self._ids[job_id] = None
        while len(self._ids) > MOST:
            del self._ids[next(iter(self._ids))]
