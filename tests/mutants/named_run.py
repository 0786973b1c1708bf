"""Runs the breakages that have a name, and writes the table of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, json

from tests.mutants.coverage_map import TestRecord
from tests.mutants.mutant import Mutant
from tests.mutants.named import NAMED
from tests.mutants.trial import Bench, genuine
from tests.store.servers.postgres import names

_CHECKS: Final = "tests/store/test_conformance.py::test_store"
_FACTORIES: Final = {"memory": "memory", "sqlite": "sqlite", "redis": "valkey", "postgres": names()[0]}
"""By folder of the store: what the conformance suite calls it."""


class Tried(Struct, frozen=True):
    """A named mutant and what killed it, as a line of the file."""

    name: str
    file: str
    verdict: str
    seconds: float
    by: str


class Journal:
    """The file with the results."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, tried: Tried) -> None:
        with self._path.open("ab") as file:
            file.write(json.encode(tried) + b"\n")

    def known(self) -> dict[tuple[str, str], Tried]:
        """Return the last result of each."""
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        return {(one.name, one.file): one for one in (json.decode(line, type=Tried) for line in lines)}


def everything() -> Iterator[Mutant]:
    """Yield all named mutants."""
    for mutants in NAMED.values():
        yield from mutants


def tests_of(mutant: Mutant) -> list[str]:
    """Return the tests that have to notice a mutant, as pytest names them."""
    folder = mutant.file.split("/")[1]
    return [test if "::" in test else f"{_CHECKS}[{_FACTORIES[folder]}-{test}]" for test in mutant.noticed_by]


def try_mutant(mutant: Mutant, bench: Bench) -> Tried:
    """Try one mutant: its own tests first."""
    text = mutant.applied_to(genuine(mutant.file))
    result = bench.try_out(mutant.file, text, [TestRecord(test, 1.0, 0) for test in tests_of(mutant)])
    return Tried(mutant.name, mutant.file, result.verdict, round(result.seconds, 1), result.by)
