"""Lays out the pages of the documentation site in build/pages, for `make site`.

A page is in the same folder there as here, so its links work in both places. Everything that a page links to comes
along, beginning with README.md: a picture as it is, a program as a page that shows it, a folder as a list.

The navigation is that of docs/README.md and the indices of docs/coming-from and docs/decisions; a page of docs/ in none
of their tables is a how-to. The reference lists every public name, and mkdocs fills it from the docstrings.
"""

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

TOP: Final = Path(__file__).parent.parent

BLOCK: Final = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#])")
PIPE: Final = re.compile(r"(`[^`\n]*)\\\|(?=[^`\n]*`)")
"""A bar in code in a table, which repository hosts want escaped and mkdocs does not."""
ROW: Final = re.compile(r"^\| \[[^\]]*\]\(([^)#]+)\)", re.MULTILINE)
SECTION: Final = re.compile(r"^## (.+)\n", re.MULTILINE)
PICTURES: Final = {".png", ".svg"}
LANGUAGES: Final = {
    ".py": "python",
    ".toml": "toml",
    ".yaml": "yaml",
    ".json": "json",
    ".service": "ini",
    ".env": "ini",
}
FIELDS: Final = {
    "shiftwork.core.observing.beats",
    "shiftwork.core.model",
    "shiftwork.core.model.workers",
    "shiftwork.core.options.option_types",
    "shiftwork.handles.options",
}
"""The modules of plain values, whose fields are shown even where the name says it all."""
SHOW_FIELDS: Final = "    options:\n      show_if_no_docstring: true\n"
BY_NAME: Final = "    options:\n      members_order: alphabetical\n"
"""Its methods are spread over several files, whose order means nothing to a reader."""
FOUND_LAST: Final = "---\nsearch:\n  boost: 0.2\n---\n"
"""Readers search for how to do a thing before they ask why it is so."""
WIDE: Final = "---\nhide: [toc]\n---\n"
ABOUT: Final = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
BESIDE: Final = ["docs/site.css", "docs/site.js", "docs/iframe-worker.js", "ui/public/icon.svg"]
"""What the site shows, and no page links to."""


def lay_out(build: Path) -> None:
    """Write the pages and the navigation into a folder."""
    pages = build / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    written = reached_from(TOP / "README.md")
    written |= {TOP / name: (TOP / name).read_bytes() for name in BESIDE}
    written |= {TOP / "docs" / "reference" / name: text.encode() for name, text in references().items()}
    for path, content in written.items():
        target = pages / path.relative_to(TOP)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    settings = {"INHERIT": os.path.relpath(TOP / "docs" / "mkdocs.yml", build), "nav": navigation()}
    (build / "mkdocs.yml").write_text(json.dumps(settings, indent=2))


# ── pages, and what they link to ─────────────────────────────────────────────────────────────────────────────────────


def reached_from(start: Path) -> dict[Path, bytes]:
    """Return a page and everything that can be reached from it: where it is, and what it contains."""
    pages: dict[Path, bytes] = {}
    reached, todo = {start}, [start]
    while todo:
        here = todo.pop()
        pages[page_of(here)], targets = shown(here)
        todo += targets - reached
        reached |= targets
    return pages


def shown(here: Path) -> tuple[bytes, set[Path]]:
    """Return what the site has in place of a file or a folder, and what that links to."""
    if here.suffix in PICTURES:
        return here.read_bytes(), set()
    if here.is_dir():
        inside = sorted(path for path in here.iterdir() if path.is_file())
        rows = [f"- [{path.name}]({page_of(path).name})\n" for path in inside]
        return f"# {here.relative_to(TOP)}\n\n{''.join(rows)}".encode(), set(inside)
    if here.suffix != ".md":
        language = LANGUAGES.get(here.suffix, "text")
        return f"{WIDE}# {here.relative_to(TOP)}\n\n````{language}\n{here.read_text()}````\n".encode(), set()
    return relinked(here)


