"""`shiftwork plan`: a table for people, JSON for programs, a page on request, and errors in words."""

from pathlib import Path

import click
import pytest

from shiftwork.cli.terminal.progress import ProgressBar
from tests.cli.terminal import Terminal
from tests.sim.scenarios import BRIEF, SMALL, changed


@pytest.fixture
def planner(terminal: Terminal, tmp_path: Path) -> Terminal:
    (tmp_path / "day.toml").write_text(SMALL)
    return terminal


def test_the_plan_is_a_table_with_what_was_found(planner: Terminal) -> None:
    said = planner.ok("plan", "day.toml", store=None)
    assert said.startswith(
        "twenty minutes: 1,000 jobs from Monday 5 January 2026 00:00 to Monday 5 January 2026 00:20, UTC"
    )
    lines = [line.split() for line in said.splitlines()]
    assert lines[2][:4] == ["CONFIGURATION", "JOBS", "DEEPEST", "SLOTS"]
    assert lines[3][:3] == ["as", "written", "1,000"]
    assert lines[3][-1] == "met"
    assert "to be as good, fixed pools need 5 slots, which is 1.7 slot-hours" in said
    assert "images waits more than 30 s (p99) at " in said


def test_the_plan_as_json(planner: Terminal) -> None:
    document = planner.json("plan", "day.toml", store=None)
    assert (document["scenario"], document["start"]) == ("twenty minutes", "2026-01-05T00:00:00Z")
    one = document["configurations"]["as written"]
    assert (one["jobs"], one["missed"], one["fixed_slots"]) == (1000, [], {"images": 5})
    pool = one["pools"]["images"]
    assert sum(pool["curves"]["arrivals"]) == pool["waits"]["jobs"] == 1000
    assert len(pool["curves"]["slots"]) == len(pool["curves"]["depth"])
    assert pool["cost"] == pytest.approx(0.1 * pool["slot_hours"], abs=1e-3)
    assert document["suggestion"] is None


def test_a_suggestion_lists_what_to_change(planner: Terminal, tmp_path: Path) -> None:
    (tmp_path / "brief.toml").write_text(changed(*BRIEF))
    said = planner.ok("plan", "brief.toml", "--suggest", store=None)
    assert "suggestion: these changes to as written need " in said
    assert "all targets met" in said
    assert ["images", "max_workers", "8"] in [line.split()[:3] for line in said.splitlines()]


def test_the_page_is_written_on_request(planner: Terminal, tmp_path: Path) -> None:
    said = planner.ok("plan", "day.toml", "--html", "day.html", store=None)
    assert said.endswith("The curves are in day.html.\n")
    assert (tmp_path / "day.html").read_text().startswith("<!DOCTYPE html>")


def test_the_help_has_examples(planner: Terminal) -> None:
    assert "\n    shiftwork plan examples/company.toml --html day.html\n" in planner.ok("plan", "--help", store=None)


def test_more_traffic(planner: Terminal) -> None:
    one = planner.json("plan", "day.toml", "--load", "2", store=None)["configurations"]["as written"]
    assert one["jobs"] == 2000


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere.toml"], "there is no file nowhere.toml; `shiftwork record` writes a scenario from"),
        (["broken.toml"], "broken.toml is not valid TOML: "),
        (["empty.toml"], "the scenario has no workers; add [workers.NAME] with pool, arrivals and run_seconds"),
        (["binary.toml"], "binary.toml is not a text file in UTF-8; a scenario is a TOML file"),
        (["day.toml", "--configuration", "writen"], "there is no configuration 'writen'; "),
        (["day.toml", "--html", "missing/day.html"], "missing/day.html cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_work_is_explained(planner: Terminal, tmp_path: Path, args: list[str], said: str) -> None:
    (tmp_path / "broken.toml").write_text(changed(("cores = 8", "cores = ")))
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert said in planner.refused("plan", *args, store=None)


def test_progress_on_a_terminal_is_a_bar_with_the_share_that_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(terminal=True, noun=None)
    bar.show("elastic", 250, 1000)
    bar.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert click.unstyle(err).lstrip("\r").startswith("elastic ")
    assert err.endswith(f"{'█' * 7}{'░' * 23}  25%\n")
