"""The connection for callers without an event loop: no caller gets the reply to another one's request."""

import threading

import pytest

from shiftwork.store.blocking_connection import CALLS_BEFORE, BlockingConnection


class Wire(list[str]):
    """A connection: the replies that are still to come."""


class Echo(BlockingConnection[Wire, str, str]):
    """Sends requests to a server that returns each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.wires: list[Wire] = []
        self.ended: list[Wire] = []
        self.trouble: BaseException | None = None

    def connect(self) -> Wire:
        self.wires.append(Wire())
        return self.wires[-1]

    def ask(self, link: Wire, request: str) -> str | None:
        link.append(request)
        if self.trouble is not None:
            raise self.trouble
        return link.pop(0) or None

    def end(self, link: Wire) -> None:
        self.ended.append(link)


def connected() -> Echo:
    echo = Echo()
    replies = [echo.run("a") for _ in range(CALLS_BEFORE + 1)]
    assert replies == [*[None] * CALLS_BEFORE, "a"], "the first calls go another way"
    return echo


@pytest.mark.parametrize("trouble", [TimeoutError("no reply"), KeyboardInterrupt()], ids=["silence", "interrupt"])
def test_a_reply_that_comes_late_is_read_by_no_other_call(trouble: BaseException) -> None:
    echo = connected()
    echo.trouble = trouble
    with pytest.raises(type(trouble)):
        echo.run("lost")
    echo.trouble = None
    replies = [echo.run(f"{n}") for n in range(CALLS_BEFORE + 2)]
    assert replies == [*[None] * CALLS_BEFORE, f"{CALLS_BEFORE}", f"{CALLS_BEFORE + 1}"]
    assert echo.ended == [["lost"]]


def test_a_connection_whose_server_has_done_nothing_or_has_closed_it_is_replaced() -> None:
    echo = connected()
    assert echo.run("") is None
    assert [echo.run("b") for _ in range(CALLS_BEFORE + 1)][-1] == "b"
    echo.has_input = lambda: True
    assert echo.run("c") is None
    assert (len(echo.wires), len(echo.ended)) == (2, 2)
    echo.close()
    assert len(echo.ended) == 2, "what has ended does not end again"


def test_a_caller_that_finds_the_connection_in_use_goes_another_way() -> None:
    echo = connected()
    inside: list[str | None] = []

    def has_input() -> bool:
        other = threading.Thread(target=lambda: inside.append(echo.run("b")))
        other.start()
        other.join()
        return False

    echo.has_input = has_input
    assert echo.run("a") == "a"
    assert inside == [None]
    echo.has_input = list
    assert echo.run("c") == "c", "it is free again"
