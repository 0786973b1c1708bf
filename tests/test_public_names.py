"""No public name vanishes unseen: docs/stability.md says what it takes to remove one."""

from tests.public_names import FILE, public_names


def test_every_public_name_is_still_there() -> None:
    gone = set(FILE.read_text().splitlines()) - set(public_names())
    assert gone == set(), "deprecate a name for a minor version before it goes, then run python -m tests.public_names"


def test_every_public_name_is_in_the_list() -> None:
    new = set(public_names()) - set(FILE.read_text().splitlines())
    assert new == set(), "run python -m tests.public_names"
