"""Gives claimed jobs of flows the results that they need, and what failed before them. Other jobs pass unread."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import MsgspecError
from msgspec.structs import replace

from shiftwork.core.jobs.needs import failures, insert
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.job_parts import Input
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.values.envelopes import is_hidden, is_sealed
from shiftwork.store.flow_failures import jobs_before
from shiftwork.store.protocol import Store

MISFIT = "its payload has no place for the results of other jobs: enqueue the flow again"
"""Why a job is dead whose payload and options do not belong together."""


class Complete(NamedTuple):
    """Claimed jobs, with the results of other jobs in their payloads."""

    jobs: Sequence[Claimed]
    misfits: Sequence[tuple[Claimed, str]] = ()
    """Those that cannot get the results, each with the reason."""


async def with_failures(store: Store, jobs: Sequence[Claimed]) -> Sequence[Claimed]:
    """Return these jobs, with what failed before those that run whatever happens. Others cost nothing."""
    needs = {job.id: own.needs for job in jobs if (own := run_options_of(job.options)).whatever}
    if not needs:
        return jobs
    # In turn: where not all can be looked at, no job loses all of its failures to another one that needs very many.
    in_turn = (id for of_each in zip_longest(*needs.values()) for id in of_each if id is not None)
    known = await jobs_before(store, in_turn)
    return [replace(job, failures=failures(needs[job.id], known)) if job.id in needs else job for job in jobs]


async def with_inputs(store: Store, jobs: Sequence[Claimed]) -> Complete:
    """Return these jobs with the results of other jobs in their payloads. One call reads all results."""
    inputs = {job.id: run_options_of(job.options).inputs for job in jobs if not is_sealed(job.payload)}
    ids = sorted({one.job for wanted in inputs.values() for one in wanted})
    if not ids:
        return Complete(jobs)
    results = dict(zip(ids, await store.results(ids), strict=True))
    gone = await _gone(store, [id for id, result in results.items() if result is None])
    complete, misfits = list[Claimed](), list[tuple[Claimed, str]]()
    for job in jobs:
        wanted = inputs.get(job.id, ())
        lost = next((one.job for one in wanted if one.job in gone), None)
        if lost is not None:
            misfits.append((job, f"the result of job {lost}, which it needs, is gone: enqueue the flow again"))
            continue
        try:
            complete.append(_filled(job, wanted, results))
        except (MsgspecError, LookupError, TypeError):
            misfits.append((job, MISFIT))
    return Complete(complete, misfits)


async def _gone(store: Store, without_result: Sequence[str]) -> set[str]:
    """Return the ids of the jobs that were deleted. The others have returned nothing."""
    if not without_result:
        return set()
    records = await store.get(without_result)
    return {id for id, record in zip(without_result, records, strict=True) if record is None}


def _filled(job: Claimed, inputs: Sequence[Input], results: Mapping[str, bytes | None]) -> Claimed:
    for one in inputs:
        result = results[one.job]
        if result is not None and is_sealed(result):
            return replace(job, payload=result)  # this node has not got its key: the job is handed back, as one is
    if not inputs:
        return job
    secrets = tuple(result for one in inputs if (result := results[one.job]) is not None and is_hidden(result))
    return replace(job, payload=insert(job.payload, inputs, results), secrets=secrets)
