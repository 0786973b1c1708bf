"""The company's day: ten fixed slots pile up 50,000 jobs, elastic pools do not, and e-mail never waits for images."""

from pathlib import Path

import pytest

from shiftwork.sim.peak import part_of
from shiftwork.sim.scenario import Scenario
from shiftwork.sim.simulate import simulate
from shiftwork.sim.study import study_scenario
from shiftwork.sim.suggest import SUGGESTED, suggest
from tests.sim.scenarios import company

HOUR = 3600.0


@pytest.fixture(scope="module")
def day(checkout: Path) -> Scenario:
    return company(checkout)


def test_ten_fixed_slots_pile_up_fifty_thousand_jobs_and_idle_at_night(day: Scenario) -> None:
    seen = simulate(day, "fixed")
    pool = seen.pools["everything"]
    assert seen.jobs == 200_000
    assert 45_000 < pool.depth[14 * 12 - 1] < 55_000
    assert pool.depth[14 * 12 - 1] > 0.99 * pool.deepest
    assert (pool.fewest_slots, pool.most_slots, pool.steps) == (10, 10, [])
    night = part_of(day, "fixed", 2 * HOUR, 4 * HOUR)
    assert simulate(night, "fixed").busy_hours < 2 * 2  # of ten slots at most two are busy, on average


def test_elastic_pools_meet_the_peak_without_a_pile(day: Scenario) -> None:
    seen = simulate(part_of(day, "elastic", 9.75 * HOUR, 10.5 * HOUR), "elastic")
    assert seen.deepest < 100
    assert 20 <= seen.most_slots <= 25
    assert seen.missed == []
    reasons = {step.reason for course in seen.pools.values() for step in course.steps}
    assert any("queued is above scale_up_threshold" in reason for reason in reasons)


def test_elastic_pools_have_two_slots_at_night(day: Scenario) -> None:
    seen = simulate(part_of(day, "elastic", 2.5 * HOUR, 3.5 * HOUR), "elastic")
    slots = [sum(each) for each in zip(*(course.slots for course in seen.pools.values()), strict=True)]
    assert seen.fewest_slots == 2
    assert sorted(slots)[len(slots) // 2] == 2


def test_e_mail_waits_for_images_only_if_they_share_a_pool(day: Scenario) -> None:
    def p99(name: str) -> float:
        return simulate(part_of(day, name, 10.9 * HOUR, 11.25 * HOUR), name).workers["send-mail"].p99

    assert p99("elastic-flood") < 5
    assert p99("shared-flood") > 60


def test_the_same_scenario_has_the_same_result(day: Scenario) -> None:
    part = part_of(day, "elastic", 9.9 * HOUR, 10.1 * HOUR)
    assert simulate(part, "elastic") == simulate(part, "elastic")


@pytest.mark.soak
def test_the_whole_day(day: Scenario) -> None:
    plan = study_scenario(day)
    elastic, fixed = plan.simulated["elastic"], plan.simulated["fixed"]
    assert elastic.missed == []
    assert elastic.deepest < 100
    assert (elastic.fewest_slots, elastic.most_slots) == (2, 25)
    assert elastic.slot_hours < fixed.slot_hours
    assert elastic.slot_hours < 0.5 * 24 * sum(plan.fixed["elastic"].values())
    mail = {name: seen.workers["send-mail"].p99 for name, seen in plan.simulated.items()}
    assert mail["elastic-flood"] < 1.1 * mail["elastic"] < 5
    assert mail["shared-flood"] > 600
    broken = plan.breaks["elastic"]
    assert broken.load is not None
    assert 1 < broken.load < 2
    assert "because max_workers of" in broken.words


@pytest.mark.soak
def test_the_search_beats_the_hand_made_bounds_at_the_same_targets(day: Scenario) -> None:
    by_hand = simulate(day, "elastic")
    found = suggest(day, "elastic")
    assert found.simulated.configuration == SUGGESTED
    assert by_hand.missed == found.simulated.missed == []
    assert found.simulated.cost < 0.9 * by_hand.cost
