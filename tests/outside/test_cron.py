"""Cron expressions do what the Open Cron Pattern Specification says, but for what docs/schedules.md says of us."""

from tests.outside.cron_cases import CASES, DIFFERS, wrong


def test_every_case_is_as_specified_or_differs_by_decision() -> None:
    found = {(case.rule, case.pattern): what for case in CASES if (what := wrong(case)) is not None}
    assert len(CASES) > 150
    assert {key: what for key, what in found.items() if key not in DIFFERS} == {}
    assert DIFFERS.keys() - found.keys() == set()
