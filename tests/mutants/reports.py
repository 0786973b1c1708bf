"""What mutants have shown, as tables for the documentation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tests.mutants.judgements import Judged, Judgements
from tests.mutants.mutant import Mutant

PAGE: Final = """\
# Mutants

Each line is a breakage in one place of the package, and the test that noticed it. `make mutants` puts them one by one
into a copy of the package, and runs the tests that are named for each; with `ARGS=--table` it writes this page. The
seconds include the start of pytest, on one core. What random ones have shown is in [proof](proof.md#mutants).
"""

JUDGED: Final = """\
## Random ones that were judged

No test can notice an equivalent one. A harmless one makes a difference, but loses, doubles and misreports no job, and
breaks nothing that is promised.
"""


def page(
    parts: Mapping[str, Sequence[Mutant]], results: Mapping[tuple[str, str], tuple[str, float]], judged: Judgements
) -> str:
    """Return the page of all named mutants, with results by file and name, and of the random ones that were judged."""
    lines = [PAGE, *(line for title, mutants in parts.items() for line in _part(title, mutants, results)), JUDGED]
    lines += ["### Equivalent", "", *judged_rows(judged.equivalent)]
    lines += ["### Harmless", "", *judged_rows(judged.harmless)]
    return "\n".join(lines)


def _part(title: str, mutants: Sequence[Mutant], results: Mapping[tuple[str, str], tuple[str, float]]) -> Iterator[str]:
    killed = [results[one.file, one.name] for one in mutants if (one.file, one.name) in results]
    yield f"## {title}"
    yield ""
    yield f"{len(killed)} of {len(mutants)} are killed."
    yield ""
    yield "| what is wrong | in | killed by | after |"
    yield "|---|---|---|---|"
    for one in mutants:
        by, seconds = results.get((one.file, one.name), ("**nothing**", 0.0))
        yield f"| {one.name} | `{one.file}` | {short_name(by)} | {seconds:.1f} s |"
    yield ""


def judged_rows(mutants: Iterable[Judged]) -> Iterator[str]:
    """Yield the table of random mutants that were judged."""
    yield "| in | line | becomes | why |"
    yield "|---|---|---|---|"
    for one in mutants:
        yield f"| `{one.file}` | {_code(one.was)} | {_code(one.becomes)} | {one.reason} |"
    yield ""


def _code(line: str) -> str:
    """Return a line of code for a cell of a table."""
    return f"`` {line} ``".replace("|", "\\|")


def short_name(test: str) -> str:
    """Return the name of a test without its parameters; of a check of the conformance suite, the check."""
    name = test.rpartition("::")[2]
    if name.startswith("test_store[") and "-" in name:
        return f"conformance: {name.partition('-')[2].rstrip(']')}"
    return name.partition("[")[0]


def by_kind(verdicts: Iterable[tuple[str, str]]) -> str:
    """Return a table of random mutants: how many of each kind were killed."""
    counts: dict[str, Counter[str]] = {}
    for kind, verdict in verdicts:
        counts.setdefault(kind, Counter())[verdict] += 1
    lines = ["| kind | drawn | killed | equivalent | alive |", "|---|---|---|---|---|"]
    for kind, count in sorted(counts.items()):
        alive = count["survived"] + count["unreached"]
        lines.append(f"| {kind} | {count.total()} | {count['killed']} | {count['equivalent']} | {alive} |")
    return "\n".join(lines)
