"""Draws the import graph by package into docs/house.svg: `make house`.

A row imports from each column in which it has a dot. Packages are in the order of the layers in pyproject.toml, so
every dot is right of the diagonal. A dot left of it would be a cycle or an import from a higher layer; this then fails.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp

TOP: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = TOP / "docs" / "house.svg"
PACKAGE: Final = "shiftwork"
CELL: Final = 30
NAMES: Final = 150
HEAD: Final = 120
STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .grid { stroke: #d0d7de }
  .self { fill: #d0d7de }
  .dot { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .grid { stroke: #30363d }
    .self { fill: #30363d }
    .dot { fill: #4493f8 }
  }
"""

Edges = set[tuple[str, str]]


def layers() -> list[str]:
    """The packages from top to bottom."""
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(_names(contract["layers"]) for contract in settings if contract["id"] == "house")


def _names(stack: list[str]) -> list[str]:
    return [name.strip() for layer in stack for name in layer.replace(":", "|").split("|")]


def imports(packages: list[str]) -> Edges:
    """Which package imports which other one."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    edges: Edges = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            ends = _package(module, packages), _package(imported, packages)
            if ends[0] and ends[1] and ends[0] != ends[1]:
                edges.add((ends[0], ends[1]))
    return edges


def _package(module: str, packages: list[str]) -> str | None:
    """The package that a module is in; None for what users import and test with."""
    name = module.removeprefix(f"{PACKAGE}.")
    found = [package for package in packages if f"{name}.".startswith(f"{package}.")]
    return max(found, key=len) if found else None


def upward(packages: list[str], edges: Edges) -> list[tuple[str, str]]:
    """The imports that lead upwards: there must be none."""
    place = {package: n for n, package in enumerate(packages)}
    return sorted(ends for ends in edges if place[ends[0]] > place[ends[1]])


def drawn(packages: list[str], edges: Edges) -> str:
    """The picture."""
    size = CELL * len(packages)
    width, height = NAMES + size + 50, HEAD + size + 10
    body = "\n".join(_rows(packages, edges))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Which package imports which">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def _rows(packages: list[str], edges: Edges) -> Iterator[str]:
    size = CELL * len(packages)
    for n, package in enumerate(packages):
        at = n * CELL
        yield f'<text x="{NAMES - 8}" y="{HEAD + at + 20}" text-anchor="end">{package}</text>'
        yield f'<text transform="translate({NAMES + at + 19} {HEAD - 8}) rotate(-60)">{package}</text>'
        yield f'<rect class="self" x="{NAMES + at}" y="{HEAD + at}" width="{CELL}" height="{CELL}"/>'
        for column, other in enumerate(packages):
            if (package, other) in edges:
                x, y = NAMES + column * CELL + CELL // 2, HEAD + at + CELL // 2
                yield f'<circle class="dot" cx="{x}" cy="{y}" r="6"/>'
    for n in range(len(packages) + 1):
        at = n * CELL
        yield f'<path class="grid" d="M{NAMES} {HEAD + at}h{size}M{NAMES + at} {HEAD}v{size}"/>'


def main() -> int:
    """Draw it, or say what is wrong."""
    packages = layers()
    edges = imports(packages)
    wrong = upward(packages, edges)
    for ends in wrong:
        print("{} imports {}, which stands above it".format(*ends))
    PICTURE.write_text(drawn(packages, edges))
    print(f"{PICTURE.relative_to(TOP)}: {len(packages)} packages, {len(edges)} edges, {len(wrong)} lead upwards")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
