"""The nearest name: the word of another library, then a prefix, then the spelling."""

import pytest

from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.words import seconds_in
from shiftwork.errors import _ELSEWHERE, meant_by, nearest

WORKER = WorkerConfig.__struct_fields__
POOL = PoolConfig.__struct_fields__


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("queue", WORKER, ["pool"]),
        ("timeout", WORKER, ["timeout_seconds"]),
        ("Timeout-Seconds", WORKER, ["timeout_seconds"]),
        ("every", WORKER, ["interval_seconds"]),
        ("countdown", ["delay_seconds", "run_at"], ["delay_seconds"]),
        ("eta", ["delay_seconds", "run_at"], ["run_at"]),
        ("max_attempts", WORKER, ["max_retries"]),
        ("concurrency", WORKER, ["max_running"]),
        ("concurrency", POOL, ["max_workers"]),
        ("min_worker", POOL, ["min_workers"]),
        ("pool_name", WORKER, ["pool"]),
        ("scale", POOL, ["scale_down_after_seconds", "scale_down_threshold", "scale_up_threshold"]),
        ("fetch-date", ["fetch-data", "process"], ["fetch-data"]),
        ("zebra", WORKER, []),
        ("", WORKER, []),
    ],
)
def test_what_was_meant(name: str, known: list[str], meant: list[str]) -> None:
    assert meant_by(name, known) == meant


def test_all_options_are_listed_where_none_is_near() -> None:
    assert all(option in nearest("zebra", WORKER) for option in WORKER)
    assert nearest("zebra", []) == "there are none"


def test_no_word_of_another_library_is_an_option_of_the_same_kind() -> None:
    """A word that is a name of ours, in the same place, would never be looked up."""
    for known in (WORKER, POOL):
        ours = [name for name in known if name in _ELSEWHERE]
        assert not {word for name in ours for word in _ELSEWHERE[name].split()} & {*known}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("10s", 10), ("5 min", 300), ("1.5h", 5400), ("2 days", 172_800), (7, 7), (True, None), ("soon", None)],
)
def test_durations(written: object, seconds: float | None) -> None:
    assert seconds_in(written) == seconds
