"""Keeps the house in order: the picture of the imports, the size of folders, and what each folder says of itself."""

import ast
import importlib.util
import tomllib
from pathlib import Path
from typing import Final

MOST_MODULES: Final = 25
SHORTEST_DOCSTRING: Final = 80
PARTS: Final = {
    *("add", "claim", "finish", "lease", "lead", "flows", "durable", "docs", "find", "amend", "stats", "events"),
    *("restore", "rows", "facts", "store"),
}
"""The parts of the store protocol, with what they share: `store/__init__.py` names them."""
DJANGOS: Final = {"management", "templatetags"}
"""Folders whose names and places Django demands."""


def packages(checkout: Path) -> list[Path]:
    return sorted(path.parent for path in (checkout / "src" / "shiftwork").rglob("__init__.py"))


def test_no_folder_is_too_full_to_be_read(checkout: Path) -> None:
    modules = {
        str(folder.relative_to(checkout / "src")): len(
            [path for path in folder.glob("*.py") if path.stem != "__init__"]
        )
        for folder in packages(checkout)
    }
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_every_folder_says_what_belongs_there(checkout: Path) -> None:
    mute = []
    for folder in packages(checkout):
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        if len(said) < SHORTEST_DOCSTRING and not DJANGOS & set(folder.parts):
            mute.append(str(folder.relative_to(checkout / "src")))
    assert mute == []


def test_every_folder_has_a_contract_about_its_modules(checkout: Path) -> None:
    contracts = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = {room for contract in contracts for room in (*contract.get("containers", ()), *contract.get("modules", ()))}
    without = []
    for folder in packages(checkout):
        modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        room = ".".join(folder.relative_to(checkout / "src").parts)
        if len(modules - {"__init__"}) > 1 and not {room, f"{room}.*"} & held:
            without.append(room)
    assert without == []


def test_every_store_has_the_same_parts(checkout: Path) -> None:
    stores = checkout / "src" / "shiftwork" / "store"
    missing = {
        store: PARTS - {path.stem for path in (stores / store).glob("*.py")}
        for store in ("memory", "sqlite", "redis", "postgres")
    }
    assert {store: names for store, names in missing.items() if names} == {}


def test_the_picture_is_what_make_house_draws(checkout: Path) -> None:
    spec = importlib.util.spec_from_file_location("house", checkout / "docs" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    packages = house.layers()
    edges = house.imports(packages)
    assert house.upward(packages, edges) == []
    assert (checkout / "docs" / "house.svg").read_text() == house.drawn(packages, edges), "run `make house`"
