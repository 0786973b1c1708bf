"""A real recorded history is legal, and each way of breaking it is found by the rule that it breaks."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from shiftwork.history.judging import RULES, judge
from shiftwork.history.lines import (
    ANSWERS,
    ARGS,
    Answered,
    AnyLine,
    Asked,
    Began,
    ClaimedJob,
    Defined,
    Ended,
    Expected,
    Stepped,
)
from shiftwork.history.reader import history_of
from tests.history.recorded_run import recorded_lines


class Cutting:
    """A history, to be cut and glued. Calls are found by what they are about."""

    def __init__(self, lines: list[AnyLine]) -> None:
        self.lines = [self._read(line) for line in lines]
        self._calls = {line.number: line.call for line in self.lines if isinstance(line, Asked)}
        self.lines = [self._read_answer(line) for line in self.lines]

    def _read(self, line: AnyLine) -> AnyLine:
        return replace(line, args=convert(line.args, ARGS[line.call])) if isinstance(line, Asked) else line

    def _read_answer(self, line: AnyLine) -> AnyLine:
        if not isinstance(line, Answered):
            return line
        kind = ANSWERS[self._calls[line.number]]
        return replace(line, answer=None if line.answer is None else convert(line.answer, kind))

    def refuted(self) -> set[str]:
        return {one.rule for one in judge(history_of({"app": self.lines})).refutations}

    # ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────

    def jobs(self, worker: str) -> list[str]:
        """The jobs of a worker, in the order in which they were added."""
        return [job.id for asked in self.asked("add") for job in asked.args.jobs if job.worker == worker]

    def asked(self, call: str) -> list[Asked]:
        return [line for line in self.lines if isinstance(line, Asked) and line.call == call]

    def answer_to(self, asked: Asked) -> Answered:
        return next(line for line in self.lines if isinstance(line, Answered) and line.number == asked.number)

    def claims(self, job: str) -> list[tuple[Asked, ClaimedJob]]:
        found = []
        for asked in self.asked("claim"):
            found += [(asked, one) for one in self.answer_to(asked).answer.jobs if one.id == job]
        return found

    def finish(self, job: str, which: int = 0) -> Asked:
        return [asked for asked in self.asked("finish") if any(one.id == job for one in asked.args.outcomes)][which]

    def about(self, call: str, job: str) -> list[Asked]:
        return [asked for asked in self.asked(call) if asked.args.id == job]

    def fence(self, job: str, which: int = 0) -> int:
        return self.claims(job)[which][1].fence

    # ── cutting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def swap(self, old: AnyLine, new: AnyLine) -> None:
        self.lines[next(n for n, line in enumerate(self.lines) if line is old)] = new

    def drop(self, drops: Callable[[AnyLine], bool]) -> None:
        self.lines = [line for line in self.lines if not drops(line)]

    def drop_call(self, asked: Asked) -> None:
        self.drop(lambda line: line is asked or (isinstance(line, Answered) and line.number == asked.number))

    def change_outcome(self, job: str, **changes: Any) -> None:
        asked = self.finish(job)
        outcomes = [replace(one, **changes) if one.id == job else one for one in asked.args.outcomes]
        self.swap(asked, replace(asked, args=replace(asked.args, outcomes=outcomes)))

    def change_claim(self, job: str, which: int = 0, **changes: Any) -> None:
        asked, claimed = self.claims(job)[which]
        answer = self.answer_to(asked)
        jobs = [replace(one, **changes) if one is claimed else one for one in answer.answer.jobs]
        self.swap(answer, replace(answer, answer=replace(answer.answer, jobs=jobs)))

    def change_added(self, job: str, **changes: Any) -> None:
        for asked in self.asked("add"):
            jobs = [replace(one, **changes) if one.id == job else one for one in asked.args.jobs]
            self.swap(asked, replace(asked, args=replace(asked.args, jobs=jobs)))

    def refence(self, old: int, new: int) -> None:
        """Give everything under one fence another one."""
        for line in self.lines:
            if isinstance(line, Began | Ended) and line.fence == old:
                self.swap(line, replace(line, fence=new))
        for asked in self.asked("finish"):
            outcomes = [replace(one, fence=new) if one.fence == old else one for one in asked.args.outcomes]
            self.swap(asked, replace(asked, args=replace(asked.args, outcomes=outcomes)))
        for asked in self.asked("claim"):
            for one in self.answer_to(asked).answer.jobs:
                if one.fence == old:
                    self.change_claim(one.id, fence=new)

    def repeat(self, call: Any, args: Any, answer: Any, *, after: AnyLine, now: float | None = None) -> None:
        """Add a call right after a line."""
        place = next(n for n, line in enumerate(self.lines) if line is after) + 1
        number = 1_000_000 + len(self.lines)
        at = after.at + 1e-7
        made: list[AnyLine] = [Asked(at, number, call, now, args), Answered(at + 1e-7, number, answer)]
        self.lines[place:place] = made

    def move_claim(self, job: str, before: AnyLine) -> None:
        """Let a job be claimed alone, right before another line."""
        asked, claimed = self.claims(job)[0]
        answer = self.answer_to(asked)
        self.swap(
            answer,
            replace(
                answer, answer=replace(answer.answer, jobs=[one for one in answer.answer.jobs if one is not claimed])
            ),
        )
        place = next(n for n, line in enumerate(self.lines) if line is before)
        answer = replace(answer.answer, jobs=[claimed])
        made: list[AnyLine] = [
            Asked(before.at - 3e-7, 2_000_000, "claim", asked.now, asked.args),
            Answered(before.at - 2e-7, 2_000_000, answer),
        ]
        self.lines[place:place] = made

    def define(self, worker: str, **options: Any) -> None:
        for line in self.lines:
            if isinstance(line, Defined) and line.name == worker and line.kind == "worker":
                self.swap(line, replace(line, config={**line.config, **options}))


Mutation = Callable[[Cutting], None]
MUTATIONS: list[tuple[str, Mutation]] = []


def breaks(rule: str) -> Callable[[Mutation], Mutation]:
    """Register a mutation, with the rule that finds it."""

    def register(mutation: Mutation) -> Mutation:
        MUTATIONS.append((rule, mutation))
        return mutation

    return register


@breaks("nothing_lost")
def drop_an_end(cut: Cutting) -> None:
    job = cut.jobs("plain")[0]
    asked = cut.finish(job)
    kept = [n for n, one in enumerate(asked.args.outcomes) if one.id != job]
    answer = cut.answer_to(asked)
    accepted = [answer.answer.accepted[n] for n in kept]
    cut.swap(asked, replace(asked, args=replace(asked.args, outcomes=[asked.args.outcomes[n] for n in kept])))
    cut.swap(answer, replace(answer, answer=replace(answer.answer, accepted=accepted)))


@breaks("nothing_lost")
def hand_back_and_forget(cut: Cutting) -> None:
    cut.change_outcome(cut.jobs("plain")[0], status="queued", attempt=0)


@breaks("begun")
def drop_a_beginning(cut: Cutting) -> None:
    job = cut.jobs("plain")[0]
    cut.drop(lambda line: isinstance(line, Began | Ended) and line.job == job)


@breaks("begun")
def time_out_what_never_began(cut: Cutting) -> None:
    drop_a_beginning(cut)
    cut.change_outcome(cut.jobs("plain")[0], status="dead", report="timed_out")


@breaks("fences_grow")
def give_a_fence_twice(cut: Cutting) -> None:
    first, second = cut.jobs("alone")[:2]
    cut.refence(cut.fence(second), cut.fence(first))


@breaks("fences_grow")
def swap_two_fences(cut: Cutting) -> None:
    one, other = (cut.fence(job) for job in cut.jobs("alone")[:2])
    for old, new in ((one, -1), (other, one), (-1, other)):
        cut.refence(old, new)


@breaks("known_fences")
def forget_a_claim(cut: Cutting) -> None:
    job = cut.jobs("plain")[0]
    cut.change_outcome(job, fence=cut.fence(job) + 1_000_000)


@breaks("current_fences")
def reject_an_outcome(cut: Cutting) -> None:
    answer = cut.answer_to(cut.finish(cut.jobs("alone")[0]))
    cut.swap(answer, replace(answer, answer=replace(answer.answer, accepted=[False] * len(answer.answer.accepted))))


@breaks("old_fences")
def accept_an_outcome_twice(cut: Cutting) -> None:
    asked = cut.finish(cut.jobs("plain")[0])
    answer = cut.answer_to(asked)
    cut.repeat("finish", asked.args, answer.answer, after=answer, now=asked.now)


def claim_again(cut: Cutting, job: str, after: AnyLine, fence: int, attempt: int) -> None:
    asked, claimed = cut.claims(job)[0]
    again = replace(claimed, fence=fence, attempt=attempt)
    cut.repeat("claim", asked.args, replace(cut.answer_to(asked).answer, jobs=[again]), after=after, now=asked.now)


@breaks("one_holder")
def claim_what_is_held(cut: Cutting) -> None:
    job = cut.jobs("saga")[0]
    claim_again(cut, job, cut.answer_to(cut.claims(job)[0][0]), 10_000_000, 2)


@breaks("ended_jobs")
def claim_what_has_ended(cut: Cutting) -> None:
    job = cut.jobs("plain")[0]
    claim_again(cut, job, cut.answer_to(cut.finish(job)), 10_000_000, 2)


@breaks("counts_kept")
def count_an_attempt_twice(cut: Cutting) -> None:
    cut.change_claim(cut.jobs("flaky")[0], 1, attempt=3)


@breaks("within_limits")
def retry_too_often(cut: Cutting) -> None:
    cut.define("flaky", max_retries=0)


@breaks("limits_hold")
def start_before_the_other_has_ended(cut: Cutting) -> None:
    first, second = sorted(cut.jobs("alone")[:2], key=cut.fence)
    cut.move_claim(second, before=cut.finish(first))


@breaks("keys_hold")
def start_beside_the_same_key(cut: Cutting) -> None:
    first, _, second = sorted(cut.jobs("keyed")[:3], key=cut.fence)
    cut.move_claim(second, before=cut.finish(first))


@breaks("conflicts_hold")
def start_beside_what_blocks_it(cut: Cutting) -> None:
    first = min(cut.jobs("one"), key=cut.fence)
    cut.move_claim(cut.jobs("other")[-1], before=cut.finish(first))


@breaks("windows_hold")
def start_more_than_the_limit_allows(cut: Cutting) -> None:
    cut.define("rated", rate_limit="3/m")


@breaks("disabled_wait")
def start_what_is_disabled(cut: Cutting) -> None:
    args = convert(["saga", False], ARGS["switch"])
    cut.repeat("switch", args, None, after=cut.lines[-2])
    job = cut.jobs("saga")[0]
    claim_again(cut, job, cut.lines[-2], 10_000_000, 2)


@breaks("none_early")
def start_early(cut: Cutting) -> None:
    job = cut.jobs("plain")[0]
    cut.change_claim(job, run_at=cut.claims(job)[0][1].run_at + 100)


@breaks("dependencies_rest")
def start_beside_a_dependency(cut: Cutting) -> None:
    cut.define("other", blocks=[])
    cut.define("one", depends_on={"other": "done"}, blocks=[])
    cut.move_claim(cut.jobs("one")[-1], before=cut.finish(min(cut.jobs("other"), key=cut.fence)))


@breaks("dependencies_met")
def start_without_a_fresh_success(cut: Cutting) -> None:
    ended = {outcome.id for asked in cut.asked("finish") for outcome in asked.args.outcomes}
    for job in ended.intersection(cut.jobs("fetch")[1:]):
        cut.change_outcome(job, verdict="neutral", status="dead")


@breaks("dependencies_first")
def start_before_a_queued_dependency(cut: Cutting) -> None:
    cut.define("saga", depends_on={"plain": "done"})
    cut.drop_call(cut.asked("put")[0])
    first = min(cut.jobs("saga"), key=cut.fence)
    asked, _ = cut.claims(first)[0]
    args = next(one.args for one in cut.asked("add") if any(job.worker == "plain" for job in one.args.jobs))
    waiting = replace(args.jobs[0], id="waiting", flow=None, needs=(), run_at=0.0)
    answer = convert([[["waiting", True]]], ANSWERS["add"])
    cut.repeat("add", replace(args, jobs=[waiting]), answer, after=cut.lines[0], now=asked.now)


@breaks("needs_met")
def start_before_what_it_needs(cut: Cutting) -> None:
    last = max(cut.jobs("plain"), key=cut.fence)
    cut.move_claim(cut.jobs("total")[0], before=cut.finish(last))


@breaks("results_right")
def give_another_result(cut: Cutting) -> None:
    answer = cut.answer_to(cut.asked("results")[0])
    cut.swap(answer, replace(answer, answer=[result + 1 for result in answer.answer]))


@breaks("ranks_kept")
def start_the_later_one_first(cut: Cutting) -> None:
    last = max(cut.jobs("alone"), key=cut.fence)
    cut.change_added(last, run_at=1.0)
    cut.change_claim(last, run_at=1.0)


@breaks("none_starved")
def let_a_job_wait_while_others_start(cut: Cutting) -> None:
    args = next(one.args for one in cut.asked("add") if any(job.worker == "plain" for job in one.args.jobs))
    waiting = replace(args.jobs[0], id="waiting", flow=None, needs=(), run_at=0.0)
    answer = convert([[["waiting", True]]], ANSWERS["add"])
    cut.repeat("add", replace(args, jobs=[waiting]), answer, after=cut.lines[0], now=1e9)


@breaks("one_of_a_key")
def add_the_same_key_twice(cut: Cutting) -> None:
    for job in cut.jobs("alone"):
        cut.change_added(job, unique_key="the same")


@breaks("twins_live")
def answer_with_what_has_ended(cut: Cutting) -> None:
    job = cut.jobs("alone")[0]
    added = next(one for one in cut.asked("add") if any(new.id == job for new in one.args.jobs))
    new = replace(added.args.jobs[0], id="new")
    answer = convert([[[job, False]]], ANSWERS["add"])
    cut.repeat("add", replace(added.args, jobs=[new]), answer, after=cut.lines[-2], now=added.now)


@breaks("fired_once")
def fire_twice(cut: Cutting) -> None:
    added = next(one for one in cut.asked("add") if one.args.jobs[0].worker == "fetch")
    answer = cut.answer_to(added)
    cut.drop_call(cut.asked("prune")[0])
    cut.repeat("add", added.args, answer.answer, after=answer, now=added.now)


@breaks("fired_in_time")
def fire_early(cut: Cutting) -> None:
    added = [one for one in cut.asked("add") if one.args.jobs[0].worker == "fetch"][1]
    cut.swap(added, replace(added, now=(added.now or 0) - 10))


@breaks("none_missed")
def stop_firing(cut: Cutting) -> None:
    cut.drop(lambda line: isinstance(line, Asked) and line.call == "switch")
    cut.swap(cut.lines[-1], Expected(cut.lines[-1].at, at_rest=True, until=2e9 + 1e6))


@breaks("terms_apart")
def lead_at_once(cut: Cutting) -> None:
    held = next(one for one in cut.asked("hold") if one.args.name == "leader")
    args = replace(held.args, holder="somebody else")
    cut.repeat("hold", args, answer=True, after=cut.answer_to(held), now=held.now)


@breaks("live_jobs")
def take_a_live_job(cut: Cutting) -> None:
    job = cut.jobs("saga")[0]
    asked, claimed = cut.claims(job)[0]
    taken = replace(claimed, fence=claimed.fence, instance=asked.args.instance)
    answer = cut.answer_to(asked)
    reaped = replace(answer.answer, jobs=[replace(taken, fence=10_000_000)])
    cut.drop(lambda line: isinstance(line, Asked) and line.call == "reap")
    cut.repeat("reap", convert(["leader", 1], ARGS["reap"]), reaped, after=answer, now=asked.now)


@breaks("steps_fenced")
def keep_a_step_late(cut: Cutting) -> None:
    job = cut.jobs("saga")[0]
    last = cut.about("keep_step", job)[-1]
    cut.swap(last, replace(last, args=replace(last.args, fence=cut.fence(job, 0))))


@breaks("steps_kept_once")
def keep_a_step_twice(cut: Cutting) -> None:
    first = cut.about("keep_step", cut.jobs("saga")[0])[0]
    args = replace(first.args, result=first.args.result + 1)
    cut.repeat("keep_step", args, answer=True, after=cut.answer_to(first))


@breaks("steps_not_repeated")
def call_a_step_again(cut: Cutting) -> None:
    job = cut.jobs("saga")[0]
    stepped = [line for line in cut.lines if isinstance(line, Stepped) and line.job == job]
    cut.lines.insert(-1, replace(stepped[0], fence=cut.fence(job, -1), at=cut.lines[-1].at))


@breaks("signals_taken_once")
def take_what_was_never_sent(cut: Cutting) -> None:
    cut.drop_call(cut.about("send", cut.jobs("saga")[0])[0])


@breaks("signals_reach")
def refuse_a_signal(cut: Cutting) -> None:
    sent = cut.about("send", cut.jobs("saga")[0])[0]
    answer = cut.answer_to(sent)
    cut.swap(answer, replace(answer, answer=None))


@pytest.fixture(scope="module")
def lines() -> list[AnyLine]:
    return asyncio.run(recorded_lines())


def test_what_was_recorded_is_legal(lines: list[AnyLine]) -> None:
    assert judge(history_of({"app": lines})).text().endswith(f"legal: none of {len(RULES)} rules is refuted")


@pytest.mark.parametrize(("rule", "mutation"), MUTATIONS, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_history_is_found(lines: list[AnyLine], rule: str, mutation: Mutation) -> None:
    cut = Cutting(lines)
    mutation(cut)
    assert rule in cut.refuted()


def test_every_rule_finds_a_broken_history() -> None:
    assert RULES.keys() - {rule for rule, _ in MUTATIONS} == {"one_run", "precedence_holds"}
