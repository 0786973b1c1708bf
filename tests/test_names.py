"""One word for one idea: in the names of the product, classes, functions, modules and constants."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OLD_NAME: Final = "wind" + "lass"
FOLDERS: Final = ("src", "tests", "docs", "examples", "benchmarks", "deploy", "ui/src")
NOUNS: Final = {
    *("breakers", "doctor", "events", "flow", "flows", "history", "job", "jobs", "nodes", "overview", "pools"),
    *("schedules", "status", "tokens", "what_if", "worker", "workers"),
}
"""What several rooms are about: one answers, another prints, a third shows it. All mean the same thing by it."""
SENSES: Final = {
    "bury": ("store/",),  # make a job dead that cannot be read
    "environment": ("control/environment.py", "runtime/", "serve/notify.py", "store/sealed/key_ring.py"),  # variables
    "planner": ("runtime/leader/pool_planner.py",),  # the leader's; the simulator makes a study
    "settle": ("core/jobs/retry.py", "runtime/claiming/", "runtime/leader/job_rescuer.py", "runtime/outcomes/"),
    "turn": ("core/workers/admission.py", "history/rules/dependencies.py", "store/sqlite/file/"),
}
"""Words that once had several senses, and the places of the one that is left, as the glossary has it."""
UNQUALIFIED: Final = {
    *("engine", "environment", "instance", "key", "keys", "planner", "record", "records", "signals", "turn", "turns"),
}
"""Words that say nothing as the whole name of a class or module: which instance, whose turn, a key of what?"""
TAKEN_OVER: Final = {"Tenure"}
"""An old name that the checker of histories has for another thing, which the glossary explains."""
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


def definitions(checkout: Path) -> Iterator[tuple[type[ast.AST], str, str]]:
    """Every module, class and function of the package: what it is, its name, and the path of its module."""
    for path in modules(checkout):
        yield ast.Module, path.stem, str(path)
        for node in ast.walk(ast.parse((checkout / "src" / "shiftwork" / path).read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield type(node), node.name, str(path)


def words(name: str) -> list[str]:
    """The words of a name in snake_case or CamelCase."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def means(word: str, part: str) -> bool:
    """Whether a part of a name is a word, or a form of it."""
    forms = {word, word + "s", word + "d", word + "ed", "un" + word + "d"}
    return part in forms or (word == "bury" and part in {"buried", "burial"})


def test_a_word_that_once_had_several_senses_has_one(checkout: Path) -> None:
    elsewhere = [
        f"{path}: {name}"
        for _, name, path in definitions(checkout)
        for word, places in SENSES.items()
        if any(means(word, part) for part in words(name)) and not path.startswith(places)
    ]
    assert elsewhere == []


def test_the_name_of_a_class_or_module_says_which_of_a_kind_it_is(checkout: Path) -> None:
    bare = {(kind, name.lower(), path) for kind, name, path in definitions(checkout) if name.lower() in UNQUALIFIED}
    variables = "control/environment.py"  # those of the process: there is one environment
    assert {path for kind, _, path in bare if kind in {ast.ClassDef, ast.Module}} <= {variables}


def test_an_old_name_does_not_come_back(checkout: Path) -> None:
    page = (checkout / "docs" / "decisions" / "0108-renames.md").read_text()
    old = set(re.findall(r"^\| `([^`]+)` \| `[^`]+` \|$", page, re.MULTILINE))
    now = {name if kind is ast.ClassDef else path for kind, name, path in definitions(checkout)}
    assert {"Engine", "core/signals.py"} <= old
    assert (old & now) - TAKEN_OVER == set()


def glossary(checkout: Path) -> dict[str, str]:
    """The words of the glossary, each with its meaning."""
    page = (checkout / "docs" / "internals.md").read_text()
    table = page[page.index("## Glossary") : page.index("## The life of one job")]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    return {word: meaning for row, meaning in rows if row != "word" for word in row.split(", ")}


def test_the_code_uses_the_words_of_the_glossary(checkout: Path) -> None:
    source = [ast.parse((checkout / "src" / "shiftwork" / path).read_text()) for path in modules(checkout)]
    nodes = [node for tree in source for node in ast.walk(tree)]
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used = {"_".join(words(name)) for name in names}
    unused = [
        word
        for word in glossary(checkout)
        if not any(re.search(rf"(^|_){word.replace(' ', '_')}(s|d|_|$)", name) for name in used)
    ]
    assert unused == []


def test_the_glossary_names_every_kind_of_record(checkout: Path) -> None:
    records = {name for kind, name, _ in definitions(checkout) if kind is ast.ClassDef and name.endswith("Record")}
    assert {name for name in records if f"`{name}`" not in glossary(checkout)["record"]} == set()


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
