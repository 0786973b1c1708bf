"""Which errors are one error, seen many times."""

import pytest

from shiftwork.core.observing.dead_groups import group_key


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("order 17 was refused", "order 4711 was refused"),
        ("<Order at 0x7f3aB0>", "<Order at 0x10>"),
        ("no user 0189f7e2-3b1c-7cc2-98a7-1f00aa54e6bd", "no user 5B0c9a1e-77d4-4f2a-8a6b-90deadbeef01"),
        ("bad digest e3b0c44298fc1c149afbf4c8996fb924", "bad digest ffffffffffffffffffffffffffffffff"),
    ],
)
def test_a_number_a_uuid_or_a_digest_makes_no_other_error(one: str, another: str) -> None:
    assert group_key("ship", one) == group_key("ship", another)


def test_words_and_workers_do() -> None:
    keys = {group_key("ship", "no such order"), group_key("ship", "no such user"), group_key("bill", "no such user")}
    assert len(keys) == 3
