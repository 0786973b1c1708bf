"""One voice for the store: a line when it goes, a line when it is back, whoever calls it and however often."""

import logging

import pytest

from shiftwork import StoreFullError, StoreUnavailableError
from shiftwork.runtime.store_voice import ADDS, BEATS, EVENTS, OUTCOMES, StoreVoice

AWAY = StoreUnavailableError("connection refused")
FULL = StoreFullError("no space left")


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fault_of(voice: StoreVoice) -> str | None:
    return voice.fault


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def voice(time: Time, caplog: pytest.LogCaptureFixture) -> StoreVoice:
    caplog.set_level(logging.DEBUG)
    return StoreVoice(time)


def test_an_outage_that_everyone_notices_is_two_lines(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for who in ("planner", "leader", BEATS, "pool default", OUTCOMES, "planner", "leader"):
        voice.failed(who, AWAY)
        time.now += 3
    assert fault_of(voice) == "connection refused"
    voice.settled("pool default")
    assert len(caplog.messages) == 1, "a duty that had nothing to ask is no proof"
    voice.worked(BEATS)
    assert caplog.messages == [
        "store: unavailable: connection refused; running jobs go on, no job starts until it is back",
        "store: back after 21.0 s",
    ]
    assert fault_of(voice) is None


def test_a_duty_that_had_nothing_to_ask_does_not_bring_an_unavailable_store_back(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    voice.failed("pool default", AWAY)
    time.now += 1
    voice.settled("pool default")
    assert len(caplog.messages) == 1
    voice.worked(BEATS)
    assert caplog.messages[1:] == ["store: back after 1.0 s"]


def test_a_write_that_fails_while_others_succeed_stays_a_fault(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    voice.failed(OUTCOMES, FULL)
    for _ in range(10):
        time.now += 1
        voice.worked(BEATS)
        voice.failed(OUTCOMES, FULL)
    assert fault_of(voice) == "writing outcomes fails: no space left"
    voice.worked(OUTCOMES)
    assert fault_of(voice) is None
    assert caplog.messages == [
        "store: writing outcomes fails: no space left; trying again until it succeeds",
        "store: working again after 10.0 s",
    ]


def test_a_store_that_flickers_does_not_fill_the_log(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        voice.failed("planner", AWAY)
        time.now += 0.5
        voice.worked(BEATS)
        time.now += 0.5
    assert len(caplog.messages) == 2
    for _ in range(7):
        voice.failed("planner", AWAY)
        time.now += 1
    assert len(caplog.messages) == 3, "one that lasts is worth a line"


def test_a_caller_that_is_told_by_the_error_is_known_to_health_alone(
    voice: StoreVoice, caplog: pytest.LogCaptureFixture
) -> None:
    voice.failed(ADDS, FULL, quietly=True)
    assert fault_of(voice) == "adding jobs fails: no space left"
    voice.worked(ADDS)
    assert (fault_of(voice), caplog.messages) == (None, [])


def test_a_fault_that_is_not_repeated_is_over(voice: StoreVoice, time: Time) -> None:
    voice.failed(OUTCOMES, FULL)
    time.now += 59
    assert fault_of(voice) is not None
    time.now += 2
    assert fault_of(voice) is None


def test_a_write_that_is_not_tried_again_does_not_outlast_its_cause(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for who in (BEATS, EVENTS):
        voice.failed(who, FULL)
    time.now += 5
    voice.worked(BEATS)
    time.now += 5
    voice.worked(BEATS)
    assert fault_of(voice) is None
    assert caplog.messages[1:] == ["store: working again after 10.0 s"]


def test_a_store_that_goes_away_while_it_rejects_something_is_news(
    voice: StoreVoice, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    voice.failed("leader", FULL)
    for _ in range(2):
        time.now += 3
        voice.failed(BEATS, AWAY)
    voice.settled("leader")
    voice.worked(BEATS)
    assert caplog.messages == [
        "store: leader fails: no space left; trying again until it succeeds",
        "store: unavailable: connection refused; running jobs go on, no job starts until it is back",
        "store: back after 6.0 s",
    ]
