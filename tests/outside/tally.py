"""What a suite found: how many of its cases pass, and which do not, each with the reason."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from msgspec import Struct


class Tally(Struct, kw_only=True):
    """The figure of one suite."""

    suite: str
    version: str
    """Of the suite: what was run."""
    passed: int = 0
    failed: dict[str, str] = {}
    """What is wrong, by the names of the cases."""
    skipped: dict[str, str] = {}
    """Why a case was left out, or differs by decision, by the names of the cases."""
    note: str = ""

    @property
    def cases(self) -> int:
        return self.passed + len(self.failed) + len(self.skipped)


def lines(tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield what did not pass, by name, and then one row for each suite."""
    for tally in tallies:
        for word, found in (("failed", tally.failed), ("skipped", tally.skipped)):
            for name, why in found.items():
                yield f"{tally.suite}: {word}: {name}: {' '.join(why.split())}"
        if tally.note:
            yield f"{tally.suite}: {tally.note}"
    if any(tally.failed or tally.skipped or tally.note for tally in tallies):
        yield ""
    rows = [("suite", "version", "passed", "failed", "skipped")]
    rows += [
        (one.suite, one.version, f"{one.passed:,}", f"{len(one.failed):,}", f"{len(one.skipped):,}") for one in tallies
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for suite, version, *counts in rows:
        texts = [suite.ljust(widths[0]), version.ljust(widths[1])]
        texts += [count.rjust(width) for count, width in zip(counts, widths[2:], strict=True)]
        yield "  ".join(texts)


def read_junit(report: Path, suite: str, version: str) -> Tally:
    """Return the tally of a run of pytest, from its report in JUnit's format."""
    tally = Tally(suite=suite, version=version)
    for case in ET.parse(report).iter("testcase"):
        name = case.get("name", "?")
        wrong = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        left_out = case.find("skipped")
        if wrong is not None:
            tally.failed[name] = wrong.get("message", "")
        elif left_out is not None:
            tally.skipped[name] = left_out.get("message", "")
        else:
            tally.passed += 1
    return tally
