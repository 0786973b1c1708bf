"""The random mutants that were judged: those that no test can kill, and those that none should, with the reasons."""

from typing import Final

import msgspec
from msgspec import Struct

from tests.mutants.coverage_map import CHECKOUT

JUDGED: Final = CHECKOUT / "tests/mutants/judged.toml"

Reasons = dict[tuple[str, str, str], str]
"""By file, and line before and after."""


class Judged(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a mutant is not a fault."""

    file: str
    was: str
    """The line as it is, without its indentation."""
    becomes: str
    reason: str


class Judgements(Struct, frozen=True, forbid_unknown_fields=True):
    """All that was judged."""

    equivalent: list[Judged] = []
    """The package with it cannot be told from the package without it."""
    harmless: list[Judged] = []
    """It makes a difference, but none that loses, doubles or misreports a job, or that anything promises."""


def judgements() -> Judgements:
    """Read all that was judged."""
    return msgspec.toml.decode(JUDGED.read_bytes(), type=Judgements)


def reasons(judged: list[Judged]) -> Reasons:
    """Return the reasons, by file and lines."""
    return {(one.file, one.was, one.becomes): one.reason for one in judged}
