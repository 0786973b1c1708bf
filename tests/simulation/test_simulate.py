"""`shiftwork simulate`, and what makes a failing seed small."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from shiftwork.cli.entry import main
from shiftwork.simulation.episode import Episode, FaultPlan
from shiftwork.simulation.minimising import minimised
from tests.simulation.planted import never_reap
from tests.simulation.provoking import killed


def simulate(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["simulate", *words])
    return result.exit_code, result.output


def test_a_legal_seed_is_shown_with_its_faults_and_its_history_is_legal(tmp_path: Path) -> None:
    code, text = simulate("--seed", "3", "--size", "small", "--history", str(tmp_path / "history"))
    assert code == 0
    assert "fault 1: " in text
    assert "legal: no rule is refuted" in text
    assert CliRunner().invoke(main, ["check", str(tmp_path / "history")]).exit_code == 0


def test_a_seed_that_breaks_a_promise_is_shrunk_to_the_faults_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    never_reap(monkeypatch)
    monkeypatch.setattr("shiftwork.simulation.campaign.draw", lambda seed, _size: many_faults(seed))
    monkeypatch.setattr("shiftwork.simulation.drawing.draw", lambda seed, _size: many_faults(seed))
    code, text = simulate("--seed", "0", "--minimise")
    assert code == 1
    assert "nothing_lost: Job job-" in text
    assert text.splitlines()[-3:] == [
        "seed 0: 1 of 4 faults is enough:",
        "  fault 3: 3.000 s: kill node 0",
        "  shiftwork simulate --seed 0 --faults 3",
    ]
    assert simulate("--seed", "0", "--faults", "3")[0] == 1
    assert simulate("--seed", "0", "--faults", "1,2,4")[0] == 0


def many_faults(seed: int) -> Episode:
    """An episode in which one of several faults kills a node."""
    episode = killed(seed)
    harmless = [FaultPlan(at=at, kind="rings", seconds=1.0) for at in (1.0, 2.0, 4.0)]
    return replace(episode, faults=(*harmless[:2], *episode.faults, harmless[2]))


def test_seeds_are_played_and_added_up() -> None:
    code, text = simulate("--seeds", "3", "--jobs", "1", "--size", "small")
    assert code == 0
    assert text.startswith("from seed 0, 3 seeds: ")
    assert text.endswith("legal: no seed has broken a promise\n")


def test_there_may_be_a_limit_of_both_seeds_and_time() -> None:
    code, text = simulate("--seeds", "1", "--minutes", "10", "--jobs", "1", "--size", "small")
    assert code == 0
    assert ", 1 seed: " in text


@pytest.mark.parametrize("guilty", [[3], [1, 8], [2, 5, 9], [], [1, 2, 3, 4, 5, 6, 7, 8, 9]])
def test_what_fails_is_shrunk_to_what_it_takes(guilty: list[int]) -> None:
    assert minimised(range(1, 10), lambda part: {*guilty} <= {*part}) == guilty
