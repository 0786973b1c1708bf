"""The runbook has a section for every problem, every alert and every gate, and none for what does not exist."""

import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

from shiftwork.cli import main
from shiftwork.control.jobs import explanations
from shiftwork.core.health import pool_problems
from shiftwork.core.health import verdict as judging
from shiftwork.core.health.health_values import CODES, Problem
from shiftwork.core.workers import admission
from shiftwork.views import diagnosis, explanation
from shiftwork.views.diagnosis import see

MORE_SLOTS = re.compile(r"raise `max_workers`|--max|add a node|another node")


@pytest.fixture
def runbook(checkout: Path) -> str:
    return (checkout / "docs" / "how-to" / "runbook.md").read_text()


def sections(page: str, kind: str) -> dict[str, str]:
    """The text of every section of a kind, by the code in its heading."""
    parts = re.split(rf"^### {kind} `(\w+)`\n", page, flags=re.MULTILINE)
    return {
        code: re.split(r"^##", text, flags=re.MULTILINE)[0] for code, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def gates(page: str) -> dict[str, list[str]]:
    """The cells behind every gate in the table of what holds a backlog."""
    table = page.partition("\n| gate |")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {gate: row[1:] for row in cells for gate in re.findall(r"`(\w+)`", row[0])}


def test_every_problem_is_listed_where_problems_are_defined(checkout: Path) -> None:
    source = "".join(path.read_text() for path in (checkout / "src/shiftwork/core").rglob("*.py"))
    found = set(re.findall(r"\bProblem\(\s*\"(\w+)\"", source))
    assert len(found) > 20
    assert found == {*CODES}


def test_every_problem_has_a_section_and_every_section_a_problem(runbook: str) -> None:
    assert set(sections(runbook, "Problem")) == {*CODES}


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_address_of_a_problem_is_that_of_its_section(runbook: str, checkout: Path) -> None:
    for code in CODES:
        page, _, anchor = see(Problem(code, "x", "message", "remedy")).partition("#")
        assert (checkout / page).is_file()
        assert anchor == f"problem-{code}"
        assert anchor in anchors(runbook)


def test_the_address_of_a_finding_is_that_of_all_findings(runbook: str) -> None:
    _, _, anchor = see(Problem("durability", "store", "message", "remedy")).partition("#")
    assert anchor in anchors(runbook)


def test_alerts_and_problems_lead_to_the_same_address(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (checkout / "deploy" / "grafana" / "alerts.yaml").read_text()
    monkeypatch.setenv("SHIFTWORK_DOCS", "https://docs.example/shiftwork/")
    assert f'"{see(Problem("node_lost", "x", "message", "remedy"))}"' in rules


def test_every_section_says_what_to_type_or_where_to_look(runbook: str) -> None:
    thin = [code for code, text in sections(runbook, "Problem").items() if len(text) < 150 or "`" not in text]
    assert thin == []


def test_every_alert_has_a_section(runbook: str, checkout: Path) -> None:
    groups = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"]
    assert {rule["alert"] for group in groups for rule in group["rules"]} == set(sections(runbook, "Alert"))


def test_alerts_that_cannot_wait_until_the_morning_are_critical(checkout: Path) -> None:
    groups = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["alert"].removeprefix("Shiftwork") for rule in rules if rule["labels"]["severity"] == "critical"} == {
        "NoLeader",
        "MetricsAbsent",
        "NothingServes",
        "NodeDiedAndJobsWait",
        "JobsWaitFarTooLong",
        "Problem",
        "StoreRejectsWrites",
        "NodeSilent",
    }


def test_what_alerts_link_to_is_there(runbook: str, checkout: Path) -> None:
    rules = (checkout / "deploy" / "grafana" / "alerts.yaml").read_text()
    for address in re.findall(r"runbook_url: \"?([^\"\n]+)", rules):
        page, _, anchor = address.partition("#")
        assert page.endswith("/docs/how-to/runbook.html")
        assert anchor in {"", "problem-{{ $labels.code }}", *anchors(runbook)}


def complaint(typed: str) -> str | None:
    """What the command line would say against a command, its missing arguments aside."""
    words = shlex.split(typed.replace("…", "X"))[1:]
    context = click.Context(main)
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"{typed}: there is no command {words[0]}"
        command, words = found, words[1:]
    try:
        _, left, _ = command.make_parser(click.Context(command)).parse_args(words)
    except click.UsageError as error:
        return f"{typed}: {error.format_message()}"
    return f"{typed}: {left} is too much" if left else None


def test_every_command_in_the_runbook_can_be_typed(runbook: str) -> None:
    typed = set(re.findall(r"`(shiftwork [a-z][^`]*)`", runbook))
    assert len(typed) > 40
    assert [wrong for one in sorted(typed) if (wrong := complaint(one))] == []


@pytest.mark.parametrize("module", [judging, pool_problems, diagnosis], ids=lambda module: module.__name__)
def test_every_command_in_a_remedy_can_be_typed(module: ModuleType) -> None:
    source = re.sub(r"\"\"\".*?\"\"\"", "", inspect.getsource(module), flags=re.DOTALL)
    source = re.sub(r"\"\n\s+f?\"", "", source)  # one text, in two lines
    source = re.sub(r" \{options\}", "", re.sub(r"\{(?!options)[^}]*\}", "X", source))
    typed = {
        one.strip() for one in re.findall(r"shiftwork [a-z]+(?: [^`;,()\"\n]+)?", source) if "shiftwork." not in one
    }
    assert typed
    assert [wrong for one in sorted(typed) if (wrong := complaint(one))] == []


def test_a_command_that_does_not_exist_is_found_out() -> None:
    assert complaint("shiftwork breakers close NAME --reason …") is None
    assert "no command" in (complaint("shiftwork breaker NAME") or "")
    assert "--because" in (complaint("shiftwork pause POOL --because …") or "")
    assert "too much" in (complaint("shiftwork pause POOL NOW") or "")


def test_every_gate_has_its_remedy(runbook: str) -> None:
    source = "".join(map(inspect.getsource, (admission, explanations, explanation)))
    assert set(gates(runbook)) == set(re.findall(r"\bObstacle\(\s*\"(\w+)\"", source))


def test_more_slots_are_advised_only_where_jobs_wait_for_a_slot(runbook: str) -> None:
    assert {gate for gate, [_, helps, _] in gates(runbook).items() if MORE_SLOTS.search(helps)} == {"queue"}


def test_alerts_advise_more_slots_only_after_a_look_at_what_holds_the_jobs(checkout: Path) -> None:
    groups = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"]
    remedies = {rule["alert"]: rule["annotations"]["remedy"] for group in groups for rule in group["rules"]}
    advised = {alert: remedy for alert, remedy in remedies.items() if MORE_SLOTS.search(remedy)}
    assert advised.keys() == {"ShiftworkJobsWait", "ShiftworkPoolIsFull", "ShiftworkJobsBeginLate"}
    for alert, remedy in advised.items():
        first, only_if, _ = remedy.partition("Only if no gate")
        assert only_if, alert
        assert "shiftwork status" in first, alert
        assert not MORE_SLOTS.search(first), alert
