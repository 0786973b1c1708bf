"""Breakages of what happens to a run, in its process and out of it, and of what the leader does."""

from typing import Final

from tests.mutants.mutant import Mutant, table

RUNTIME_RUNS: Final = table(
    "runtime/",
    Mutant(
        "suspects of a crash are never told apart",
        "processes/quarantine.py",
        "half = len(runs) // 2",
        "half = 0",
        ("tests/runtime/test_processes.py::test_those_that_died_together_all_run_again_at_once",),
    ),
    Mutant(
        "the node reads late what has begun in a process",
        "processes/remote_runner.py",
        "[run for run in self._runs.values() if run.number in numbers]",
        "[run for run in self._runs.values() if self.began(run) is None]",
        (
            "tests/runtime/test_processes.py::test_what_the_process_has_taken_is_its_own_before_it_has_noted_the_beginning",
        ),
    ),
    Mutant(
        "a run that was taken back begins all the same",
        "processes/handover.py",
        "            if start.number == number:\n                return start",
        "            if start.number <= number:\n                return start",
        ("tests/runtime/test_processes.py::test_what_the_node_has_taken_back_is_not_begun",),
    ),
    Mutant(
        "what a dead process had not begun is lost",
        "processes/remote_runner.py",
        "        for run in unbegun:\n            self._hand_back(run)\n        if self._listener",
        "        if self._listener",
        ("tests/runtime/test_processes.py::test_a_process_that_begins_nothing_is_killed",),
    ),
    Mutant(
        "a deadline counts from when a run was sent",
        "claiming/runs.py",
        "left = seconds if began is None else began + seconds - now",
        "left = 0.0",
        ("tests/runtime/test_deadlines.py::test_a_run_has_its_whole_time_from_when_it_began",),
    ),
    Mutant(
        "a run that is over its time goes on",
        "claiming/runs.py",
        "            self._on_expired(run)",
        "            self._late[run] = now + seconds",
        ("tests/runtime/test_deadlines.py::test_a_run_has_its_whole_time_from_when_it_began",),
    ),
    Mutant(
        "a function that returns too late completes its job",
        "running/execute.py",
        "    if run.stopped_as in {EndKind.TIMED_OUT, EndKind.CANCELLED}:\n        return End(run.stopped_as)\n",
        "",
        ("tests/runtime/test_outages.py::test_a_timeout_ends_a_run_that_waits_for_the_store",),
    ),
    Mutant(
        "a function that caught the end of its run completes its job",
        "running/execute.py",
        "    if run.overruled is not None:\n        return run.overruled\n",
        "",
        ("tests/store/test_job_limits.py::test_a_step_without_room_ends_the_job",),
    ),
    Mutant(
        "a step that was kept runs again",
        "context/steps.py",
        "        if kept is not None:\n"
        "            self._current = None\n"
        "            if kept.name != name:\n"
        "                await self._fail_again(name, kept)\n"
        "        return kept",
        "        if kept is not None:\n"
        "            self._current = None\n"
        "            if kept.name != name:\n"
        "                await self._fail_again(name, kept)\n"
        "        return None",
        ("tests/app/test_durable.py::test_a_function_that_continues_although_its_step_may_not_be_kept_starts_over",),
    ),
    Mutant(
        "a step of another function is taken for this one",
        "context/kept_steps.py",
        "if step.name != name and step.name != failed(name):",
        "if step.name == '':",
        ("tests/app/test_durable.py::test_steps_that_changed_since_are_refused_with_a_reason_and_run_nothing",),
    ),
    Mutant(
        "a stale run goes on to its next step",
        "context/kept_steps.py",
        "        self.is_stale = True\n",
        "        pass\n",
        ("tests/app/test_durable.py::test_a_stale_run_begins_no_other_step_though_the_function_continues",),
    ),
    Mutant(
        "a stale run completes its job",
        "context/kept_steps.py",
        "        self._run.overruled = End(EndKind.LOST, error=message)\n",
        "",
        ("tests/app/test_durable.py::test_a_stale_run_does_not_complete_its_job_though_the_function_returns",),
    ),
    Mutant(
        "the second page of steps is not read",
        "context/kept_steps.py",
        "self.wants_page = self._has_more and not self._kept\n        self._done",
        "self.wants_page = False\n        self._done",
        ("tests/store/test_job_limits.py::test_a_full_job_is_shown_and_run_without_reading_all_of_it[memory]",),
    ),
    Mutant(
        "the failure that a function caught is not kept",
        "context/steps.py",
        "            await self._keep_failure(*self._failure)",
        "            pass",
        (
            "tests/app/test_durable.py::test_a_failure_that_no_later_run_could_raise_is_refused_when_the_function_continues",
        ),
    ),
    Mutant(
        "a sleep begins anew with each run",
        "context/steps.py",
        "until = now + seconds if kept is None else _read(kept, float)",
        "until = now + seconds",
        ("tests/app/test_durable.py::test_a_function_may_sleep_within_a_task_group",),
    ),
    Mutant(
        "a wait that is over goes on",
        "context/steps.py",
        "        if now >= until:\n            return await",
        "        if now >= until + 1:\n            return await",
        ("tests/app/test_durable.py::test_a_wait_that_takes_too_long_raises_and_the_function_may_continue",),
    ),
    Mutant(
        "the losses of a job are not counted",
        "leader/job_rescuer.py",
        "self._settle(record, losses)",
        "self._settle(record, 0)",
        ("tests/runtime/test_leases.py::test_the_job_of_a_node_that_vanished_is_not_blamed",),
    ),
    Mutant(
        "what was taken over without an answer is never settled",
        "leader/job_rescuer.py",
        "await self._unsettled() if self._in_doubt or self._late.due else []",
        "[]",
        ("tests/runtime/test_leases.py::test_a_recovery_that_a_fault_cuts_short_is_finished_by_the_same_leader",),
    ),
    Mutant(
        "a leader that slept takes the jobs of the living",
        "leader/job_rescuer.py",
        "        if now < self._recovers_at:\n            return self._recovers_at\n",
        "",
        ("tests/runtime/test_machine_failures.py::test_a_clock_that_is_set_moves_no_timeout",),
    ),
    Mutant(
        "a schedule's cursor moves before its job is added",
        "leader/worker_schedules.py",
        "        added = await self._store.add(jobs, now) if jobs else []\n"
        "        for name, fired in fires.items():\n"
        "            self._report_skipped(name, fired)\n"
        "        await self._advance(known, fires)\n",
        "        await self._advance(known, fires)\n"
        "        added = await self._store.add(jobs, now) if jobs else []\n"
        "        for name, fired in fires.items():\n"
        "            self._report_skipped(name, fired)\n",
        ("tests/runtime/test_schedules.py::test_a_crash_between_the_job_and_the_cursor_fires_once",),
    ),
    Mutant(
        "a schedule runs with the time it fired late",
        "leader/worker_schedules.py",
        "run_at=min(at, now)",
        "run_at=now",
        ("tests/runtime/test_schedules.py::test_what_was_missed_while_nothing_ran",),
    ),
    Mutant(
        "a stored schedule fires once and never again",
        "leader/stored_schedules.py",
        "            self._want(one.schedule.name, one.fire.next_at)\n",
        "            pass\n",
        (
            "tests/runtime/test_stored_schedules.py::test_a_fire_time_is_skipped_while_the_previous_job_of_the_schedule_is_live",
        ),
    ),
    Mutant(
        "a stored schedule that changed fires as before",
        "leader/stored_schedules.py",
        "if self._tokens.get(part) != token}",
        "if part not in self._tokens}",
        ("tests/runtime/test_stored_schedules.py::test_many_puts_at_once_all_hold_and_do_not_overtake_each_other",),
    ),
    Mutant(
        "a schedule whose write failed is forgotten",
        "leader/stored_schedules.py",
        "                for name in due:\n                    self._want(name, now)\n                raise",
        "                raise",
        ("tests/runtime/test_stored_schedules.py::test_what_could_not_be_fired_is_fired_as_soon_as_the_store_is_back",),
    ),
    Mutant(
        "a node that resigns while it asks for the lead keeps it",
        "leader/leader.py",
        "        if self._resigned():  # while the store was asked\n"
        "            await self._store.drop(LEADER_LEASE, self._node)\n"
        "            return False\n",
        "",
        ("tests/runtime/test_leadership.py::test_a_lease_that_is_granted_after_resigning_is_given_back",),
    ),
    Mutant(
        "a leader never renews its lease",
        "leader/leader.py",
        "return self._held_until - self._ttl * 2 / 3",
        "return self._held_until + self._ttl",
        ("tests/runtime/test_leadership.py::test_a_leader_that_came_too_late_follows",),
    ),
)
