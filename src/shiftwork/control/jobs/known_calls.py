"""Calls of a flow with a `job_id` that another call or an existing job has too.

A job may wait for such a job. It may get its result only if both belong to one flow, because results of other jobs are
pruned in their own time. A call that a running job adds must not wait for what waits for that job: that would wait for
the call, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shiftwork.core.model.jobs import JobRecord
from shiftwork.errors import FlowError
from shiftwork.handles.worker import Call
from shiftwork.store.protocol import Store


async def known_jobs(store: Store, calls: Sequence[Call[Any]]) -> dict[str, JobRecord]:
    """Return the jobs that exist under the ids that people gave to these calls."""
    ids = [call.options.job_id for call in calls if call.options.job_id is not None]
    found = await store.get(ids) if ids else []
    return {record.id: record for record in found if record is not None}


def flow_of(calls: Sequence[Call[Any]], known: Mapping[str, JobRecord]) -> str | None:
    """Return the flow as which these calls were added before, if all have ids. Some of its jobs may be gone."""
    flows = {record.flow for record in known.values()}
    return flows.pop() if len(flows) == 1 and all(call.options.job_id for call in calls) else None


def check_twins(calls: Sequence[Call[Any]], ids: Mapping[Call[Any], str], known: Mapping[str, JobRecord]) -> None:
    """Raise if different calls have the id of one new job: only the first of them would run."""
    first: dict[str, Call[Any]] = {}
    for call in calls:
        id = ids[call]
        twin = first.setdefault(id, call)
        if twin is not call and id not in known and _what(twin, ids) != _what(call, ids):
            message = (
                f"two different calls of this flow, of {twin.worker.name} and of {call.worker.name}, have the "
                f"job_id {id!r}: give each its own"
            )
            raise FlowError(message)


def _what(call: Call[Any], ids: Mapping[Call[Any], str]) -> tuple[object, ...]:
    needs = {(ids[one], whatever) for one, whatever in call.needed().items()}
    return call.worker.name, call.payload, needs, [(ids[one], path) for one, path in call.inputs]


def check_inputs(
    calls: Sequence[Call[Any]], ids: Mapping[Call[Any], str], known: Mapping[str, JobRecord], flow: str
) -> None:
    """Raise if a call gets the result of a job that exists outside the flow."""
    for call in calls:
        for one, _ in call.inputs:
            record = known.get(ids[one])
            if record is not None and record.flow != flow:
                message = (
                    f"{call.worker.name}: job {record.id} of {record.worker} exists already, outside of this flow, "
                    "so its result may be pruned before it is used: pass the result, or give the call another job_id"
                )
                raise FlowError(message)


async def check_no_circle(store: Store, parent: str, known: Mapping[str, JobRecord]) -> None:
    """Raise if one of these jobs, which new calls of a running job name, waits for all that the running job adds."""
    seen = {parent}
    level = list(known.values())
    while level:
        for record in level:
            if any(need.id == parent and not need.alone for need in record.unmet):
                message = (
                    f"job {record.id} of {record.worker} waits for job {parent} and all that it adds, so nothing that "
                    "it adds can wait for that job"
                )
                raise FlowError(message)
        ids = {need.id for record in level for need in record.unmet} - seen
        seen |= ids
        level = [record for record in await store.get(sorted(ids)) if record is not None] if ids else []
