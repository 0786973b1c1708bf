"""Probes: a statement in each block of the package's functions that notes that the block was run.

They tell which tests run which lines. They cost far less than tracing, and work in every thread and in child processes:
each process notes in a file of its own (`shiftwork_probes`, which is written beside the copied package), so that what a
process did before it was killed is known too.
"""

import ast
from collections.abc import Sequence
from itertools import chain
from typing import Final

MODULE: Final = "shiftwork_probes"
FOLDER: Final = "SHIFTWORK_PROBES"
"""The environment variable that names the folder for the files of all processes."""

RUNTIME: Final = """
import mmap, os, time

def _file():
    path = f"{os.environ[%(folder)r]}/{os.getpid()}-{time.time_ns()}"
    with open(path, "w+b") as file:
        file.truncate(%(size)d)
        return mmap.mmap(file.fileno(), %(size)d)

try:
    HITS = _file()
except (KeyError, OSError):
    HITS = bytearray(%(size)d)
"""
"""A file that is mapped keeps what was written to it whatever ends the process."""

_IMPORT: Final = f"try:\n    from {MODULE} import HITS as _hits\nexcept ImportError:\n    _hits = {{}}"
"""The guard of a process finds nothing but the standard library."""
_COMPOUND: Final = (
    ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.TryStar | ast.With | ast.AsyncWith | ast.Match
)


class Prober(ast.NodeTransformer):
    """Puts probes into modules, and notes which probe covers which line."""

    def __init__(self) -> None:
        self.size = 0
        self.lines: dict[int, int] = {}
        """For the module at hand: line to probe."""

    def probed(self, text: str) -> str:
        """Return the text of a module with probes in it."""
        self.lines = {}
        tree = self.visit(ast.parse(text))
        if not self.lines:
            return text
        named = ast.parse(_IMPORT).body
        place = _after_docstring(tree.body)
        while place < len(tree.body) and isinstance(first := tree.body[place], ast.ImportFrom):
            if first.module != "__future__":
                break
            place += 1
        tree.body[place:place] = named
        return ast.unparse(ast.fix_missing_locations(tree))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        place = _after_docstring(node.body)
        node.body = [*node.body[:place], *self._block(node.body[place:])]
        return node

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a block, with a probe at its beginning and behind each statement that branches."""
        found: list[ast.stmt] = []
        probe: int | None = None
        for statement in statements:
            if probe is None:
                probe, self.size = self.size, self.size + 1
                found.append(ast.parse(f"_hits[{probe}] = 1").body[0])
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                self.lines[line] = probe
            found.append(self._inside(statement))
            if isinstance(statement, _COMPOUND):
                probe = None
        return found

    def _inside(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self.visit(statement)  # type: ignore[no-any-return]
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(statement, name, None):
                setattr(statement, name, self._block(block))
        for part in chain(getattr(statement, "handlers", ()), getattr(statement, "cases", ())):
            part.body = self._block(part.body)
        return statement


def _after_docstring(body: Sequence[ast.stmt]) -> int:
    first = body[0] if body else None
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1)
