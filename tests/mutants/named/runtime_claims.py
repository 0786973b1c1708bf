"""Breakages of what a node does: it claims, keeps leases, writes outcomes."""

from typing import Final

from tests.mutants.mutant import Mutant, table

RUNTIME_CLAIMS: Final = table(
    "runtime/",
    Mutant(
        "what a lost answer brought is never handed back",
        "claiming/job_claimer.py",
        "        if self.in_doubt:\n            await self.reconcile()\n        self.refill()",
        "        self.refill()",
        ("tests/runtime/test_store_faults.py::test_a_claim_whose_answer_was_lost_is_handed_back_uncounted",),
    ),
    Mutant(
        "what runs here is handed back as unknown",
        "claiming/job_claimer.py",
        "known = self._runs.active.keys() | self._prefetched",
        "known = self._prefetched",
        ("tests/runtime/test_claiming_ahead.py::test_it_is_no_stray_after_a_claim_whose_answer_was_lost",),
    ),
    Mutant(
        "a claim that comes after the lease is started",
        "claiming/job_claimer.py",
        "        if self._serves_as(instance):\n            for job in complete",
        "        if instance:\n            for job in complete",
        ("tests/runtime/test_stopping.py::test_what_a_claim_brings_while_stopping_is_handed_back_unstarted",),
    ),
    Mutant(
        "a cancelled job waits on for its slot",
        "claiming/job_claimer.py",
        "            self._ender.end(job, End(EndKind.CANCELLED), self._clock.now())",
        "            self._prefetched.put(job)",
        ("tests/runtime/test_claiming_ahead.py::test_cancelled_it_ends_at_once_and_never_runs",),
    ),
    Mutant(
        "jobs that wait for a slot are kept by an instance that stops",
        "claiming/pool_instance.py",
        "        self.lease.draining = True\n        self.claimer.hand_back()\n",
        "        self.lease.draining = True\n",
        ("tests/runtime/test_claiming_ahead.py::test_a_stop_hands_it_back",),
    ),
    Mutant(
        "an instance that lost its lease goes on under its name",
        "claiming/pool_instance.py",
        "        if lost:\n            self.lease.rename()\n",
        "",
        ("tests/runtime/test_leases.py::test_a_job_that_comes_back_while_its_lost_run_still_stops_is_not_lost",),
    ),
    Mutant(
        "no deadline is watched",
        "claiming/runs.py",
        "            self._deadlines.watch(run, timeout)\n",
        "            pass\n",
        (
            "tests/runtime/test_running.py::test_a_coroutine_that_ends_well_after_its_timeout_has_timed_out_all_the_same",
        ),
    ),
    Mutant(
        "a job that killed its process runs among others",
        "claiming/runs.py",
        "if job.crashes and self._isolation is not None:",
        "if job.crashes > 100 and self._isolation is not None:",
        ("tests/runtime/test_processes.py::test_a_job_that_has_killed_its_process_before_runs_apart_from_others",),
    ),
    Mutant(
        "a cancel reaches a later run of the job",
        "claiming/runs.py",
        "if run is not None and run.job.fence == fence:",
        "if run is not None:",
        ("tests/runtime/test_processes.py::test_a_cancel_is_for_one_run_and_the_first_reason_to_stop_it_stays",),
    ),
    Mutant(
        "a run that never began has waited for nothing",
        "claiming/runs.py",
        "            if end.kind is EndKind.DRAINED and not run.begun:\n                end = replace(end, begun=False)\n",
        "",
        (
            "tests/runtime/test_processes.py::test_runs_that_have_not_begun_are_taken_back_together_when_all_are_stopped",
        ),
    ),
    Mutant(
        "the second reason to stop a run replaces the first",
        "claiming/runs.py",
        "if not run.ended and run.stopped_as is None:",
        "if not run.ended:",
        ("tests/runtime/test_processes.py::test_a_cancel_is_for_one_run_and_the_first_reason_to_stop_it_stays",),
    ),
    Mutant(
        "an outcome is dropped when the store fails",
        "outcomes/outbox.py",
        "                repeated = True\n                await pause(self._clock, RETRY_SECONDS)\n",
        "                return\n",
        ("tests/app/test_health.py::test_a_write_that_fails_is_a_problem_until_one_succeeds",),
    ),
    Mutant(
        "an outcome that was written is reported as rejected",
        "outcomes/outbox.py",
        "                if repeated:\n",
        "                if repeated is None:\n",
        ("tests/runtime/test_store_faults.py::test_a_worker_that_was_disabled_unheard_is_said_to_be_disabled",),
    ),
    Mutant(
        "a stale outcome counts as ours",
        "outcomes/outbox.py",
        "if record and record.fence == outcome.fence and record.status is not",
        "if record and record.status is not",
        ("tests/runtime/test_leases.py::test_a_stale_end_is_refused_and_the_lost_instance_goes_on_under_a_new_name",),
    ),
    Mutant(
        "an end counts twice for a breaker",
        "outcomes/breaker_stepper.py",
        "                self._judged.add(name)\n",
        "                pass\n",
        ("tests/runtime/test_store_faults.py::test_a_failure_that_a_breaker_heard_of_unheard_counts_once",),
    ),
    Mutant(
        "jobs run on after their lease has ended",
        "node/lease_renewer.py",
        "return renewed_at + self._ttl * LEASE_STOP_SHARE",
        "return renewed_at + self._ttl * 10",
        ("tests/runtime/test_leases.py::test_a_renewal_whose_reply_took_longer_than_the_lease_is_repeated_at_once",),
    ),
    Mutant(
        "a renewal whose reply took too long counts",
        "node/lease_renewer.py",
        "        if until <= self._clock.monotonic():\n            raise",
        "        if until <= 0:\n            raise",
        ("tests/runtime/test_leases.py::test_a_renewal_whose_reply_took_longer_than_the_lease_is_repeated_at_once",),
    ),
    Mutant(
        "runs go on although the leases cannot be renewed",
        "node/lease_renewer.py",
        "            self._holders.step_down()",
        "            pass",
        ("tests/runtime/test_leases.py::test_a_store_that_does_not_answer_is_as_bad_as_one_that_fails",),
    ),
    Mutant(
        "orders of the store are not obeyed",
        "node/lease_renewer.py",
        "            self._holders.obey(orders)\n",
        "            pass\n",
        ("tests/cli/test_run.py::test_cancelling_a_running_job",),
    ),
)
