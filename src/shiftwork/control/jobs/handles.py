"""Records of jobs as handles that know what must not be shown."""

from collections.abc import Sequence
from typing import Any

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.definitions import Definitions
from shiftwork.control.registry import LocalRegistry
from shiftwork.core.model.jobs import JobRecord
from shiftwork.handles.job import Job, JobAccess, Look, RunBlocking
from shiftwork.handles.redaction import secrets_of


class JobHandles:
    """Makes handles of records, by the workers registered here or published by other processes."""

    def __init__(
        self,
        access: StoreAccess,
        registry: LocalRegistry,
        definitions: Definitions,
        look: Look,
        run_blocking: RunBlocking,
    ) -> None:
        self._look = look
        self._run_blocking = run_blocking
        self._access = access
        self._registry = registry
        self._definitions = definitions

    async def of(self, records: Sequence[JobRecord]) -> list[Job[Any]]:
        """Return a handle for each record."""
        here = self._registry.workers
        others: dict[str, float] = {}
        for record in records:
            if record.worker not in here:
                others[record.worker] = max(record.created_at, others.get(record.worker, 0.0))
        schemas = await self._definitions.schemas(others) if others else {}
        handles: list[Job[Any]] = []
        for record in records:
            known = here.get(record.worker)
            secrets = secrets_of(known.schema if known else schemas.get(record.worker))
            decode = known.signature.decode_result if known else None
            access = JobAccess(self._access.open, decode, secrets, self._look, self._run_blocking)
            handles.append(Job(record, access))
        return handles

    async def one(self, record: JobRecord) -> Job[Any]:
        """Return the handle of one record."""
        return (await self.of([record]))[0]
