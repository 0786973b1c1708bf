"""Every named mutant applies to the source as it is, what has to notice it exists, and the page lists it.

`make mutants` runs them. A page that is out of date is written anew by `make mutants ARGS=--table`.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import named_run
from tests.mutants.judgements import judgements
from tests.mutants.mutant import PACKAGE, Mutant
from tests.mutants.named import NAMED
from tests.mutants.reports import judged_rows, short_name
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


def test_the_page_lists_every_named_mutant_with_what_killed_it() -> None:
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (.+) \| [\d.]+ s \|$", named_run.PAGE.read_text(), re.MULTILINE)
    assert [(name, file) for name, file, _ in rows] == [(mutant.name, mutant.file) for mutant in ALL]
    for mutant, (name, _, by) in zip(ALL, rows, strict=True):
        assert by in map(short_name, named_run.tests_of(mutant)), f"{name}: it is killed by {mutant.noticed_by} now"


def test_the_page_lists_every_random_mutant_that_was_judged_and_its_line_is_there() -> None:
    page, judged = named_run.PAGE.read_text(), judgements()
    for mutants in (judged.equivalent, judged.harmless):
        for row in judged_rows(mutants):
            assert row in page
        for mutant in mutants:
            assert mutant.was in map(str.strip, (PACKAGE / mutant.file).read_text().splitlines()), mutant