def relinked(page: Path) -> tuple[bytes, set[Path]]:
    """Return a page whose links lead to what the site has in place of their targets, and the targets."""
    targets: set[Path] = set()

    def relink(match: re.Match[str]) -> str:
        target = (page.parent / match[2]).resolve()
        targets.add(target)
        return match[1] + Path(os.path.relpath(page_of(target), page.parent)).as_posix()

    parts = BLOCK.split(page.read_text())
    parts[::2] = [PIPE.sub(r"\1|", LINK.sub(relink, part)) for part in parts[::2]]
    first = FOUND_LAST if page.parent.name == "decisions" else ""
    return "".join([first, *parts]).encode(), targets


def page_of(path: Path) -> Path:
    """Return where the page is that shows a file or a folder."""
    if path.is_dir():
        return path / "index.md"
    return path if path.suffix in {".md", *PICTURES} else path.with_name(f"{path.name}.md")


# ── navigation ───────────────────────────────────────────────────────────────────────────────────────────────────────


def navigation() -> list[dict[str, Any]]:
    """Return the sections of the site, with the pages of each."""
    sections = {title: list(linked_in(text)) for title, text in sections_of(TOP / "docs" / "README.md")}
    sections = {title: pages for title, pages in sections.items() if pages}
    listed = {page for pages in sections.values() for page in pages}
    sections["How-to"] += [page for page in _ours("docs/*.md", "docs/how-to/*.md") if page not in listed]
    sections["Start"] = [
        "README.md",
        *sections["Start"],
        "docs/README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    sections["Reference"] += [f"docs/reference/{name}" for name in references()]
    for title, folder in {"Coming from": "docs/coming-from", "Decisions": "docs/decisions"}.items():
        index = TOP / folder / "README.md"
        sections[title] = [f"{folder}/README.md", *linked_in(index.read_text(), index.parent)]
    return [{title: pages} for title, pages in sections.items()]


def sections_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the headings of a page, each with the text below it."""
    parts = SECTION.split(page.read_text())
    return zip(parts[1::2], parts[2::2], strict=True)


def linked_in(text: str, folder: Path = TOP / "docs") -> Iterator[str]:
    """Yield the pages that the rows of tables begin with."""
    for link in ROW.findall(text):
        yield (folder / link).resolve().relative_to(TOP).as_posix()


def _ours(*patterns: str) -> list[str]:
    found = {path.relative_to(TOP).as_posix() for pattern in patterns for path in TOP.glob(pattern)}
    return sorted(found - {"docs/README.md"})


# ── the reference ────────────────────────────────────────────────────────────────────────────────────────────────────


def references() -> dict[str, str]:
    """Return the pages of the reference, which name what is to be filled in from the docstrings."""
    names = {f"shiftwork.{name}": module for name, module in exported("shiftwork").items()}
    orchestrator = "shiftwork.WorkerOrchestrator"
    errors = [name for name, module in names.items() if module == "shiftwork.errors"]
    values = [name for name in names if name not in {orchestrator, *errors}]
    fields = {name: SHOW_FIELDS for name, module in names.items() if module in FIELDS}
    return {
        "orchestrator.md": _reference("The orchestrator", [orchestrator], {orchestrator: BY_NAME}),
        "values.md": _reference("Jobs, contexts and options", values, fields),
        "exceptions.md": _reference("Exceptions", errors),
        "integrations.md": _reference("Integrations", [f"shiftwork.contrib.{path.stem}" for path in _contrib()]),
        "types.md": _reference(
            "Types for annotations", [f"shiftwork.types.{name}" for name in exported("shiftwork.types")]
        ),
        "testing.md": _reference("Testing", [f"shiftwork.testing.{name}" for name in exported("shiftwork.testing")]),
    }


def _contrib() -> list[Path]:
    return sorted((TOP / "src" / "shiftwork" / "contrib").glob("[!_]*"))


def exported(package: str) -> dict[str, str]:
    """Return the names that a package exports, each with the module that it comes from."""
    path = TOP / "src" / package.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    names = next(
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    origins = {
        alias.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {name: origins[name] for name in ast.literal_eval(names)}


def _reference(title: str, names: list[str], options: Mapping[str, str] = MappingProxyType({})) -> str:
    return f"# {title}\n\n" + "".join(f"::: {name}\n{options.get(name, '')}\n" for name in names)


if __name__ == "__main__":
    lay_out(TOP / "build")
