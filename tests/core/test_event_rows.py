"""Which events a person means, and the rows in which they are shown."""

from typing import Any

import pytest

from shiftwork.core.model.event import Event
from shiftwork.core.observing.event_rows import EventFilter, EventRows, rows_of, text_of


def event(name: str, subject: str = "s", at: float = 0.0, **data: Any) -> Event:
    return Event(at=at, name=name, subject=subject, message=f"{name} of {subject}", data=data)


def dead(at: float, error: str | None = "TimeoutError: 5 s", worker: str = "charge") -> Event:
    return event("job.dead", f"job-{at:g}", at, worker=worker, error=error, kind="raised")


def test_jobs_that_die_of_one_error_within_a_minute_are_one_row() -> None:
    others = [event("pool.paused", "mail", 30.0), dead(40.0, worker="mail"), dead(45.0, "KeyError: 'x'")]
    events = sorted([*(dead(float(at)) for at in range(0, 60, 5)), *others], key=lambda one: one.at)
    rows = rows_of(events, EventFilter())
    assert [(row.event.subject, row.count) for row in rows] == [
        ("mail", 1),
        ("job-40", 1),
        ("job-45", 1),
        ("job-55", 12),
    ]
    assert rows[-1].first_at == 0.0
    assert text_of(rows[-1]) == "12 jobs of charge died within 55 s; the newest: TimeoutError: 5 s"


def test_a_minute_is_counted_back_from_the_newest() -> None:
    rows = rows_of([dead(float(at)) for at in (0, 39, 41, 100)], EventFilter())
    assert [(row.event.at, row.count) for row in rows] == [(39, 2), (100, 2)]


def test_errors_that_differ_in_numbers_alone_are_one() -> None:
    assert [row.count for row in rows_of([dead(0.0, "5 of 7"), dead(1.0, "6 of 7")], EventFilter())] == [2]
    assert [row.count for row in rows_of([dead(0.0, None), dead(1.0, None)], EventFilter())] == [2]


def test_rows_end_where_there_is_no_room_and_an_event_that_joins_a_row_needs_none() -> None:
    rows = EventRows(1)
    assert [rows.add(one) for one in (dead(9.0), dead(8.0), event("pool.paused"), dead(7.0))] == [
        True,
        True,
        False,
        True,
    ]
    assert [row.count for row in rows.oldest_first()] == [3]


ABOUT = {
    "worker": event("worker.disabled", "charge"),
    "its job": event("job.dead", "id", worker="charge"),
    "its expired jobs": event("jobs.expired", "mail", workers={"mail": 1, "charge": 2}),
    "its breaker": event("breaker.opened", "bank"),
    "its schedule": event("schedule.skipped", "charge"),
    "a pool of its name": event("pool.paused", "charge"),
    "another breaker": event("breaker.opened", "charge"),
    "another worker": event("worker.disabled", "mail"),
    "a node": event("node.started", "n"),
}


def test_events_about_a_worker_are_those_of_its_jobs_and_its_breaker_too() -> None:
    wanted = EventFilter(workers=frozenset({"charge"}), breakers=frozenset({"bank"}))
    assert [what for what, one in ABOUT.items() if wanted.matches(one)] == [
        "worker",
        "its job",
        "its expired jobs",
        "its breaker",
        "its schedule",
    ]


def test_events_about_a_pool_are_those_of_its_workers_too() -> None:
    wanted = EventFilter(pool="money", workers=frozenset({"charge"}), breakers=frozenset({"bank"}))
    events = [*ABOUT.values(), event("pool.scaled", "money"), event("jobs.amended", "retried", pool="money")]
    found = [one.subject for one in events if wanted.matches(one)]
    assert found == ["charge", "id", "mail", "bank", "charge", "money", "retried"]


@pytest.mark.parametrize(("by", "found"), [("ada@host", True), ("ada", True), ("host", False), ("ad", False)])
def test_who_is_found_with_and_without_the_machine(by: str, found: bool) -> None:  # noqa: FBT001 - a table
    assert EventFilter(by=by).matches(event("pool.paused", by="ada@host")) is found
    assert not EventFilter(by=by).matches(event("pool.scaled"))


def test_a_time_has_a_beginning_and_an_end() -> None:
    wanted = EventFilter(since=10.0, until=20.0)
    assert [at for at in (9.9, 10.0, 19.9, 20.0) if wanted.matches(event("x", at=at))] == [10.0, 19.9]


def test_a_row_says_that_its_error_is_only_the_newest() -> None:
    rows = rows_of([dead(0.0, "HTTP 404"), dead(1.0, "HTTP 500")], EventFilter())
    assert [text_of(row) for row in rows] == ["2 jobs of charge died within 1 s; the newest: HTTP 500"]
    rows = rows_of([dead(0.0, None), dead(1.0, None)], EventFilter())
    assert text_of(rows[0]).endswith("; the newest: no error recorded")


def test_a_text_cannot_drive_a_terminal_or_reverse_its_direction() -> None:
    message = "clear \x1b[2J\x9b31m\u202eelttil\x00"
    row = rows_of([Event(at=0.0, name="n", subject="s", message=message)], EventFilter())[0]
    assert text_of(row) == r"clear \x1b[2J\x9b31m\u202eelttil\x00"
    row = rows_of([dead(0.0, "\x1b]0;owned\x07"), dead(1.0, "\x1b]0;owned\x07")], EventFilter())[0]
    assert text_of(row).isprintable()


def test_a_text_is_one_line() -> None:
    row = rows_of([Event(at=0.0, name="n", subject="s", message="two\n  lines")], EventFilter())[0]
    assert text_of(row) == "two lines"
