"""One word for one idea: the old name of the product is gone, and no two classes share a name."""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

OLD_NAME = "wind" + "lass"
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "deploy", "ui/src")


def tracked(checkout: Path) -> list[Path]:
    """The files that git knows; in an unpacked archive, those in our own folders."""
    if (checkout / ".git").exists():
        command = ["git", "-C", str(checkout), "ls-files", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        found = [checkout / name for name in listed if name]
    else:
        found = [
            path for folder in FOLDERS for path in (checkout / folder).rglob("*") if "__pycache__" not in path.parts
        ]
    return [path for path in found if path.is_file()]


def test_the_old_name_of_the_product_is_at_most_in_one_line_of_the_changelog(checkout: Path) -> None:
    found = []
    for path in tracked(checkout):
        try:
            lines = path.read_text().lower().splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(checkout)}:{n}" for n, line in enumerate(lines, 1) if OLD_NAME in line]
    assert [place for place in found if not place.startswith("CHANGELOG.md:")] == []
    assert len(found) <= 1


def test_no_path_has_the_old_name_of_the_product(checkout: Path) -> None:
    paths = [str(path.relative_to(checkout)) for path in tracked(checkout)]
    assert [path for path in paths if OLD_NAME in path.lower()] == []


def test_no_class_name_occurs_twice(checkout: Path) -> None:
    places = defaultdict(list)
    for path in (checkout / "src" / "shiftwork").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(checkout / 'src')}:{node.lineno}")
    assert {name: where for name, where in sorted(places.items()) if len(where) > 1} == {}
