"""The picture of the import graph in docs/internals.md is the import graph."""

import importlib.util
from pathlib import Path


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
