"""Runs the breakages that have a name, and writes the table of them."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tests.mutants.coverage_map import CHECKOUT, TestRecord
from tests.mutants.judgements import judgements
from tests.mutants.mutant import Mutant
from tests.mutants.named import NAMED
from tests.mutants.reports import page
from tests.mutants.trial import Bench, genuine
from tests.store.servers.postgres import names

PAGE: Final = CHECKOUT / "docs/mutants.md"
_CHECKS: Final = "tests/store/test_conformance.py::test_store"
_FACTORIES: Final = {"memory": "memory", "sqlite": "sqlite", "redis": "valkey", "postgres": names()[0]}
"""By folder of the store: what the conformance suite calls it."""


class TriedNamed(Struct, frozen=True):
    """A named mutant and what killed it, as a line of the file."""

    name: str
    file: str
    verdict: str
    seconds: float
    by: str


def write_table(results: Iterable[TriedNamed]) -> None:
    """Write the page of all named mutants, with what the last run of each has shown."""
    known = {(one.file, one.name): one for one in results}
    done = {one: known.get((one.file, one.name)) for one in everything()}
    killed = {
        (one.file, one.name): (it.by, it.seconds) for one, it in done.items() if it is not None and is_done(one, it)
    }
    PAGE.write_text(page(NAMED, killed, judgements()))


def everything() -> Iterator[Mutant]:
    """Yield all named mutants."""
    for mutants in NAMED.values():
        yield from mutants


def tests_of(mutant: Mutant) -> list[str]:
    """Return the tests that have to notice a mutant, as pytest names them."""
    factory = _FACTORIES.get(mutant.file.split("/")[1], "memory")
    return [test if "::" in test else f"{_CHECKS}[{factory}-{test}]" for test in mutant.noticed_by]


def is_done(mutant: Mutant, before: TriedNamed | None) -> bool:
    """Return whether a mutant was killed before, by a test that is still named for it."""
    return before is not None and before.verdict == "killed" and before.by.startswith(tuple(tests_of(mutant)))


def try_mutant(mutant: Mutant, bench: Bench) -> TriedNamed:
    """Try one mutant: its own tests first."""
    text = mutant.applied_to(genuine(mutant.file))
    result = bench.try_out(mutant.file, text, [TestRecord(test, 1.0, 0) for test in tests_of(mutant)])
    return TriedNamed(mutant.name, mutant.file, result.verdict, round(result.seconds, 1), result.by)
