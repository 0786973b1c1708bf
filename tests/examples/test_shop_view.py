"""The shop on the screen: what is drawn is what was seen, and it fits."""

from io import StringIO

import pytest
from rich.console import Console

from examples.shop.look import News, Picture, Pool, Worker
from examples.shop.screen import Screen
from examples.shop.view import PlainView, bar

PICTURE = Picture(
    seconds=12.3,
    pools=[Pool("mail", queued=94, busy=5, slots=6, most=8, completed=120, failed=3, dead=1, silent=7)],
    workers=[
        Worker("process-data", "scheduled", "waits", 0, "blocked by cleanup, which is running"),
        Worker("call_partner", "triggered", "disabled", 0, "3 runs in a row failed"),
        Worker("send_mail", "triggered", "runs", 5, ""),
    ],
    news=[
        News(1.0, "story", "the shop opens"),
        News(2.0, "pool.scaled", "pool mail: 2 → 8 slots: 94 queued"),
        News(3.0, "pool.scaled", "pool mail: 8 → 7 slots: 0 queued"),
        News(4.0, "pool.scaled", "pool mail: 7 → 6 slots: 0 queued"),
    ],
    health="degraded: worker call_partner is disabled",
)


@pytest.mark.parametrize(
    ("filled", "half", "whole", "drawn"),
    [
        (0, 0, 0, "··········"),
        (0, 2, 8, "▒▒········"),
        (1, 1, 400, "█·········"),
        (4, 8, 8, "█████▒▒▒▒▒"),
        (9, 9, 8, "██████████"),
    ],
)
def test_a_bar_has_its_length_and_shows_the_least_of_something(
    filled: float, half: float, whole: float, drawn: str
) -> None:
    assert "".join(bar(filled, half, whole, width=10)) == drawn


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24)])
def test_the_screen_shows_pools_workers_reasons_and_news(width: int, height: int) -> None:
    file = StringIO()
    screen = Screen(Console(file=file, width=width, height=height, legacy_windows=False))
    screen.show(PICTURE)
    screen.close()
    drawn = file.getvalue().rstrip("\n").splitlines()
    assert len(drawn) <= height
    assert max(map(len, drawn)) <= width
    text = "\n".join(drawn)
    for words in (
        "5 of 6, max 8 +7 silent",
        "blocked by cleanup, which is running",
        "3 runs in a row failed",
        "runs 5×",
        "the shop opens",
        "pool mail: 2 → 8 slots",
        "pool mail: 8 → 6 slots",
        "health: degraded",
    ):
        assert words in text, text


def test_plain_lines_tell_news_and_reasons_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    view.show(PICTURE)
    view.show(PICTURE)
    view.close()
    shown = capsys.readouterr().out
    assert shown.count("the shop opens") == 1
    assert shown.count("process-data waits: blocked by cleanup") == 1
    assert shown.count("94 queued, 120 done") == 1
