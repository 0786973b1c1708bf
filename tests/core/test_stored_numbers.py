"""The numbers that SQL and Lua share with core. Databases hold them, so they must never change."""

import pytest

from shiftwork.core.stored_numbers import STORED_NUMBERS, with_numbers

KEPT = {
    "STATUS_SCHEDULED": 0,
    "STATUS_FAILED": 1,
    "STATUS_WAITING": 2,
    "STATUS_QUEUED": 3,
    "STATUS_PROCESSING": 4,
    "STATUS_COMPLETED": 5,
    "STATUS_DEAD": 6,
    "STATUS_CANCELLED": 7,
    "NEED_WHATEVER": 1,
    "NEED_ALONE": 2,
    "NEED_BROKEN": 4,
}


def test_numbers_that_databases_hold_stay_what_they_are() -> None:
    assert {name: STORED_NUMBERS[name] for name in KEPT} == KEPT


def test_names_in_a_text_become_numbers() -> None:
    text = "status <= STATUS_PROCESSING AND verdict = VERDICT_FAILURE OR run_at > SECONDS_A_DAY OR flags = FLAG_X"
    assert with_numbers(text, {"FLAG_X": 8}) == "status <= 4 AND verdict = -1 OR run_at > 86400 OR flags = 8"
    assert with_numbers("my_status and status_of_it and STATUS") == "my_status and status_of_it and STATUS"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="STATUS_GONE"):
        with_numbers("status = STATUS_GONE")
