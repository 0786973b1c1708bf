"""One word for one idea: in the names of the product, classes, modules and constants."""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

OLD_NAME: Final = "wind" + "lass"
FOLDERS: Final = ("src", "tests", "docs", "examples", "benchmarks", "deploy", "ui/src")
NOUNS: Final = {
    *("breakers", "doctor", "events", "flow", "flows", "history", "job", "jobs", "nodes", "overview", "pools"),
    *("schedules", "status", "tokens", "what_if", "worker", "workers"),
}
"""What several rooms are about: one answers, another prints, a third shows it. All mean the same thing by it."""
SAME_IN_DJANGO: Final = {"shiftwork"}
"""Django takes the names of a command and of a tag library from their modules."""


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


def modules(checkout: Path) -> list[Path]:
    """All modules of the package, by their paths inside it."""
    root = checkout / "src" / "shiftwork"
    return sorted(path.relative_to(root) for path in root.rglob("*.py") if path.name != "__init__.py")


def test_a_module_name_means_one_thing(checkout: Path) -> None:
    places = defaultdict(list)
    for path in modules(checkout):
        places[path.stem].append(path)
    shared = {
        name: [str(path) for path in paths]
        for name, paths in sorted(places.items())
        if len(paths) > 1 and name not in NOUNS | SAME_IN_DJANGO and {path.parts[0] for path in paths} != {"store"}
    }
    assert shared == {}


def test_a_constant_with_another_value_elsewhere_carries_its_subject(checkout: Path) -> None:
    """A private constant is read in its own module alone, which is its subject; only its number must be the same."""
    values: dict[str, dict[float | str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in modules(checkout):
        for node in ast.parse((checkout / "src" / "shiftwork" / path).read_text()).body:
            for name, value in constants(node):
                if not name.startswith("_") or isinstance(value, float):
                    values[name][value].add(subject(path))
    assert {
        name: dict(by_value)
        for name, by_value in sorted(values.items())
        if len(by_value) > 1 and len(set.union(*by_value.values())) > 1
    } == {}


def subject(path: Path) -> str:
    """The module that a constant belongs to. The same part of the protocol is one subject in every store."""
    part_of_a_store = path.parts[0] == "store" and len(path.parts) == 3
    return f"store/*/{path.name}" if part_of_a_store else str(path)


def constants(node: ast.stmt) -> list[tuple[str, float | str]]:
    """The constants that a statement makes, each with its value: a number, or the text of any other expression."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
    names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
    made_by = node.value.func if isinstance(node.value, ast.Call) else None
    if isinstance(made_by, ast.Name) and made_by.id in {"TypeVar", "ParamSpec"}:
        return []
    return [(name, worth(node.value)) for name in names]


def worth(value: ast.expr) -> float | str:
    """The number that an expression stands for, or else its text."""
    if not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(value)):
        result = eval(compile(ast.Expression(value), "a constant", "eval"))
        if isinstance(result, int | float):
            return float(result)
    return ast.unparse(value)
