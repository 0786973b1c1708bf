"""The files around the code that strangers look for: their commands, versions and names are right."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import click
import yaml

from shiftwork.cli.entry import main

FRAMEWORKS = {"django"}
"""Extras for people who have that framework already: `all` must not bring it to everyone else."""


MAY_SLEEP: Final = {"tests/polling.py", "tests/browser/market.py", "tests/browser/shop.py"}
"""What waits for all tests, and the apps that the dashboard shows: their jobs take a while."""


def document(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_workflow_runs_make_test_on_every_python(checkout: Path) -> None:
    (job,) = document(checkout / ".github/workflows/test.yml")["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert "make test" in [step.get("run") for step in job["steps"]]
    programs = [step["run"].split()[2] for step in job["steps"] if step.get("run", "").startswith("sudo sh ")]
    assert programs == [name for name in programs if (checkout / name).is_file()]


def test_only_versions_that_are_tested_are_claimed(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    (job,) = document(checkout / ".github/workflows/test.yml")["jobs"].values()
    assert set(claimed) <= set(job["strategy"]["matrix"]["python"])
    assert f">={claimed[0]}" == project["requires-python"]


def test_all_is_every_extra_but_frameworks(checkout: Path) -> None:
    extras = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert set(everything.removeprefix("shiftwork[").removesuffix("]").split(",")) == set(extras) - FRAMEWORKS


def test_the_hooks_before_a_commit_are_the_tools_of_make_check(checkout: Path) -> None:
    (repository,) = document(checkout / ".pre-commit-config.yaml")["repos"]
    locked = (checkout / "requirements/dev.txt").read_text()
    for hook in repository["hooks"]:
        program = hook["entry"].split()[0].removeprefix(".venv/bin/")
        package = {"lint-imports": "import-linter"}.get(program, program)
        assert re.search(rf"^{package}==", locked, re.MULTILINE), program
        assert f"$(BIN)/{program}" in (checkout / "Makefile").read_text()


def test_issue_templates_ask_for_what_exists(checkout: Path) -> None:
    forms = {path.stem: document(path) for path in (checkout / ".github/ISSUE_TEMPLATE").glob("*.yml")}
    assert forms.keys() == {"bug", "wish", "config"}
    for name in ("bug", "wish"):
        assert {"name", "description", "body"} <= forms[name].keys()
        questions = [part for part in forms[name]["body"] if part["type"] != "markdown"]
        assert len({question["id"] for question in questions}) == len(questions)
    asked = re.findall(r"`shiftwork (\w+)", str(forms["bug"]))
    assert {"doctor", "explain", "job"} == set(asked) & {*main.list_commands(click.Context(main))} == set(asked)


def test_no_test_sleeps(checkout: Path) -> None:
    """Jobs inside tests and programs may take a while, and so may what stands in for a store."""
    found = []
    for path in sorted((checkout / "tests").rglob("*.py")):
        name = str(path.relative_to(checkout))
        if name not in MAY_SLEEP and "programs" not in path.parts:
            found += [f"{name}:{line}" for line in sleeps(ast.parse(path.read_text()))]
    assert found == [], "wait with tests.polling"


def sleeps(module: ast.Module) -> list[int]:
    """The lines of sleeps in plain functions of a module: not those in methods, nor in functions inside functions."""
    plain = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = []
    for function in plain:
        todo: list[ast.AST] = list(function.body)
        while todo:
            node = todo.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep", "sleep"}:
                found += (
                    [node.lineno] if not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0) else []
                )
            todo += ast.iter_child_nodes(node)
    return found
