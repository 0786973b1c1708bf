"""Every store against the originals in `shiftwork.core`, over tables of cases.

Some stores call the originals, others repeat them in Lua or SQL. Here each case is one job (and one worker, where its
state counts), all cases of a table travel together, and whatever the store makes of them is compared with what the
original makes of the same values.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.core.jobs.parked_jobs import parked
from shiftwork.core.jobs.transitions import STATUSES, allows, amended, landed
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, JobFilter, Outcome, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import Claimed, JobRecord, JobStatus, NewJob, Progress, ProgressNote
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.state import after_end, after_run
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, add, claim, finish, job, outcome, report
from tests.store.conformance.expect import equal, there
from tests.store.conformance.lab import Lab

MANY: Final = 10_000
LATER: Final = NOW + 60
ENDS: Final = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.QUEUED, JobStatus.DEAD, JobStatus.CANCELLED)
"""What an outcome may say."""


async def _records(store: Store, ids: Sequence[str]) -> dict[str, JobRecord]:
    found = await store.get(ids)
    return {id: there(record, f"job {id}") for id, record in zip(ids, found, strict=True)}


async def _states(store: Store, workers: Sequence[str]) -> dict[str, WorkerState]:
    facts = await store.survey(workers, NOW)
    return {worker: facts.lanes[worker].state for worker in workers}


# ── landing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_outcomes_land_as_the_original_says(lab: Lab) -> None:
    """Outcome by due time by cancel request by how long to keep it by whether it keeps its rank."""
    store = lab.store
    table = {
        f"{status} {run_at - NOW:g} {cancelling} {keep} {in_place}": (status, run_at, cancelling, keep, in_place)
        for status, run_at, cancelling, keep, in_place in product(
            ENDS, (NOW - 9, NOW + 3, LATER), (False, True), (None, NOW + 500), (False, True)
        )
    }
    await add(store, *(job(case, key=case, unique_key=case, head_start=5, run_at=NOW - 9) for case in table))
    running = {claimed.id: claimed for claimed in await claim(store, MANY)}
    await store.note([ProgressNote(id, claimed.fence, Progress(1)) for id, claimed in running.items()])
    await store.amend([case for case, (_, _, cancelling, _, _) in table.items() if cancelling], Cancel(), NOW + 1)
    before = await _records(store, list(table))
    outcomes = [
        _end(running[case], status, run_at=run_at, keep_until=keep, keeps_rank=in_place)
        for case, (status, run_at, _, keep, in_place) in table.items()
    ]
    await finish(store, *outcomes, now=NOW + 3)
    after = await _records(store, list(table))
    for said in outcomes:
        equal(after[said.id], landed(before[said.id], said, NOW + 3), f"the job after the outcome {said.id!r}")
    await _keep_their_end(store, after)


def _end(claimed: Claimed, status: JobStatus, **more: Any) -> Outcome:
    changes: dict[str, Any] = {"attempt": 4, "crashes": 2, "error": "e", "report": report(claimed), **more}
    if status is JobStatus.COMPLETED:
        changes["result"] = b"r"
    return outcome(claimed, status, now=NOW + 2, **changes)


async def _keep_their_end(store: Store, records: dict[str, JobRecord]) -> None:
    """A record may say so; what is pruned shows it."""
    ends = sorted(record.keep_until for record in records.values() if record.keep_until is not None)
    for at in sorted(set(ends)):
        equal(await store.prune(MANY, at - 0.01), 0, f"jobs pruned before {at:g}")
        equal(await store.prune(MANY, at), ends.count(at), f"jobs pruned at {at:g}")


# ── the worker's state ───────────────────────────────────────────────────────────────────────────────────────────────


STATES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {
        "failures": 2,
        "last_error": "before",
        "last_error_at": NOW - 50,
        "last_ended": NOW - 50,
        "last_success": NOW - 60,
    },
    {"failures": 1, "last_error": "later", "last_error_at": NOW + 50, "last_ended": NOW + 50, "last_success": NOW + 40},
    {"failures": 2, "enabled": False, "reason": "by hand", "changed_at": NOW - 5},
)
"""New; failing; ended later than what is written next; disabled."""


async def check_outcomes_change_a_worker_as_the_original_says(lab: Lab) -> None:
    """Outcome by verdict by limit by state by cancel request: each case has a worker of its own."""
    store = lab.store
    cases = product(ENDS, ("success", "failure", "neutral"), (None, 1, 3), range(len(STATES)), (False, True))
    table = {" ".join(map(str, case)): case for case in cases}
    await add(store, *(job(case, case, cause="scheduled") for case in table))
    running = {claimed.id: claimed for claimed in await claim(store, MANY, workers=list(table))}
    given = {case: WorkerState(worker=case, **STATES[number]) for case, (_, _, _, number, _) in table.items()}
    await store.take_over(list(given.values()), {}, 0)
    await store.amend([case for case, (*_, cancelling) in table.items() if cancelling], Cancel(), NOW)
    before = await _records(store, list(table))
    outcomes = [
        outcome(running[case], status, run_at=LATER, verdict=verdict, disable_after=limit, error=_error(case), now=NOW)
        for case, (status, verdict, limit, _, _) in table.items()
    ]
    disabled = await finish(store, *outcomes)
    wanted = [
        said.worker
        for said in outcomes
        if after_run(given[said.worker], said, landed(before[said.id], said, NOW).status)
    ]
    equal(disabled, wanted, "the workers that were disabled, in order")
    states = await _states(store, list(table))
    for case in table:
        equal(states[case], given[case], f"the worker's state after {case!r}")


def _error(case: str) -> str | None:
    return None if case.startswith("completed") else f"broke ☃ {case}"


async def check_cancelled_jobs_change_a_worker_as_the_original_says(lab: Lab) -> None:
    store = lab.store
    given = {f"w{number}": WorkerState(worker=f"w{number}", **state) for number, state in enumerate(STATES)}
    await store.take_over(list(given.values()), {}, 0)
    await add(store, *(job(worker, worker, run_at=LATER) for worker in given))
    await store.amend(list(given), Cancel(), NOW)
    states = await _states(store, list(given))
    for worker, state in given.items():
        after_end(state, NOW)
        equal(states[worker], state, f"the state of {worker} after a job of it is cancelled")


# ── changes by people ────────────────────────────────────────────────────────────────────────────────────────────────


CHANGES: Final[dict[str, Change]] = {
    "cancel": Cancel("not needed"),
    "requeue": Requeue(run_at=NOW + 1),
    "requeue at once": Requeue(run_at=NOW + 5),
    "requeue for later": Requeue(run_at=LATER),
    "requeue with a payload": Requeue(run_at=NOW + 1, payload=b"new"),
    "requeue with a key": Requeue(run_at=NOW + 1, payload=b"new", key="new key"),
    "discard": Discard(),
}


async def _one_of_each(store: Store, about: str) -> dict[str, JobStatus]:
    """A job in every status, with a key and a unique key of its own. Those that have run have all that a run leaves."""
    ids = {f"{about}: {status}": status for status in STATUSES}
    unclaimed = {JobStatus.SCHEDULED: LATER, JobStatus.WAITING: NOW, JobStatus.QUEUED: NOW}
    run = {id: status for id, status in ids.items() if status not in unclaimed}
    await add(store, *(_own(id) for id in run))
    for claimed in await claim(store, MANY):
        await store.note([ProgressNote(claimed.id, claimed.fence, Progress(1))])
        if run[claimed.id] is not JobStatus.PROCESSING:
            said = _end(claimed, run[claimed.id], run_at=LATER, result=b"r", keep_until=NOW + 500)
            await finish(store, said)
    needs = {JobStatus.WAITING: (Need(f"{about}: {JobStatus.PROCESSING}"),)}
    rest = ((id, status) for id, status in ids.items() if status in unclaimed)
    await add(store, *(_own(id, run_at=unclaimed[status], needs=needs.get(status, ())) for id, status in rest))
    equal([one.status for one in (await _records(store, list(ids))).values()], list(STATUSES), "one of each")
    return ids


def _own(id: str, **more: Any) -> NewJob:
    return job(id, key=id, unique_key=id, head_start=5, payload=b"old", **more)


async def check_changes_are_allowed_and_made_as_the_original_says(lab: Lab) -> None:
    """Status by change."""
    store = lab.store
    for name, change in CHANGES.items():
        ids = await _one_of_each(store, name)
        before = await _records(store, list(ids))
        answers = await store.amend(list(ids), change, NOW + 5)
        wanted = [Amended(id, ok=allows(status, change), status=status) for id, status in ids.items()]
        equal(answers, wanted, f"what {name} returns")
        jobs = {id: _amended(record, change) for id, record in before.items()}
        line = parked(record for record in jobs.values() if record is not None)
        for id, got in zip(ids, await store.get(list(ids)), strict=True):
            record = jobs[id]
            equal(got, record and replace(record, parked=id in line), f"the job after {id!r}")
        await _leave_nothing(store, list(ids))


def _amended(record: JobRecord, change: Change) -> JobRecord | None:
    return amended(record, change, NOW + 5) if allows(record.status, change) else record


async def _leave_nothing(store: Store, ids: Sequence[str]) -> None:
    """End and delete these jobs, so that the next ones are claimed alone."""
    await store.amend(ids, Cancel(), NOW)
    records = [record for record in await store.get(ids) if record is not None]
    await finish(store, *(outcome(one.claimed(), JobStatus.CANCELLED) for one in records if one.status.live))
    await store.amend(ids, Discard(), NOW)


async def check_every_status_is_found_by_its_name(lab: Lab) -> None:
    """Whatever number a store keeps it under."""
    ids = await _one_of_each(lab.store, "find")
    for id, status in ids.items():
        found = await lab.store.find(JobFilter(status=(status,)))
        equal([(record.id, record.status) for record in found], [(id, status)], f"jobs found as {status}")
    await add(lab.store, job("1", tags=("red",)), job("2", tags=("red",)))
    twice = (JobStatus.QUEUED, JobStatus.QUEUED)
    found = await lab.store.find(JobFilter(tag="red", status=twice, limit=2))
    equal([record.id for record in found], ["2", "1"], "jobs found by a status that is given twice")


# ── parking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_keys_are_parked_as_the_original_says(lab: Lab) -> None:
    """How many run, by the limits of three that wait, by the order in which they arrive: each case is a key."""
    store = lab.store
    ids: list[str] = []
    cases = [*product(range(3), product((1, 2, 3), repeat=3), ("forward", "backward"))]
    first = [
        job(f"{number}-run{n}", key=f"{number}", key_limit=9, run_at=NOW - 99)
        for number, (running, _, _) in enumerate(cases)
        for n in range(running)
    ]
    await add(store, *first)
    held = {claimed.id: claimed for claimed in await claim(store, MANY)}
    ids += held
    for place in range(3):
        batch = [_arrival(number, limits, place, order) for number, (_, limits, order) in enumerate(cases)]
        await add(store, *batch)
        ids += [one.id for one in batch]
        await _is_parked_right(store, ids, f"when {place + 1} have arrived")
    await finish(store, *(outcome(claimed) for id, claimed in held.items() if id.endswith("run0")))
    await _is_parked_right(store, ids, "when one of those that ran has ended")
    taken = await claim(store, MANY)
    await _is_parked_right(store, ids, "when all that were free run")
    await store.amend([id for id in ids if id.endswith("-1")], Cancel(), NOW)
    await _is_parked_right(store, ids, "when the second of each is cancelled")
    again = [one for one in taken if not one.id.endswith("-1")]
    await finish(store, *(outcome(one, JobStatus.QUEUED, run_at=one.run_at) for one in again))
    await _is_parked_right(store, ids, "when those that ran are handed back")
    await finish(store, *(outcome(one, JobStatus.DEAD) for one in await claim(store, MANY)))
    await _is_parked_right(store, ids, "when some have died")
    await store.amend(ids, Requeue(run_at=NOW - 50), NOW)
    await _is_parked_right(store, ids, "when all that have ended are requeued")


def _arrival(number: int, limits: Sequence[int], place: int, order: str) -> NewJob:
    """The next job of a case. Going backward, each one ranks ahead of those before it."""
    rank = place if order == "forward" else -place
    return job(f"{number}-{place}", key=f"{number}", key_limit=limits[place], run_at=NOW - 9 + rank)


async def _is_parked_right(store: Store, ids: Sequence[str], about: str) -> None:
    records = (await _records(store, ids)).values()
    equal({record.id for record in records if record.parked}, parked(records), f"parked {about}")
