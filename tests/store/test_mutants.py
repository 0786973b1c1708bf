"""The suite can fail: each of these stores breaks one promise, and the check that guards it notices."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.admission import Choice
from shiftwork.core.model import Beat, Doc, JobRecord, NewJob, Outcome
from shiftwork.store.bells import Bells
from shiftwork.store.memory import MemoryStore
from shiftwork.store.memory import store as memory_store
from shiftwork.store.memory.docs import DocTable
from shiftwork.store.memory.jobs import JobTable, Line
from shiftwork.store.memory.leases import Instances, Places
from shiftwork.store.memory.states import StateTable
from shiftwork.store.memory.totals import Totals
from shiftwork.store.protocol import Claims, Promoted
from shiftwork.testing import CHECKS, StoreFactory, check_store, expect, run_check, suite

Patch = pytest.MonkeyPatch
CHECK = {check.__name__.removeprefix("check_"): check for check in CHECKS}


def no_fence(patch: Patch) -> None:
    async def finish(self: MemoryStore, outcomes: Sequence[Outcome], now: float) -> Any:
        jobs = self._jobs.by_id
        current = [replace(one, fence=jobs[one.id].fence) if one.id in jobs else one for one in outcomes]
        return await genuine(self, current, now)

    genuine = MemoryStore.finish
    patch.setattr(MemoryStore, "finish", finish)


def reaping_keeps_the_fence(patch: Patch) -> None:
    async def reap(self: MemoryStore, holder: str, n: int, now: float) -> list[JobRecord]:
        before = {id: job.fence for id, job in self._jobs.by_id.items()}
        for record in (taken := await genuine(self, holder, n, now)):
            self._jobs.write(replace(self._jobs.by_id[record.id], fence=before[record.id]))
        return [replace(record, fence=before[record.id]) for record in taken]

    genuine = MemoryStore.reap
    patch.setattr(MemoryStore, "reap", reap)


def fences_begin_anew(patch: Patch) -> None:
    patch.setattr(MemoryStore, "_next_fence", lambda _: 1)


def the_living_are_reaped(patch: Patch) -> None:
    patch.setattr(Instances, "live", lambda _, __: {})


def the_lost_come_back(patch: Patch) -> None:
    def renew(self: Instances, beat: Beat, ttl: float, now: float) -> bool:
        self.lost.clear()
        return genuine(self, beat, ttl, now)

    genuine = Instances.renew
    patch.setattr(Instances, "renew", renew)


def no_unique_key(patch: Patch) -> None:
    patch.setattr(MemoryStore, "_add", _without(MemoryStore._add, "unique_key"))


def no_concurrency_key(patch: Patch) -> None:
    patch.setattr(MemoryStore, "_add", _without(MemoryStore._add, "key"))


def nobody_overtakes(patch: Patch) -> None:
    def repark(self: JobTable, changed: JobRecord) -> None:
        if changed.key is None or not self._groups[changed.worker, changed.key].free:
            genuine(self, changed)

    genuine = JobTable._repark
    patch.setattr(JobTable, "_repark", repark)


def no_admission(patch: Patch) -> None:
    def choose(candidates: dict[str, list[Any]], *_: Any, limit: int, now: float) -> Choice:
        heads = sorted((head.rank, head.id, name) for name, heads in candidates.items() for head in heads)[:limit]
        return Choice([id for _, id, _ in heads], {name: 1 for _, _, name in heads}, {}, None)

    patch.setattr(memory_store, "choose", choose)


def nobody_is_served(patch: Patch) -> None:
    genuine = MemoryStore._facts
    patch.setattr(MemoryStore, "_facts", lambda self, who, now: _unserved(genuine(self, who, now)))


def pauses_are_ignored(patch: Patch) -> None:
    patch.setattr(DocTable, "_read", lambda *_: None)


def one_too_many(patch: Patch) -> None:
    async def claim(self: MemoryStore, instance: str, pool: str, n: int, *rest: Any) -> Claims:
        return await genuine(self, instance, pool, n + 1, *rest)

    genuine = MemoryStore.claim
    patch.setattr(MemoryStore, "claim", claim)


def latest_first(patch: Patch) -> None:
    patch.setattr(Line, "until", lambda self, at, n: [id for when, id in self if when <= at][::-1][:n])


def nothing_is_ever_due(patch: Patch) -> None:
    async def promote(self: MemoryStore, n: int, now: float) -> Promoted:
        return await genuine(self, n, now - 0.5)

    genuine = MemoryStore.promote
    patch.setattr(MemoryStore, "promote", promote)


def pruning_leaves_the_numbers(patch: Patch) -> None:
    patch.setattr(JobTable, "delete", lambda self, id: self.by_id.pop(id))


def the_last_writer_wins(patch: Patch) -> None:
    def put(self: DocTable, doc: Doc) -> bool:
        there = self._docs.get((doc.kind, doc.name))
        return genuine(self, replace(doc, version=there.version if there else 0))

    genuine = DocTable.put
    patch.setattr(DocTable, "put", put)


def everybody_leads(patch: Patch) -> None:
    patch.setattr(Places, "hold", lambda *_, **__: True)


def what_is_restored_counts_as_added(patch: Patch) -> None:
    patch.setattr(Totals, "know", Totals.added)


def what_is_restored_is_kept_for_ever(patch: Patch) -> None:
    async def restore(self: MemoryStore, jobs: Sequence[JobRecord], now: float) -> None:
        await genuine(self, [replace(job, keep_until=None) for job in jobs], now)

    genuine = MemoryStore.restore
    patch.setattr(MemoryStore, "restore", restore)


def what_was_there_stays(patch: Patch) -> None:
    async def restore(self: MemoryStore, jobs: Sequence[JobRecord], now: float) -> None:
        await genuine(self, [job for job in jobs if job.id not in self._jobs.by_id], now)

    genuine = MemoryStore.restore
    patch.setattr(MemoryStore, "restore", restore)


def states_are_left_behind(patch: Patch) -> None:
    patch.setattr(StateTable, "keep", lambda *_: None)


def fences_of_the_other_store_are_ignored(patch: Patch) -> None:
    async def take_over(self: MemoryStore, states: Any, totals: Any, _: int) -> int:
        return await genuine(self, states, totals, 0)

    genuine = MemoryStore.take_over
    patch.setattr(MemoryStore, "take_over", take_over)


def no_bell_rings(patch: Patch) -> None:
    patch.setattr(Bells, "ring", lambda *_: None)


def gates_open_in_silence(patch: Patch) -> None:
    patch.setattr(JobTable, "stir", lambda *_: None)


def claims_look_at_every_job(patch: Patch) -> None:
    async def claim(self: MemoryStore, *args: Any) -> Claims:
        sorted(self._jobs.by_id.values(), key=lambda job: job.rank)
        return await genuine(self, *args)

    genuine = MemoryStore.claim
    patch.setattr(MemoryStore, "claim", claim)


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (no_fence, "a_stale_outcome_is_refused_and_changes_nothing"),
    (no_fence, "what_the_dead_held_is_taken_under_a_new_fence"),
    (reaping_keeps_the_fence, "what_the_dead_held_is_taken_under_a_new_fence"),
    (fences_begin_anew, "fences_only_grow"),
    (the_living_are_reaped, "nothing_is_taken_from_the_living"),
    (the_lost_come_back, "the_lost_are_told_for_ever"),
    (no_unique_key, "a_unique_key_is_taken_by_every_live_status"),
    (no_unique_key, "the_same_job_is_added_once"),
    (no_concurrency_key, "jobs_behind_a_taken_key_are_parked"),
    (no_concurrency_key, "keys_never_overlap"),
    (nobody_overtakes, "a_later_job_that_ranks_ahead_takes_the_place"),
    (no_admission, "conflicts_hold_across_pools_in_both_directions"),
    (no_admission, "conflicts_never_overlap"),
    (no_admission, "a_dependency_must_have_succeeded"),
    (no_admission, "a_rate_limit_lets_a_burst_through_and_then_spaces"),
    (no_admission, "a_half_open_breaker_lets_one_probe_through"),
    (no_admission, "max_running_holds_for_all_instances_together"),
    (nobody_is_served, "a_job_that_waits_on_a_conflict_is_not_passed"),
    (pauses_are_ignored, "a_paused_pool_hands_out_nothing"),
    (one_too_many, "never_more_than_asked_for"),
    (latest_first, "due_jobs_are_promoted_earliest_first"),
    (nothing_is_ever_due, "due_jobs_are_promoted_earliest_first"),
    (pruning_leaves_the_numbers, "pruning_leaves_nothing"),
    (the_last_writer_wins, "docs_are_written_by_compare_and_set"),
    (the_last_writer_wins, "no_write_of_a_doc_is_lost"),
    (everybody_leads, "a_place_has_one_holder"),
    (what_is_restored_counts_as_added, "restored_jobs_are_counted_once_and_not_as_added"),
    (what_is_restored_is_kept_for_ever, "a_restored_job_takes_the_place_of_what_was_there"),
    (what_was_there_stays, "a_restored_job_takes_the_place_of_what_was_there"),
    (states_are_left_behind, "states_are_taken_over"),
    (fences_of_the_other_store_are_ignored, "fences_go_on_above_those_of_another_store"),
    (no_bell_rings, "restoring_rings"),
    (no_bell_rings, "a_pool_rings_when_a_job_becomes_ready"),
    (gates_open_in_silence, "a_pool_rings_when_a_conflict_is_over"),
    (claims_look_at_every_job, "claims_beside_scheduled_jobs"),
]


def healthy() -> Callable[[], MemoryStore]:
    store = MemoryStore()
    return lambda: store


@pytest.mark.parametrize(
    ("mutate", "noticed_by"), MUTANTS, ids=[f"{mutate.__name__}-{check}" for mutate, check in MUTANTS]
)
async def test_a_broken_promise_is_noticed(
    mutate: Callable[[Patch], None], noticed_by: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(expect, "PATIENCE", 0.2)
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        await run_check(CHECK[noticed_by], healthy)


async def test_check_store_names_every_check_that_failed(monkeypatch: Patch) -> None:
    names = ["the_same_id_is_one_job", "a_place_has_one_holder", "every_filter_filters", "no_write_of_a_doc_is_lost"]
    monkeypatch.setattr(suite, "CHECKS", [CHECK[name] for name in names])
    await check_store(healthy)
    everybody_leads(monkeypatch)
    the_last_writer_wins(monkeypatch)
    with pytest.raises(ExceptionGroup) as caught:
        await check_store(healthy)
    told = "2 of 4 checks failed: check_a_place_has_one_holder, check_no_write_of_a_doc_is_lost"
    assert told in str(caught.value)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["check_a_place_has_one_holder"], ["check_no_write_of_a_doc_is_lost"]]


async def test_a_store_that_fails_to_open_is_a_failed_check(monkeypatch: Patch) -> None:
    def broken() -> Callable[[], MemoryStore]:
        raise OSError("no room")

    factory: StoreFactory = broken
    monkeypatch.setattr(suite, "CHECKS", [CHECK["the_same_id_is_one_job"]])
    with pytest.raises(ExceptionGroup, match="1 of 1 checks failed"):
        await check_store(factory)


def _without(genuine: Callable[..., Any], field: str) -> Callable[..., Any]:
    def add(self: MemoryStore, table: JobTable, job: NewJob, now: float) -> Any:
        return genuine(self, table, replace(job, **{field: None}), now)

    return add


def _unserved(facts: Any) -> Any:
    facts.served = set()
    return facts
