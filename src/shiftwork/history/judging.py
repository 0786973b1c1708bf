"""Judges a history by every rule, and says what was found."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from msgspec import Struct

from shiftwork.core.words import counted
from shiftwork.history.gathered import RecordedHistory, without_collector
from shiftwork.history.refutation import Refutation, Rule
from shiftwork.history.rules.attempts import counts_kept, within_limits
from shiftwork.history.rules.begun_runs import begun
from shiftwork.history.rules.conflicts import conflicts_hold, keys_hold, limits_hold
from shiftwork.history.rules.dependencies import dependencies_first, dependencies_met, dependencies_rest
from shiftwork.history.rules.durable_jobs import (
    signals_reach,
    signals_taken_once,
    steps_fenced,
    steps_kept_once,
    steps_not_repeated,
)
from shiftwork.history.rules.fences import current_fences, fences_grow, known_fences, old_fences
from shiftwork.history.rules.flows import needs_met, results_right
from shiftwork.history.rules.holding import ended_jobs, one_holder, one_run
from shiftwork.history.rules.leases import live_jobs, terms_apart
from shiftwork.history.rules.losses import nothing_lost
from shiftwork.history.rules.ranks import none_starved, precedence_holds, ranks_kept
from shiftwork.history.rules.rates import disabled_wait, none_early, windows_hold
from shiftwork.history.rules.schedules import fired_in_time, fired_once, none_missed
from shiftwork.history.rules.uniqueness import one_of_a_key, twins_live

RULES: Final[Mapping[str, Rule]] = {
    rule.__name__: rule
    for rule in (
        *(nothing_lost, begun, counts_kept, within_limits),
        *(
            fences_grow,
            old_fences,
            current_fences,
            known_fences,
            one_holder,
            one_run,
            ended_jobs,
            live_jobs,
            terms_apart,
        ),
        *(limits_hold, keys_hold, conflicts_hold, windows_hold, disabled_wait, none_early),
        *(dependencies_rest, dependencies_met, dependencies_first, needs_met, results_right),
        *(ranks_kept, none_starved, precedence_holds, one_of_a_key, twins_live),
        *(fired_once, fired_in_time, none_missed),
        *(steps_fenced, steps_kept_once, steps_not_repeated, signals_taken_once, signals_reach),
    )
}
"""Every rule, by its name."""
REFUTATIONS_KEPT: Final = 100
"""How many refutations of one rule are kept: the first of them say what is wrong."""

Report = Callable[[str, int, int], None]
"""Gets the next rule, how many are done, and how many there are."""


class Judgement(Struct, frozen=True):
    """What the rules found in a history."""

    lines: int
    processes: int
    jobs: int
    runs: int
    refutations: list[Refutation]
    """At most `REFUTATIONS_KEPT` of each rule."""
    rules: dict[str, str]
    """Each rule, and what it proves, in one sentence."""

    @property
    def holds(self) -> bool:
        """Return whether no rule is refuted."""
        return not self.refutations

    def text(self) -> str:
        """Return it in words."""
        size = f"{counted(self.lines, 'line')} of {counted(self.processes, 'process', 'processes')}"
        head = f"{size}: {counted(self.jobs, 'job')}, {counted(self.runs, 'run')}"
        if self.holds:
            return f"{head}\nlegal: none of {len(self.rules)} rules is refuted"
        found = [f"{one.rule}: {one.sentence}\n    {'  '.join(map(str, one.lines))}" for one in self.refutations]
        return "\n".join([head, *found])


def judge(history: RecordedHistory, report: Report | None = None, rules: Mapping[str, Rule] = RULES) -> Judgement:
    """Return what these rules find in a history."""
    found: list[Refutation] = []
    with without_collector():
        for done, (name, rule) in enumerate(rules.items()):
            if report is not None:
                report(name, done, len(rules))
            found += islice(rule(history), REFUTATIONS_KEPT)
    if report is not None:
        report("judged", len(rules), len(rules))
    return Judgement(
        lines=history.lines,
        processes=len(history.files),
        jobs=len(history.stories),
        runs=history.runs,
        refutations=found,
        rules={name: _first_sentence(rule) for name, rule in rules.items()},
    )


def _first_sentence(rule: Rule) -> str:
    return " ".join((rule.__doc__ or "").split(".")[0].split()) + "."
