"""The documentation site: what `make site` lays out, and that its reference has something to say about every name."""

import importlib.util
import inspect
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest
from playwright.sync_api import sync_playwright

import shiftwork
from shiftwork import contrib, testing, types
from tests.browser.conftest import browser_path
from tests.browser.stamp import stamp_of
from tests.node import node
from tests.public_names import NOT_FOR_USERS

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
BLOCK = re.compile(r"^(`{3,4})[^`\n]*\n.*?^\1\n", re.MULTILINE | re.DOTALL)
SENTENCE = re.compile(r"\w.*[.?:]", re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ON_CALL = ("runbook", "backups", "upgrading", "capacity")
FETCHED = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^>]+>")


@pytest.fixture(scope="module")
def pages(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", checkout / "docs" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_link_leads_to_a_page_of_the_site(pages: ModuleType, tmp_path: Path) -> None:
    pages.lay_out(tmp_path)
    broken = [
        f"{page.relative_to(tmp_path)}: {link}"
        for page in tmp_path.rglob("*.md")
        for link in LINK.findall(BLOCK.sub("", page.read_text()))
        if not (page.parent / link).is_file()
    ]
    assert broken == []


def test_every_page_has_one_place_in_the_navigation(pages: ModuleType, tmp_path: Path, checkout: Path) -> None:
    pages.lay_out(tmp_path)
    sections = json.loads((tmp_path / "mkdocs.yml").read_text())["nav"]
    assert [title for section in sections for title in section] == [
        "Start",
        "How-to",
        "Operate",
        "Explanation",
        "Reference",
        "Coming from",
        "Decisions",
    ]
    listed = [page for section in sections for found in section.values() for page in found]
    assert len(listed) == len(set(listed))
    assert [page for page in listed if not (tmp_path / "pages" / page).is_file()] == []
    ours = {path.relative_to(checkout).as_posix() for path in (checkout / "docs").rglob("*.md")}
    assert ours - set(listed) == set()


def test_the_reference_has_every_public_name(pages: ModuleType) -> None:
    named = set(re.findall(r"^::: shiftwork\.([\w.]+)$", "".join(pages.references().values()), re.MULTILINE))
    for module in (testing, types):
        assert named >= {f"{module.__name__.removeprefix('shiftwork.')}.{name}" for name in module.__all__}
    assert named >= {*shiftwork.__all__}
    assert named >= {f"contrib.{module.name}" for module in iter_modules(contrib.__path__)}


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """What a module exports and can be asked for its docstring: classes, functions, and the methods of the classes."""
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.isroutine(value) and not inspect.isclass(value):
            continue
        yield name, value
        for member, method in inspect.getmembers(value):
            if not member.startswith("_") and (inspect.isfunction(method) or isinstance(method, property)):
                yield f"{name}.{member}", method


@pytest.mark.parametrize("module", [shiftwork, testing, types])
def test_every_public_name_is_explained_in_a_sentence(module: ModuleType) -> None:
    found = dict(public(module))
    assert len(found) > 10
    assert [name for name, value in found.items() if not SENTENCE.search(inspect.getdoc(value) or "")] == []


def test_the_pages_tell_what_each_member_of_the_orchestrator_is_for(checkout: Path) -> None:
    pages = [path for path in (checkout / "docs").rglob("*.md") if "decisions" not in path.parts]
    text = "".join(path.read_text() for path in pages)
    ours = {name.partition(".")[2] for name in NOT_FOR_USERS if name.startswith("WorkerOrchestrator.")}
    members = [name for name in dir(shiftwork.WorkerOrchestrator) if not name.startswith("_") and name not in ours]
    assert [name for name in members if not re.search(rf"\.{name}\b|`{name}\b", text)] == []


def test_what_a_person_on_call_needs_is_in_one_section(pages: ModuleType, tmp_path: Path) -> None:
    pages.lay_out(tmp_path)
    sections = {
        title: found
        for section in json.loads((tmp_path / "mkdocs.yml").read_text())["nav"]
        for title, found in section.items()
    }
    needed = {"operations", "metrics", "deploying", *(f"how-to/{name}" for name in ON_CALL)}
    assert needed <= {page.removeprefix("docs/").removesuffix(".md") for page in sections["Operate"]}


def commands_of(block: str) -> str:
    """The commands of a block, as the top-level conftest.py runs them."""
    typed, going_on = [], False
    for line in block.splitlines():
        if going_on or line.startswith("$ "):
            typed.append(line if going_on else line.removeprefix("$ "))
            going_on = line.endswith("\\")
    return "\n".join(typed)


COPY = """
import { readFileSync, writeFileSync } from "node:fs";
const [, , script, file] = process.argv;
const codes = JSON.parse(readFileSync(file, "utf8")).map(textContent => ({ textContent, dataset: {} }));
globalThis.document = { querySelectorAll: () => codes };
await import(`file://${script}`);
writeFileSync(file, JSON.stringify(codes.map(({ dataset }) => dataset.copy)));
"""


def test_a_block_of_commands_is_copied_without_prompts_and_output(checkout: Path, tmp_path: Path) -> None:
    texts = [path.read_text() for path in [checkout / "README.md", *(checkout / "docs").rglob("*.md")]]
    blocks = [block for text in texts for block in CONSOLE.findall(text)]
    assert len(blocks) > 20
    assert any("\\\n" in commands_of(block) for block in blocks)
    (tmp_path / "copy.mjs").write_text(COPY)
    (tmp_path / "blocks.json").write_text(json.dumps(blocks))
    node(tmp_path / "copy.mjs", checkout / "docs" / "site.js", tmp_path / "blocks.json", cwd=tmp_path)
    assert json.loads((tmp_path / "blocks.json").read_text()) == [commands_of(block) for block in blocks]


@pytest.fixture(scope="module")
def site(checkout: Path) -> Path:
    """The site, built."""
    subprocess.run(["make", "site"], cwd=checkout, check=True)
    return checkout / "build" / "site"


@pytest.mark.soak
def test_the_site_fetches_nothing(site: Path) -> None:
    built = list(site.rglob("*.html"))
    assert len(built) > 100
    assert [found for page in built for found in FETCHED.findall(page.read_text())] == []


@pytest.mark.soak
def test_the_button_of_the_site_copies_commands_only(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(playwright), chromium_sandbox=False)
        page = browser.new_page()
        page.goto((site / "docs" / "operations.html").as_uri())
        block = page.locator(".language-console").first
        copied = block.locator("code").get_attribute("data-copy")
        shown = block.locator("code").inner_text()
        browser.close()
    assert copied == commands_of(shown)
    assert "$" not in copied
    assert len(copied) < len(shown) / 2


def test_the_pictures_of_the_dashboard_show_this_version(checkout: Path) -> None:
    """Otherwise: `make pictures`, and look at them."""
    pictures = (checkout / "docs/dashboard").glob("*.png")
    shown = {picture.name: stamp_of(picture.read_bytes()) for picture in pictures}
    assert len(shown) > 15
    assert {name: stamp for name, stamp in shown.items() if stamp != f"shiftwork {shiftwork.__version__}"} == {}


def test_the_chinese_readme_follows_the_english_one(checkout: Path) -> None:
    english, chinese = ((checkout / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    original = re.findall(r"^#+ .+\n\n<!-- (.+) -->$", chinese, re.MULTILINE)
    assert original == re.findall(r"^#+ (.+)$", BLOCK.sub("", english), re.MULTILINE)
    assert [block[0] for block in BLOCK.finditer(chinese)] == [block[0] for block in BLOCK.finditer(english)]
    assert [*LINK.findall(BLOCK.sub("", chinese))][1:] == [*LINK.findall(BLOCK.sub("", english))][1:]
    tables = [re.findall(r"^\|.*\|$", text, re.MULTILINE) for text in (english, chinese)]
    assert [row.count("|") for row in tables[0]] == [row.count("|") for row in tables[1]]
