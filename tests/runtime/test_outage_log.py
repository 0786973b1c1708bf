"""One log of outages of the store: a line when it goes, a line when it is back, whatever calls it and however often."""

import logging

import pytest

from shiftwork import StoreFullError, StoreUnavailableError
from shiftwork.runtime.outage_log import ADDS, BEATS, EVENTS, OUTCOMES, OutageLog

AWAY = StoreUnavailableError("connection refused")
FULL = StoreFullError("no space left")


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fault_of(outages: OutageLog) -> str | None:
    return outages.fault


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def outages(time: Time, caplog: pytest.LogCaptureFixture) -> OutageLog:
    caplog.set_level(logging.DEBUG)
    return OutageLog(time)


def test_an_outage_that_everyone_notices_is_two_lines(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for who in ("planner", "leader", BEATS, "pool default", OUTCOMES, "planner", "leader"):
        outages.failed(who, AWAY)
        time.now += 3
    assert fault_of(outages) == "connection refused"
    outages.passed("pool default")
    assert len(caplog.messages) == 1, "a duty that had nothing to ask is no proof"
    outages.worked(BEATS)
    assert caplog.messages == [
        "store: unavailable: connection refused; running jobs go on, no job starts until it is back",
        "store: back after 21.0 s",
    ]
    assert fault_of(outages) is None


def test_a_duty_that_had_nothing_to_ask_does_not_bring_an_unavailable_store_back(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed("pool default", AWAY)
    time.now += 1
    outages.passed("pool default")
    assert len(caplog.messages) == 1
    outages.worked(BEATS)
    assert caplog.messages[1:] == ["store: back after 1.0 s"]


def test_a_write_that_fails_while_others_succeed_stays_a_fault(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed(OUTCOMES, FULL)
    for _ in range(10):
        time.now += 1
        outages.worked(BEATS)
        outages.failed(OUTCOMES, FULL)
    assert fault_of(outages) == "writing outcomes fails: no space left"
    outages.worked(OUTCOMES)
    assert fault_of(outages) is None
    assert caplog.messages == [
        "store: writing outcomes fails: no space left; trying again until it succeeds",
        "store: working again after 10.0 s",
    ]


def test_a_store_that_flickers_does_not_fill_the_log(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        outages.failed("planner", AWAY)
        time.now += 0.5
        outages.worked(BEATS)
        time.now += 0.5
    assert len(caplog.messages) == 2
    for _ in range(7):
        outages.failed("planner", AWAY)
        time.now += 1
    assert len(caplog.messages) == 3, "one that lasts is worth a line"


def test_a_caller_that_gets_the_error_is_known_to_health_alone(
    outages: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed(ADDS, FULL, quietly=True)
    assert fault_of(outages) == "adding jobs fails: no space left"
    outages.worked(ADDS)
    assert (fault_of(outages), caplog.messages) == (None, [])


def test_a_fault_that_is_not_repeated_is_over(outages: OutageLog, time: Time) -> None:
    outages.failed(OUTCOMES, FULL)
    time.now += 59
    assert fault_of(outages) is not None
    time.now += 2
    assert fault_of(outages) is None


def test_a_write_that_is_not_tried_again_does_not_outlast_its_cause(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for who in (BEATS, EVENTS):
        outages.failed(who, FULL)
    time.now += 5
    outages.worked(BEATS)
    time.now += 5
    outages.worked(BEATS)
    assert fault_of(outages) is None
    assert caplog.messages[1:] == ["store: working again after 10.0 s"]


def test_a_store_that_goes_away_while_it_rejects_something_is_news(
    outages: OutageLog, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed("leader", FULL)
    for _ in range(2):
        time.now += 3
        outages.failed(BEATS, AWAY)
    outages.passed("leader")
    outages.worked(BEATS)
    assert caplog.messages == [
        "store: leader fails: no space left; trying again until it succeeds",
        "store: unavailable: connection refused; running jobs go on, no job starts until it is back",
        "store: back after 6.0 s",
    ]
