"""The day on the screen: what is drawn is what was seen, and it fits."""

from io import StringIO

import pytest
from rich.console import Console

from examples.company.day import Day
from examples.company.health import LASTING_SECONDS, Health
from examples.company.look import News, Picture, Pool, Worker
from examples.company.screen import Screen
from examples.company.view import PlainView, bar

DAY = Day(96.0)
PICTURE = Picture(
    day=DAY,
    seconds=41.6,
    pools=[
        Pool("mail", queued=94, busy=5, slots=6, most=8, completed=1_120, dead=0),
        Pool("images", queued=6, busy=1, slots=2, most=3, completed=80, dead=1),
    ],
    workers=[
        Worker("process-data", "scheduled", "waits", 0, "blocked by cleanup, which is running"),
        Worker("book_order", "triggered", "disabled", 0, "3 runs in a row failed"),
        Worker("send_email", "triggered", "runs", 5, ""),
    ],
    news=[
        News(0.0, "story", "midnight"),
        News(40.0, "pool.scaled", "pool mail: 2 → 8 slots: 94 queued"),
        News(40.5, "pool.scaled", "pool images: 0 → 2 slots: 6 queued"),
        News(41.0, "pool.scaled", "pool mail: 8 → 7 slots: 0 queued"),
        News(41.2, "pool.scaled", "pool mail: 7 → 6 slots: 0 queued"),
        News(41.3, "pool.scaled", "pool exports: 0 → 1 slot: 1 queued"),
        News(41.4, "pool.scaled", "pool exports: 1 → 0 slots: 0 queued"),
        News(41.5, "health.problem", "health: worker book_order is disabled"),
    ],
    problems=("worker_disabled (book_order)",),
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
        "10:24",
        "5 of 6, max 8",
        "6 of 8, max 11",
        "1,120",
        "blocked by cleanup, which is running",
        "3 runs in a row failed",
        "runs 5×",
        "█ busy ▒ free",
        "pool mail: 2 → 8 slots",
        "pool mail: 8 → 6 slots",
        "health: worker_disabled (book_order)",
    ):
        assert words in text, text


def test_plain_lines_report_news_steps_and_reasons_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    view.show(PICTURE)
    view.show(PICTURE)
    view.close()
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 140, "a line of a log is read, not scrolled"
    assert shown == [
        "00:00 » midnight",
        "10:22 · health: worker book_order is disabled",
        "10:24 · process-data waits: blocked by cleanup, which is running",
        "10:24 · pool images: 0 → 2 slots: 6 queued",
        "10:24 · pool mail: 2 → 6 slots: 94 queued",
        "10:24   100 waiting ▕███·······▏  8 slots ▕█████▒▒···▏ 1,200 done;  mail 5/6  images 1/2",
    ]


def test_health_is_reported_as_what_has_changed_and_lasts() -> None:
    health = Health()
    starved = {("pool_starved", name): f"the oldest job of pool {name} has waited" for name in ("mail", "images")}
    opened = {("breaker_open", "partner"): f"breaker partner is open after {'very ' * 40}many failures"}
    assert [*health.changes(opened, 0.0)] == [], "it may be over in a moment"
    ((name, text),) = health.changes(opened, LASTING_SECONDS)
    assert name == "health.problem"
    assert text.startswith("health: breaker partner is open after very ")
    assert len(text) <= 120
    assert [*health.changes(opened, 2 * LASTING_SECONDS)] == [], "it was reported"
    assert [*health.changes(opened | starved, 3 * LASTING_SECONDS)] == []
    changes = [*health.changes(starved, 4 * LASTING_SECONDS)]
    assert changes == [
        ("health.problem", "health: pool_starved (mail, images)"),
        ("health.recovered", "health: over: breaker_open (partner)"),
    ]
    assert health.problems == ("pool_starved (mail, images)",)
