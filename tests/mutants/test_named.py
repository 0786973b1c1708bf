"""Every named mutant applies to the source as it is, and what has to notice it exists. `make mutants` runs them."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.mutant import PACKAGE, Mutant
from tests.mutants.named import NAMED
from tests.store.conformance.suite import CHECKS

CHECK_NAMES = {check.__name__.removeprefix("check_") for check in CHECKS}
ALL = [mutant for mutants in NAMED.values() for mutant in mutants]


def test_every_mutant_applies_and_can_be_read() -> None:
    for mutant in ALL:
        changed = mutant.applied_to((PACKAGE / mutant.file).read_text())
        if mutant.file.endswith(".py"):
            ast.parse(changed, mutant.name)


def test_no_two_mutants_of_a_file_have_the_same_name() -> None:
    assert [pair for pair, n in Counter((mutant.file, mutant.name) for mutant in ALL).items() if n > 1] == []


@pytest.mark.parametrize("mutants", NAMED.values(), ids=NAMED)
def test_what_has_to_notice_a_mutant_exists(mutants: tuple[Mutant, ...], checkout: Path) -> None:
    for mutant in mutants:
        assert mutant.noticed_by, mutant.name
        for test in mutant.noticed_by:
            file, _, name = test.partition("::")
            if name:
                assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in (checkout / file).read_text(), test
            else:
                assert test in CHECK_NAMES, test
