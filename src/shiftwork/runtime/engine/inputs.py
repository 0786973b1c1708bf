"""Claimed jobs of flows get the results that they need, straight from the store."""

from collections.abc import Sequence

from msgspec.structs import replace

from shiftwork.core.inputs import insert
from shiftwork.core.model import Claimed
from shiftwork.core.own_options import unpack
from shiftwork.core.sealing import is_sealed
from shiftwork.store.protocol import Store


async def with_inputs(store: Store, jobs: Sequence[Claimed]) -> Sequence[Claimed]:
    """These jobs with the results of other jobs in their payloads. One call reads all results."""
    if all(job.options is None for job in jobs):
        return jobs
    inputs = {
        job.id: unpack(job.options).inputs for job in jobs if job.options is not None and not is_sealed(job.payload)
    }
    ids = sorted({one.job for wanted in inputs.values() for one in wanted})
    if not ids:
        return jobs
    results = dict(zip(ids, await store.results(ids), strict=True))
    return [
        replace(job, payload=insert(job.payload, inputs[job.id], results)) if inputs.get(job.id) else job
        for job in jobs
    ]
