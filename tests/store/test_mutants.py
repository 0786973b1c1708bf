"""The suite can fail: each of these stores breaks one promise, and the check that guards it notices."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from shiftwork.core.jobs import parked_jobs, transitions
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Change, JobFilter, Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat
from shiftwork.core.workers import state as worker_state
from shiftwork.core.workers.admission import Choice
from shiftwork.store.bells import Bells
from shiftwork.store.docs import DocsOfClaims
from shiftwork.store.memory import MemoryStore
from shiftwork.store.memory import add as memory_add
from shiftwork.store.memory import amend as memory_amend
from shiftwork.store.memory import claim as memory_claim
from shiftwork.store.memory import finish as memory_finish
from shiftwork.store.memory import rows as memory_rows
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.docs import DocTable
from shiftwork.store.memory.facts import StateTable
from shiftwork.store.memory.lease import Instances, Places
from shiftwork.store.memory.rows import JobTable, OrderedIds
from shiftwork.store.memory.stats import Totals
from shiftwork.store.postgres.server import functions
from shiftwork.store.protocol import Claims, Promoted
from shiftwork.store.redis import lua
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.sql import SQL
from tests.store.conformance import expect, suite
from tests.store.conformance.checks import claim_cost
from tests.store.conformance.suite import CHECKS, check_store, run_check
from tests.store.conftest import on_server
from tests.store.servers.postgres import names, server_url
from tests.store.servers.sessions import end_kept_sessions, keep_sessions

if TYPE_CHECKING:
    from tests.store.conformance.lab import StoreFactory

Patch = pytest.MonkeyPatch
CHECK = {check.__name__.removeprefix("check_"): check for check in CHECKS}


@pytest.fixture(scope="module", autouse=True)
def sessions() -> Iterator[None]:
    yield
    end_kept_sessions()


def no_fence(patch: Patch) -> None:
    async def finish(self: MemoryStore, outcomes: Sequence[Outcome], now: float) -> Any:
        jobs = self._tables.jobs.by_id
        current = [replace(one, fence=jobs[one.id].fence) if one.id in jobs else one for one in outcomes]
        return await genuine(self, current, now)

    genuine = MemoryStore.finish
    patch.setattr(MemoryStore, "finish", finish)


def reaping_keeps_the_fence(patch: Patch) -> None:
    async def reap(self: MemoryStore, holder: str, n: int, now: float) -> list[JobRecord]:
        before = {id: job.fence for id, job in self._tables.jobs.by_id.items()}
        for record in (taken := await genuine(self, holder, n, now)):
            self._tables.jobs.write(replace(self._tables.jobs.by_id[record.id], fence=before[record.id]))
        return [replace(record, fence=before[record.id]) for record in taken]

    genuine = MemoryStore.reap
    patch.setattr(MemoryStore, "reap", reap)


def fences_begin_anew(patch: Patch) -> None:
    patch.setattr(Tables, "next_fence", lambda _: 1)


def the_living_are_reaped(patch: Patch) -> None:
    patch.setattr(Instances, "live", lambda _, __: {})


def the_lost_come_back(patch: Patch) -> None:
    def renew(self: Instances, beat: Beat, ttl: float, now: float) -> bool:
        self.lost.clear()
        return genuine(self, beat, ttl, now)

    genuine = Instances.renew
    patch.setattr(Instances, "renew", renew)


def no_unique_key(patch: Patch) -> None:
    patch.setattr(memory_add, "_add_full", _without(memory_add._add_full, "unique_key"))


def no_concurrency_key(patch: Patch) -> None:
    patch.setattr(memory_add, "_add_full", _without(memory_add._add_full, "key"))


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

    patch.setattr(memory_claim, "choose", choose)


def nobody_is_served(patch: Patch) -> None:
    genuine = Tables.facts
    patch.setattr(Tables, "facts", lambda self, who, now: _unserved(genuine(self, who, now)))


def pauses_are_ignored(patch: Patch) -> None:
    patch.setattr(DocsOfClaims, "keep", lambda *_: None)


def one_too_many(patch: Patch) -> None:
    async def claim(self: MemoryStore, instance: str, pool: str, n: int, *rest: Any, **more: Any) -> Claims:
        return await genuine(self, instance, pool, n + 1, *rest, **more)

    genuine = MemoryStore.claim
    patch.setattr(MemoryStore, "claim", claim)


def editions_are_ignored(patch: Patch) -> None:
    async def claim(self: MemoryStore, *args: Any, edition: str | None = None) -> Claims:
        return await genuine(self, *args, edition=edition and self._tables.docs.of_claims.edition)

    genuine = MemoryStore.claim
    patch.setattr(MemoryStore, "claim", claim)


def latest_first(patch: Patch) -> None:
    patch.setattr(OrderedIds, "until", lambda self, at, n: [id for when, id in self if when <= at][::-1][:n])


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


def any_version_is_erased(patch: Patch) -> None:
    patch.setattr(DocTable, "erase", lambda self, doc: self._docs.pop((doc.kind, doc.name), None) is not None)


def claims_remember_an_erased_doc(patch: Patch) -> None:
    def erase(self: DocTable, doc: Doc) -> bool:
        there = self._docs.get((doc.kind, doc.name))
        return there is not None and there.version == doc.version and bool(self._docs.pop((doc.kind, doc.name)))

    patch.setattr(DocTable, "erase", erase)


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
        await genuine(self, [job for job in jobs if job.id not in self._tables.jobs.by_id], now)

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
    patch.setattr(JobTable, "wake_workers", lambda *_: None)


def claims_look_at_every_job(patch: Patch) -> None:
    async def claim(self: MemoryStore, *args: Any, **more: Any) -> Claims:
        sorted(self._tables.jobs.by_id.values(), key=lambda job: (job.rank, job.id))
        return await genuine(self, *args, **more)

    genuine = MemoryStore.claim
    patch.setattr(MemoryStore, "claim", claim)


# ── the originals in core, as a store might call or repeat them wrongly ─────────────────────────────────────────────


def retries_are_scheduled(patch: Patch) -> None:
    def landed(job: JobRecord, outcome: Outcome, now: float) -> JobRecord:
        settled = transitions.landed(job, outcome, now)
        return replace(settled, status=JobStatus.SCHEDULED) if settled.status is JobStatus.FAILED else settled

    patch.setattr(memory_finish, "landed", landed)


def cancel_requests_are_forgotten(patch: Patch) -> None:
    patch.setattr(memory_finish, "landed", lambda job, *rest: transitions.landed(replace(job, cancelling=False), *rest))


def cancelled_runs_are_kept_for_ever(patch: Patch) -> None:
    def landed(job: JobRecord, outcome: Outcome, now: float) -> JobRecord:
        return replace(transitions.landed(job, outcome, now), keep_until=outcome.keep_until)

    patch.setattr(memory_finish, "landed", landed)


def what_an_outcome_says_is_an_end(patch: Patch) -> None:
    patch.setattr(
        memory_finish, "after_run", lambda state, outcome, _: worker_state.after_run(state, outcome, outcome.status)
    )


def last_ends_move_back(patch: Patch) -> None:
    def after_run(state: WorkerState, outcome: Outcome, status: JobStatus) -> bool:
        disabled = worker_state.after_run(state, outcome, status)
        state.last_ended = state.last_ended if status.live else outcome.ended_at
        return disabled

    patch.setattr(memory_finish, "after_run", after_run)
    patch.setattr(memory_amend, "after_end", lambda state, now: setattr(state, "last_ended", now))


def one_failure_more_is_allowed(patch: Patch) -> None:
    def after_run(state: WorkerState, outcome: Outcome, status: JobStatus) -> bool:
        limit = outcome.disable_after
        return worker_state.after_run(state, replace(outcome, disable_after=limit and limit + 1), status)

    patch.setattr(memory_finish, "after_run", after_run)


def completed_jobs_are_requeued(patch: Patch) -> None:
    patch.setattr(
        memory_amend,
        "allows",
        lambda status, change: status is JobStatus.COMPLETED or transitions.allows(status, change),
    )


def requeued_jobs_keep_their_counts(patch: Patch) -> None:
    def amended(job: JobRecord, change: Change, now: float) -> JobRecord | None:
        changed = transitions.amended(job, change, now)
        return changed and replace(changed, attempt=job.attempt)

    patch.setattr(memory_amend, "amended", amended)


def a_higher_limit_passes_a_lower_one(patch: Patch) -> None:
    def free(queued: Iterable[tuple[str, int]], *, processing: int) -> Iterator[str]:
        for id, limit in queued:
            if processing < limit:
                processing += 1
                yield id

    patch.setattr(memory_rows, "free", free)


def running_jobs_take_no_place(patch: Patch) -> None:
    patch.setattr(memory_rows, "free", lambda queued, **_: parked_jobs.free(queued, processing=0))


def ids_do_not_count(patch: Patch) -> None:
    genuine = memory_rows.OrderedIds.before
    patch.setattr(memory_rows.OrderedIds, "before", lambda self, at, _: genuine(self, at, ""))


def dead_jobs_are_found_as_cancelled(patch: Patch) -> None:
    async def find(self: MemoryStore, wanted: JobFilter) -> list[JobRecord]:
        swapped = {JobStatus.DEAD: JobStatus.CANCELLED, JobStatus.CANCELLED: JobStatus.DEAD}
        return await genuine(self, replace(wanted, status=tuple(swapped.get(one, one) for one in wanted.status or ())))

    genuine = MemoryStore.find
    patch.setattr(MemoryStore, "find", find)


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
    (ids_do_not_count, "jobs_of_one_rank_are_in_the_order_of_their_ids"),
    (no_admission, "conflicts_hold_across_pools_in_both_directions"),
    (no_admission, "conflicts_never_overlap"),
    (no_admission, "a_dependency_must_have_succeeded"),
    (no_admission, "a_rate_limit_lets_a_burst_through_and_then_spaces"),
    (no_admission, "a_half_open_breaker_lets_one_probe_through"),
    (no_admission, "max_running_holds_for_all_instances_together"),
    (nobody_is_served, "a_job_that_waits_on_a_conflict_is_not_passed"),
    (pauses_are_ignored, "a_paused_pool_hands_out_nothing"),
    (one_too_many, "never_more_than_asked_for"),
    (editions_are_ignored, "a_claim_gets_nothing_where_its_edition_is_not"),
    (editions_are_ignored, "a_new_edition_counts_at_once_and_a_damaged_one_is_none"),
    (latest_first, "due_jobs_are_promoted_earliest_first"),
    (nothing_is_ever_due, "due_jobs_are_promoted_earliest_first"),
    (pruning_leaves_the_numbers, "pruning_leaves_nothing"),
    (the_last_writer_wins, "docs_are_written_by_compare_and_set"),
    (the_last_writer_wins, "no_write_of_a_doc_is_lost"),
    (any_version_is_erased, "docs_are_erased_by_compare_and_set"),
    (claims_remember_an_erased_doc, "claims_forget_an_erased_doc"),
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
    (retries_are_scheduled, "outcomes_land_as_the_original_says"),
    (cancel_requests_are_forgotten, "outcomes_land_as_the_original_says"),
    (cancelled_runs_are_kept_for_ever, "outcomes_land_as_the_original_says"),
    (what_an_outcome_says_is_an_end, "outcomes_change_a_worker_as_the_original_says"),
    (last_ends_move_back, "outcomes_change_a_worker_as_the_original_says"),
    (last_ends_move_back, "cancelled_jobs_change_a_worker_as_the_original_says"),
    (one_failure_more_is_allowed, "outcomes_change_a_worker_as_the_original_says"),
    (completed_jobs_are_requeued, "changes_are_allowed_and_made_as_the_original_says"),
    (requeued_jobs_keep_their_counts, "changes_are_allowed_and_made_as_the_original_says"),
    (a_higher_limit_passes_a_lower_one, "keys_are_parked_as_the_original_says"),
    (running_jobs_take_no_place, "keys_are_parked_as_the_original_says"),
    (dead_jobs_are_found_as_cancelled, "every_status_is_found_by_its_name"),
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
    monkeypatch.setattr(claim_cost, "CROWD", 15_000)  # as in test_conformance
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        await run_check(CHECK[noticed_by], healthy)


REPEATED_IN_LUA: list[tuple[str, str, str, str]] = [
    (
        "finish_full",
        "return said == STATUS_FAILED and STATUS_FAILED or STATUS_SCHEDULED",
        "return STATUS_SCHEDULED",
        "outcomes_land",
    ),
    ("finish_full", "elseif is(job, FLAG_CANCELLING) then", "elseif false then", "outcomes_land"),
    ("finish_full", "elseif run_at <= now then", "elseif run_at < now then", "outcomes_land"),
    ("finish_full", "keep_until = now + SECONDS_A_DAY", "keep_until = now", "outcomes_land"),
    ("finish_full", "if moves and", "if", "outcomes_land"),
    ("finish_full", "return job.head_start", "return job.lead", "a_failed_attempt_ranks_behind"),
    ("worker_state", "state.failures < disable_after", "state.failures <= disable_after", "outcomes_change_a_worker"),
    ("worker_state", "or not state.on then", "then", "outcomes_change_a_worker"),
    ("worker_state", "if ended_at > state.ended then", "if true then", "outcomes_change_a_worker"),
    ("worker_state", "and ended_at >= state.wrong then", "then", "outcomes_change_a_worker"),
    ("finish_full", "after, said == STATUS_FAILED", "after, false", "outcomes_change_a_worker"),
    ("worker_state", "if ended_at > state.ended then", "if true then", "cancelled_jobs_change_a_worker"),
    (
        "amend",
        "status == STATUS_QUEUED or status == STATUS_PROCESSING",
        "status == STATUS_PROCESSING",
        "changes_are_allowed_and_made",
    ),
    ("amend", "job.attempt, job.crashes, job.ended = 0, 0, NONE", "job.ended = NONE", "changes_are_allowed_and_made"),
    ("amend", "job.lead = job.head_start", "", "a_requeued_job_has_a_new_rank"),
    ("cancelling", "put_in(job, now + SECONDS_A_DAY)", "put_in(job, now)", "changes_are_allowed_and_made"),
    ("rewrite", "if now == old then", "if now then", "rewrites_are_made"),
    ("rewrite", "elseif now ~= new then", "elseif false then", "rewrites_are_made"),
    ("ahead", "if less(", "if not less(", "jobs_of_one_rank_are_in_the_order_of_their_ids"),
    ("ahead", "'(' .. rank", "rank", "positions_are_the_order_of_claims"),
    ("jobs", "local fits = free == position and", "local fits =", "keys_are_parked"),
    ("jobs", "group.running + free < job.limit", "free < job.limit", "keys_are_parked"),
    ("release_fast", "status == STATUS_COMPLETED or (whatever and", "(", "a_failure_does_not_release"),
    ("release_fast", "band(tonumber(waiters[at + 1]), NEED_WHATEVER) ~= 0", "true", "a_failure_does_not_release"),
    ("release_fast", "if call('HLEN', UNMET .. waiting) <= #met[waiting] then", "if true then", "a_job_waits_for_all"),
    ("needs", "job.run_at = math.max(job.run_at, now)", "", "a_job_waits_for_all"),
    ("release_full", "break_needs(ended)", "", "any_end_is_seen_through"),
    ("needs", "act(waiting) and is_waiting(waiting)", "act(waiting)", "a_job_is_stranded_until"),
    ("needs", "regained[#regained + 1] = other", "", "a_long_chain_is_stranded"),
    ("add_full", "or (\n      status == STATUS_WAITING", "or (\n      false", "a_job_that_is_added_behind"),
    ("add_full", "strand(one)\n    end", "end", "what_a_running_job_adds_may_be_stranded"),
    ("amend", "not (waits and call('EXISTS', BROKEN .. job.id) == 1)", "true", "a_job_is_stranded_until"),
    ("add_full", "need[2])", "true)", "ended_jobs_meet_needs"),
    ("add_full", "tie_to(one.job.id, waiters[at], kind)", "", "what_waits_for_a_parent"),
    (
        "add_full",
        "if band(tonumber(kind), NEED_ALONE) == 0 then",
        "if true then",
        "a_job_that_runs_after_its_own_parent",
    ),
    ("amend", "or is_needed(job)", "", "a_job_that_another_waits_for_is_not_discarded"),
    ("amend", "waits and STATUS_WAITING or", "", "a_cancelled_waiting_job_waits_again"),
    ("prune", "is_kept(id, state, flows[at])", "false", "results_are_kept_while_the_flow"),
    ("prune", "and other().is_awaited(id)", "and false", "a_job_that_another_waits_for_is_not_pruned"),
    ("prune", "other().give_up_waiters(id)", "", "a_job_that_another_waits_for_is_not_pruned"),
    ("prune", "status and status <= STATUS_CANCELLED", "false", "a_flow_is_kept"),
    ("prune", "cancelled > 0 and 'completed' or", "", "results_are_kept_while_a_job"),
    ("signals", ">= tonumber(nth)", "> 0", "a_signal_that_comes_early"),
    ("finish_full", "and math.min(outcome.run_at, now) or", "and outcome.run_at or", "a_signal_that_comes_early"),
    ("keep_step", "or job.fence ~= fence", "", "a_stale_step"),
    ("keep_step", "number > most or", "", "a_job_keeps_so_many_steps"),
    ("keep_step", "or bytes + size > most_bytes", "", "the_steps_of_a_job_have_so_many_bytes"),
    ("keep_step", "take_signal(key, taking)", "", "a_step_takes_the_first_signal"),
    ("send", "< most and", ">= 0 and", "a_job_keeps_so_many_signals"),
    ("send", "+ size <= most_bytes", ">= 0", "the_signals_of_a_job_have_so_many_bytes"),
    ("signals", "call('HINCRBY', key, 'signal bytes', -size)", "", "the_signals_of_a_job_have_so_many_bytes"),
    ("steps", "and bytes <= most_bytes", "", "a_run_reads_steps_in_pages"),
    ("finish_full", "LIMIT_FIRST_ATTEMPTS + 1, job", "1, job", "the_first_and_the_last_attempts"),
    ("claim_full", "set(job, FLAG_EXPIRES, false)", "", "a_job_that_has_started"),
]
"""A script or a part of scripts in Lua, what it says, what it says wrongly, and how the check that notices begins."""


@pytest.mark.parametrize("mutant", REPEATED_IN_LUA, ids=" ".join)
async def test_a_rule_repeated_wrongly_in_lua_is_noticed(
    mutant: tuple[str, str, str, str], valkey_url: str, monkeypatch: Patch
) -> None:
    file, right, wrong, noticed_by = mutant
    [check] = [check for name, check in CHECK.items() if name.startswith(noticed_by)]
    genuine = lua.source
    text = genuine(file)
    assert right in text
    monkeypatch.setattr(lua, "source", lambda name: text.replace(right, wrong) if name == file else genuine(name))
    lua.script.cache_clear()
    try:
        with pytest.raises(AssertionError):
            await run_check(check, on_server(valkey_url))
    finally:
        lua.script.cache_clear()


REPEATED_IN_FUNCTIONS: list[tuple[str, str, str]] = [
    ("WHEN t.status = 1 AND t.run_at > at THEN 1", "", "outcomes_land"),
    ("WHEN j.cancelling THEN 7", "", "outcomes_land"),
    ("WHEN t.run_at <= at THEN 3", "WHEN t.run_at < at THEN 3", "outcomes_land"),
    ("WHEN j.cancelling THEN at + 86400", "", "outcomes_land"),
    ("WHEN t.status < 5 AND moves[t.ord::integer] AND", "WHEN t.status < 5 AND", "outcomes_land"),
    ("moves[t.ord::integer] AND", "false AND", "outcomes_land"),
    ("state.failures >= limits[place]", "state.failures > limits[place]", "outcomes_change_a_worker"),
    (
        "state.failures >= limits[place] AND state.enabled",
        "state.failures >= limits[place]",
        "outcomes_change_a_worker",
    ),
    ("OR statuses[place] = 1", "", "outcomes_change_a_worker"),
    ("last_ended = greatest(l.last_ended, at)", "last_ended = l.last_ended", "cancelled_jobs_change_a_worker"),
    ("error = because, keep_until = at + 86400", "error = because, keep_until = at", "changes_are_allowed_and_made"),
    ("NOT IN (0, 1, 6, 7)", "NOT IN (0, 1, 5, 6, 7)", "changes_are_allowed_and_made"),
    ("attempt = 0, crashes = 0, ", "", "changes_are_allowed_and_made"),
    ("(j.rank, j.id) < (ranks[place]", "(j.rank, j.id) <= (ranks[place]", "positions_are_the_order_of_claims"),
    ("EXIT WHEN busy + cardinality", "CONTINUE WHEN busy + cardinality", "keys_are_parked"),
    ("EXIT WHEN busy + cardinality", "EXIT WHEN cardinality", "keys_are_parked"),
    ("AND n.needed = e.id AND j.status = 5", "AND n.needed = e.id", "a_failure_does_not_release"),
    ("lost := stranded;", "lost := '{}';", "any_end_is_seen_through_jobs_that_cannot_run"),
    ("AND j.status + 0 = 2 AND NOT EXISTS", "AND NOT EXISTS", "a_job_is_stranded_until_all_that_holds_it_is_retried"),
    (
        "regained := shiftwork.with_whole_needs(ns, waiters)",
        "regained := '{}'",
        "a_long_chain_is_stranded_and_regained",
    ),
    (
        "OR n.whatever AND p.lost",
        "OR n.whatever AND p.status > 5",
        "a_job_that_is_added_behind_a_stranded_one_starts_if_any_end_will_do",
    ),
    (
        "RETURN topics || shiftwork.lose(ns, at, stranded);",
        "RETURN topics;",
        "what_a_running_job_adds_may_be_stranded_at_once",
    ),
    ("PERFORM shiftwork.mend(ns, wanted);", "", "a_retry_runs_what_was_stranded_and_nothing_twice"),
    ("ELSE greatest(j.run_at, at) END", "ELSE j.run_at END", "a_job_waits_for_all_that_it_needs"),
    ("WHEN job.unmet IS NOT NULL THEN 2 ", "", "a_cancelled_waiting_job_waits_again_when_it_is_requeued"),
    ("'{0, 1, 2, 3, 4, 6}'", "'{0, 1, 2, 3, 4}'", "results_are_kept_while_the_flow_needs_them"),
    (" AND NOT n.alone", "", "a_job_that_runs_after_its_own_parent_waits_for_it_alone"),
    ("OR job.needed AND EXISTS (", "OR false AND EXISTS (", "a_job_that_another_waits_for_is_not_pruned"),
    ("OR u.cancelled AND job.status = 5", "", "results_are_kept_while_a_job_of_the_flow_may_be_retried"),
    ("AND j.id = f.flow", "AND false", "a_flow_is_kept_while_the_job_that_added_it_may_run_again"),
    ("least(t.run_at, at)", "t.run_at", "a_signal_that_comes_early_is_not_missed"),
]
"""What a function of PostgreSQL says, what it says wrongly, and how the check that notices begins."""


@pytest.mark.parametrize("mutant", REPEATED_IN_FUNCTIONS, ids=" ".join)
async def test_a_rule_repeated_wrongly_in_a_function_is_noticed(
    mutant: tuple[str, str, str], monkeypatch: Patch
) -> None:
    right, wrong, noticed_by = mutant
    genuine = functions.current().text
    assert right in genuine
    # A changed text is another version of the functions, which lies beside the genuine one.
    wrongly = functions.parse(genuine.replace(right, wrong))
    monkeypatch.setattr(functions, "current", lambda: wrongly)
    url = server_url(names()[0])
    factory = on_server(f"{url}{'&' if '?' in url else '?'}schema=mutants")
    keep_sessions(monkeypatch)
    with pytest.raises(AssertionError):
        await run_check(CHECK.get(f"{noticed_by}_as_the_original_says") or CHECK[noticed_by], factory)


REPEATED_IN_SQL: list[tuple[str, str, str, str]] = [
    ("requeue_job", "attempt = 0, ", "", "changes_are_allowed_and_made"),
    ("requeue_job", "progress = NULL", "progress = progress", "changes_are_allowed_and_made"),
    ("cancel_job", "status = 7", "status = 6", "changes_are_allowed_and_made"),
    ("return_job", "crashes = ?4", "crashes = crashes", "outcomes_land"),
    ("return_job", "WHEN ?9 THEN", "WHEN NOT ?9 THEN", "outcomes_land"),
    ("change_texts", "error = ?, progress = ?", "error = error, progress = ?2", "rewrites_are_made"),
    ("change_attempt", "body = ? WHERE", "body = body WHERE 1 OR ?1 = ?1 AND", "rewrites_are_made"),
    ("count_key_running", "status = 4", "status = 5", "keys_are_parked"),
    ("waiting_with_whole_needs", "AND jobs.status = 2", "", "a_job_is_stranded_until_all_that_holds_it_is_retried"),
    ("break_needs", "kind & 5 = 0", "kind = 4", "any_end_is_seen_through_jobs_that_cannot_run"),
    ("mend_needs", "kind >= 4", "kind = 7", "a_retry_runs_what_was_stranded_and_nothing_twice"),
    (
        "stranded_ids",
        "jobs.status = 2",
        "jobs.status = 6",
        "a_job_that_is_added_behind_a_stranded_one_starts_if_any_end_will_do",
    ),
    ("key_parked", "ORDER BY rank, id", "ORDER BY rank DESC, id", "keys_are_parked"),
    ("jobs_between", "rank = ?5 AND id < ?6", "rank = ?5 AND id <= ?6", "positions_are_the_order_of_claims"),
]


@pytest.mark.parametrize("mutant", REPEATED_IN_SQL, ids=" ".join)
async def test_a_rule_repeated_wrongly_in_sql_is_noticed(
    mutant: tuple[str, str, str, str], tmp_path: Path, monkeypatch: Patch
) -> None:
    statement, right, wrong, noticed_by = mutant
    assert right in SQL[statement]
    monkeypatch.setitem(SQL, statement, SQL[statement].replace(right, wrong))
    with pytest.raises(AssertionError):
        await run_check(
            CHECK.get(f"{noticed_by}_as_the_original_says") or CHECK[noticed_by],
            lambda: lambda: SqliteStore(str(tmp_path / "shiftwork.db")),
        )


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
    def add(tables: Tables, job: NewJob, now: float) -> Any:
        return genuine(tables, replace(job, **{field: None}), now)

    return add


def _unserved(facts: Any) -> Any:
    facts.served = set()
    return facts
