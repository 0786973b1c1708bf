"""Tables in the documentation say what the code says: options, defaults, codes, events, commands, errors."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

import shiftwork
from shiftwork import WorkerOrchestrator, errors
from shiftwork.cli.entry import main
from shiftwork.control.jobs import explanations
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.values import job_limits
from shiftwork.core.workers import admission
from shiftwork.events import NAMES
from shiftwork.handles.options import JobOptions
from shiftwork.sim.tables import NodeTable, TargetTable, WorkerTable
from shiftwork.views import explanation

CODE = re.compile(r"`([^`]+)`")
EXPORTED = {name: getattr(shiftwork, name) for name in shiftwork.__all__}


@pytest.fixture
def docs(checkout: Path) -> Path:
    return checkout / "docs"


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table whose first title is this."""
    lines = iter(page.read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            next(lines)
            return [[cell.strip() for cell in row.strip("|").split("|")] for row in _while_table(lines)]
    message = f"{page.name} has no table that begins with {heading!r}"
    raise AssertionError(message)


def _while_table(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def codes(cells: list[list[str]]) -> list[str]:
    """Every word in code, in the first column."""
    return [code for row in cells for code in CODE.findall(row[0])]


def defaults(config: type[Struct]) -> dict[str, Any]:
    """The fields of a struct with their defaults; one that is required has none."""
    found: dict[str, Any] = {}
    for field in fields(config):
        made = None if field.default_factory is NODEFAULT else field.default_factory()
        found[field.name] = made if field.default is NODEFAULT else field.default
    return found


def documented_defaults(cells: list[list[str]]) -> dict[str, Any]:
    """The defaults as a table writes them. A text that is not code stands for a required option."""
    found: dict[str, Any] = {}
    for name, default, *_ in cells:
        code = CODE.fullmatch(default)
        found[name.strip("`")] = eval(code[1], EXPORTED) if code else None
    return found


@pytest.mark.parametrize(("page", "config"), [("workers.md", WorkerConfig), ("pools.md", PoolConfig)])
def test_options_and_their_defaults(docs: Path, page: str, config: type[Struct]) -> None:
    documented = documented_defaults(rows(docs / page, "option"))
    assert documented == defaults(config)
    assert list(documented) == list(defaults(config))


def test_parts_of_a_retry_policy(docs: Path) -> None:
    documented = documented_defaults(rows(docs / "failures.md", "`Retry(…)`"))
    assert documented == defaults(shiftwork.Retry)


def test_settings_and_their_defaults(docs: Path) -> None:
    documented = documented_defaults(rows(docs / "operations.md", "`WorkerOrchestrator(…)`"))
    parameters = list(inspect.signature(WorkerOrchestrator).parameters.values())
    assert documented == {parameter.name: parameter.default for parameter in parameters}


def test_options_of_one_job(docs: Path) -> None:
    assert set(codes(rows(docs / "tasks.md", "option"))) == JobOptions.__annotations__.keys()


def test_what_jobs_are_found_by(docs: Path) -> None:
    (signature,) = [row[0] for row in rows(docs / "tasks.md", "method") if "find_jobs" in row[0]]
    documented = set(re.findall(r"(\w+)=", signature))
    assert documented <= set(JobFilter.__struct_fields__)


def test_methods_for_jobs(docs: Path) -> None:
    methods = re.findall(r"`(\w+)\(", "\n".join(row[0] for row in rows(docs / "tasks.md", "method")))
    assert methods
    assert [name for name in methods if not hasattr(WorkerOrchestrator, name)] == []


def test_context(docs: Path) -> None:
    documented = {code.partition("(")[0] for code in codes(rows(docs / "workers.md", "name"))}
    context = shiftwork.Context
    assert documented == {name for name in [*context.__slots__, *vars(context)] if not name.startswith("_")}


def test_why_a_job_waits(docs: Path) -> None:
    source = "".join(map(inspect.getsource, (admission, explanations, explanation)))
    assert set(codes(rows(docs / "rules.md", "code"))) == set(re.findall(r"\bObstacle\(\s*\"(\w+)\"", source))


def test_events(docs: Path) -> None:
    assert set(codes(rows(docs / "operations.md", "event"))) == set(NAMES)


@pytest.mark.parametrize(
    ("heading", "table"),
    [("`[nodes.NAME]`", NodeTable), ("`[workers.NAME]`", WorkerTable), ("`[targets.NAME]`", TargetTable)],
)
def test_keys_of_a_scenario(docs: Path, heading: str, table: type[Struct]) -> None:
    documented = [row[0].strip("`") for row in rows(docs / "planning.md", heading)]
    assert documented == [field.name for field in fields(table)]


def test_commands(docs: Path) -> None:
    documented = [code.split()[1] for code in codes(rows(docs / "cli.md", "command"))]
    assert sorted(documented) == main.list_commands(click.Context(main))


def test_exit_codes(docs: Path) -> None:
    documented = {number: meaning.replace("`", "") for number, meaning in rows(docs / "cli.md", "exit code")}
    assert documented == dict(re.findall(r"^ *(\d)  (.+)$", main.help or "", re.MULTILINE))


def test_what_a_job_may_accumulate(docs: Path) -> None:
    documented = {
        what: (_first_number(most), _first_number(size)) for what, most, size, *_ in rows(docs / "tasks.md", "of a job")
    }
    assert documented == {what: (limit.number, limit.bytes) for what, limit in job_limits.LIMITS.items()}
    [attempts] = [most for what, most, *_ in rows(docs / "tasks.md", "of a job") if what == "attempts"]
    assert f"first {job_limits.FIRST_ATTEMPTS} and the last {job_limits.LAST_ATTEMPTS}" in attempts


def _first_number(text: str) -> int:
    found = re.search(r"[\d,]+", text)
    assert found is not None
    return int(found[0].replace(",", ""))


def test_error_tree(docs: Path) -> None:
    tree = re.search(r"```text\n(.*?)```", (docs / "errors.md").read_text(), re.DOTALL)
    assert tree is not None
    drawn: dict[str, str | None] = {}
    path: list[str] = []
    for line in tree[1].splitlines():
        indent, name = re.match(r"([│├└─ ]*)(\w+)", line).groups()  # type: ignore[union-attr]
        path = [*path[: len(indent) // 4], name]
        drawn[name] = path[-2] if len(path) > 1 else None
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    assert drawn == {
        name: None if value is errors.ShiftworkError else value.__bases__[0].__name__ for name, value in classes.items()
    }
    assert set(drawn) <= set(shiftwork.__all__)
