"""What the documentation names is there: functions and classes, files, pages, and headings on them."""

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

import shiftwork
from shiftwork import Context, WorkerOrchestrator
from shiftwork.events import NAMES
from shiftwork.store.protocol import Store

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"(?:\w+\.)+\w+")
FILE = re.compile(r"[\w/-]+/[\w-]+\.(?:py|lua|sql)")


def pages(checkout: Path) -> list[Path]:
    """Every page of ours."""
    return [*checkout.glob("*.md"), *(checkout / "docs").rglob("*.md")]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return BLOCK.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere(checkout: Path) -> None:
    broken = []
    for page in pages(checkout):
        for link in LINK.findall(prose(page)):
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(checkout)}: {link}")
    assert broken == []


def test_every_page_is_linked(checkout: Path) -> None:
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in pages(checkout)
        for link in LINK.findall(prose(page))
    }
    assert [page for page in pages(checkout) if page not in linked and page != checkout / "README.md"] == []


@pytest.fixture(scope="module")
def owners() -> dict[str, list[object]]:
    """By name: every class and every module of ours, and what the pages call by a short name."""
    found: defaultdict[str, list[object]] = defaultdict(list)
    for _, name, _ in pkgutil.walk_packages(shiftwork.__path__, "shiftwork."):
        if name.endswith("__main__") or name.startswith("shiftwork.contrib."):  # these need a project of the framework
            continue
        module = importlib.import_module(name)
        found[name.removeprefix("shiftwork.")].append(module)
        for key, value in vars(module).items():
            if inspect.isclass(value):
                found[key].append(value)
    return found | {
        "store": [Store],
        "ctx": [Context],
        "app": [WorkerOrchestrator],
        "app.blocking": [WorkerOrchestrator],
    }


def has(owner: object, member: str) -> bool:
    """Whether a class, an instance of it, or a module has this."""
    made = inspect.isclass(owner) and re.search(rf"self\.{member}(: .+)? = ", inspect.getsource(owner)) is not None
    return made or hasattr(owner, member) or member in getattr(owner, "__slots__", ())


def unknown(names: Iterable[str], owners: dict[str, list[object]]) -> list[str]:
    """Those of these dotted names that lead nowhere."""
    parts = {name: name.rpartition(".") for name in names if name not in owners}
    return [name for name, (owner, _, member) in parts.items() if not any(has(o, member) for o in owners[owner])]


def test_internals_names_what_exists(checkout: Path, owners: dict[str, list[object]]) -> None:
    said = CODE.findall(prose(checkout / "docs" / "internals.md"))
    names = {match[0] for code in said if (match := DOTTED.match(code)) and "/" not in code}
    assert {"JobClaimer.claim", "core.jobs.retry.settle"} <= names
    assert unknown(names - NAMES.keys() - {"pyproject.toml"}, owners) == []


def test_internals_names_files_that_exist(checkout: Path) -> None:
    files = [code for code in CODE.findall(prose(checkout / "docs" / "internals.md")) if "/" in code]
    assert files
    assert [file for file in files if not (checkout / "src" / "shiftwork" / file).exists()] == []


def test_decisions_name_modules_and_files_that_exist(checkout: Path, owners: dict[str, list[object]]) -> None:
    package = checkout / "src" / "shiftwork"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    wrong = []
    for page in sorted((checkout / "docs" / "decisions").glob("0*.md")):
        if page.stem == "0108-renames":  # it lists the old names
            continue
        for code in CODE.findall(prose(page)):
            if FILE.fullmatch(code) and not (package / code).exists() and not (checkout / code).exists():
                wrong.append(f"{page.name}: {code}")
            name = DOTTED.match(code)
            if name and name[0].partition(".")[0] in rooms and unknown({name[0]} - NAMES.keys(), owners):
                wrong.append(f"{page.name}: {name[0]}")
    assert wrong == []
