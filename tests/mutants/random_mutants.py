"""Random mutants: drawn by a seed, and tried, with a line in a file for each, so that a run can continue."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tests.mutants.coverage_map import CoverageMap, TestRecord
from tests.mutants.judgements import Reasons
from tests.mutants.mutant import PACKAGE, difference
from tests.mutants.reports import by_kind
from tests.mutants.sites import Site, text_of
from tests.mutants.trial import Bench, Result

_MAIN: Final = 'if __name__ == "__main__":'
"""A program that runs apart has no probes there."""


class Tried(Struct, frozen=True):
    """A mutant and what became of it, as a line of the file."""

    file: str
    line: int
    scope: str
    kind: str
    was: str
    becomes: str
    verdict: Literal["killed", "survived", "unreached", "equivalent"]
    seconds: float
    tests: int
    by: str = ""
    why: str = ""
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from others, as long as its file stays the same."""
        return self.file, self.was, self.becomes, self.line


def changed_lines(site: Site) -> tuple[str, str]:
    """Return the first line that a site changes, before and after, without indentation."""
    before = text_of(site.file)
    return _line(before, site.line), _line(site.applied_to(before), site.line)


def _line(text: str, number: int) -> str:
    return text.splitlines()[number - 1].strip()


def near(site: Site, known: CoverageMap) -> list[TestRecord]:
    """Return the tests for a site, the nearest first."""
    if not site.name and site.scope:
        found = known.tests_of(site.file, [_line_inside(site)])
    else:  # it is run when the module is imported, so the tests that use what it names or gives are near
        found = known.tests_of(site.file, _functions_named(site))
        found += [test for test in known.tests_of(site.file, [None]) if test not in found]
        for file, lines in _uses(site.name):
            found += [test for test in known.tests_of(file, lines) if test not in found]
    if found and _MAIN not in text_of(site.file):
        return found
    return list({test.test: test for test in (*_by_name(site.file, known), *found)}.values())


def _line_inside(site: Site) -> int:
    """Return the line of a site, or for a default value that of the first statement which gets it."""
    for node in ast.walk(ast.parse(text_of(site.file))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= site.line < node.body[0].lineno:
            return node.body[min(1, len(node.body) - 1)].lineno
    return site.line


def _functions_named(site: Site) -> list[int]:
    """Return the first lines of the functions that the line of a site names."""
    text = text_of(site.file)
    words = set(re.findall(r"\w+", _line(text, site.line)))
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.body[-1].lineno for function in functions if function.name in words]


def _uses(name: str) -> Iterator[tuple[str, list[int | None]]]:
    """Yield the lines of all files that have a name."""
    if not name:
        return
    word = re.compile(rf"\b{re.escape(name)}\b")
    for path in PACKAGE.rglob("*.py"):
        lines: list[int | None] = [n for n, line in enumerate(path.read_text().splitlines(), 1) if word.search(line)]
        if lines:
            yield str(path.relative_to(PACKAGE)), lines


def _by_name(file: str, known: CoverageMap) -> list[TestRecord]:
    """Return the tests for a program that runs apart: those named after it, and those of what starts it."""
    path = Path(file)
    found = [test for name, test in known.tests.items() if path.stem in name.partition("::")[0]]
    for starter in sorted((PACKAGE / path.parent).glob("*.py")):
        if f'"{path.name}"' in starter.read_text():
            found += known.tests_of(str(starter.relative_to(PACKAGE)), [None])
    return list({test.test: test for test in found}.values())


def try_site(site: Site, bench: Bench, known: CoverageMap, reasons: Reasons) -> Tried:
    """Try one random mutant."""
    was, becomes = changed_lines(site)
    reason = reasons.get((site.file, was, becomes))
    if reason is not None:
        return _tried(site, Result("survived", 0.0), "equivalent", reason)
    result = bench.try_out(site.file, site.applied_to(text_of(site.file)), near(site, known))
    return _tried(site, result, result.verdict)


def _tried(
    site: Site, result: Result, verdict: Literal["killed", "survived", "unreached", "equivalent"], reason: str = ""
) -> Tried:
    was, becomes = changed_lines(site)
    return Tried(
        file=site.file,
        line=site.line,
        scope=site.scope,
        kind=site.kind,
        was=was,
        becomes=becomes,
        verdict=verdict,
        seconds=round(result.seconds, 1),
        tests=result.tests,
        by=result.by,
        why=result.why[:300],
        reason=reason,
    )


def summary(tried: Iterable[Tried], harmless: Reasons) -> str:
    """Return the figure, and every survivor with its diff."""
    everything = list(tried)
    counts = Counter(one.verdict for one in everything)
    counted = len(everything) - counts["equivalent"]
    share = 100 * counts["killed"] / counted if counted else 100.0
    alive = [one for one in everything if one.verdict in {"survived", "unreached"}]
    lines = [
        f"{one.file}:{one.line} in {one.scope or 'the module'} ({one.kind}, {one.verdict}, {one.tests} tests)\n"
        f"  - {one.was}\n  + {one.becomes}"
        + (f"\n  harmless: {why}" if (why := harmless.get((one.file, one.was, one.becomes))) else "")
        for one in sorted(alive, key=lambda one: (one.file, one.line))
    ]
    judged = sum((one.file, one.was, one.becomes) in harmless for one in alive)
    head = (
        f"{counts['killed']} of {counted} killed ({share:.1f} %); {len(alive)} alive, {judged} of them harmless; "
        f"{counts['equivalent']} more are equivalent"
    )
    return "\n".join([*lines, by_kind((one.kind, one.verdict) for one in everything), head])


def diff(site: Site) -> str:
    """Return what a site changes, as a diff."""
    before = text_of(site.file)
    return difference(site.file, before, site.applied_to(before))
