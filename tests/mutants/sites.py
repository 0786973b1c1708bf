"""Where the source can be broken at random, and how: comparisons, and/or/not, sums, calls left out, constants, returns.

A break is made in the text, at the place of a node of the syntax tree, so the rest of the file stays as it is. What no
test should depend on is left alone: annotations, docstrings, what is logged for debugging, whether `zip` is strict, and
numbers beyond 100, because one more of many bytes or seconds changes nothing that anybody could notice.
"""

import ast
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from tests.mutants.mutant import PACKAGE

ROOMS: Final = ("core", "runtime", "app", "handles", "control", "store/memory", "store/sqlite")
GREATEST_NUMBER: Final = 100

_COMPARISONS: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_NO_SUM: Final = ast.List | ast.Tuple | ast.JoinedStr
"""What can be added but not subtracted: nothing would be found out."""


class Site(Struct, frozen=True):
    """A place in a file, and what stands there instead."""

    file: str
    start: int
    end: int
    """Both in characters."""
    wrong: str
    kind: str
    line: int
    scope: str
    """The function or class that it is in; empty in a module."""
    name: str = ""
    """The name that an assignment outside of functions gives."""

    def applied_to(self, text: str) -> str:
        """Return the text of the file with this break."""
        return text[: self.start] + self.wrong + text[self.end :]


class Finder(ast.NodeVisitor):
    """Finds the sites of one file."""

    def __init__(self, file: str, text: str) -> None:
        self.sites: list[Site] = []
        self._file = file
        self._text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self._name = ""

    # ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _place(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._place(node.lineno, node.col_offset),
            self._place(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _add(self, kind: str, start: int, end: int, wrong: str) -> None:
        line = self._text.count("\n", 0, start) + 1
        name = "" if self._functions else self._name
        self.sites.append(Site(self._file, start, end, wrong, kind, line, ".".join(self._scope), name))

    def _between(self, kind: str, left: ast.expr, right: ast.expr, words: tuple[str, str]) -> None:
        """Replace an operator, which stands between two operands."""
        gap_start, gap_end = self._span(left)[1], self._span(right)[0]
        gap = self._text[gap_start:gap_end]
        was, becomes = words
        if gap.count(was) == 1:
            start = gap_start + gap.index(was)
            self._add(kind, start, start + len(was), becomes)

    # ── what is passed through ───────────────────────────────────────────────────────────────────────────────────────

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.append(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._functions.append(node)
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()
        self._scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        functions, self._functions = self._functions, []
        for statement in node.body:
            self.visit(statement)
        self._functions = functions
        self._scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        name, self._name = self._name, target.id if isinstance(target, ast.Name) else self._name
        self.visit(value)
        self._name = name

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not (isinstance(node.value, ast.Name) and node.value.id in {"Literal", "Annotated"}):
            self.visit(node.slice)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of `zip`: what it asserts is true
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    # ── what is broken ───────────────────────────────────────────────────────────────────────────────────────────────

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between("comparison", left, right, _COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("and/or", left, right, words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, _ = self._span(node)
            self._add("not", start, self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and not any(map(_is_text_or_list, (node.left, node.right))):
            words = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
            self._between("sum", node.left, node.right, words)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and not _is_text_or_list(node.value):
            words = ("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
            self._between("sum", node.target, node.value, words)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and not _is_debugging(value):
            self._add("call left out", *self._span(node), "pass")
        if not isinstance(value, ast.Constant):
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value, function = node.value, self._functions[-1]
        if value is None:
            return
        start, end = self._span(value)
        if isinstance(function.returns, ast.Name) and function.returns.id == "bool":
            if not isinstance(value, ast.Constant | ast.UnaryOp | ast.Compare):
                self._add("return", start, end, f"not ({self._text[start:end]})")
        elif not (isinstance(value, ast.Constant) and value.value is None):
            self._add("return", start, end, "None")
        self.visit(value)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        if isinstance(node.value, bool):
            self._add("constant", start, end, str(not node.value))
        elif isinstance(node.value, int | float) and abs(node.value) <= GREATEST_NUMBER:
            self._add("constant", start, end, str(node.value + 1 if node.value < 1 or start % 2 else node.value - 1))


def _is_text_or_list(node: ast.expr) -> bool:
    return isinstance(node, _NO_SUM) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_debugging(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "debug"


def sites_of(file: str) -> list[Site]:
    """Return all sites of a file of the package."""
    text = text_of(file)
    finder = Finder(file, text)
    finder.visit(ast.parse(text))
    return finder.sites


def _compiles(site: Site) -> bool:
    try:
        ast.parse(site.applied_to(text_of(site.file)))
    except SyntaxError:
        return False
    return True


def files(rooms: Sequence[str] = ROOMS) -> Iterator[str]:
    """Yield the files that are drawn from, in order."""
    for room in rooms:
        yield from sorted(str(path.relative_to(PACKAGE)) for path in (PACKAGE / room).rglob("*.py"))


def draw(n: int, seed: int) -> list[Site]:
    """Draw `n` sites: a seed and a source decide which."""
    everything = [site for file in files() for site in sites_of(file)]
    random.Random(seed).shuffle(everything)
    return list(islice(filter(_compiles, everything), n))


def text_of(file: str) -> str:
    """Return a file of the package as it is."""
    return (PACKAGE / file).read_text()
