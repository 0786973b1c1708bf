"""Everything fits a terminal of 80 columns, and uses the width of a larger one."""

import asyncio
import re

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.cli import connect
from shiftwork.cli.looking import top
from shiftwork.cli.terminal import output
from shiftwork.cli.terminal.output import fitting, table
from shiftwork.control.system.overview import System
from shiftwork.core.model.jobs import CheckedJobOptions
from tests.cli.terminal import Terminal, in_shop

LISTS = ("pools", "nodes", "workers", "jobs", "dead", "flows", "schedules", "events", "breakers", "top --once")


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output goes to a terminal, which is 80 columns wide unless a test says otherwise."""
    widen(monkeypatch, 80)


def widen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    for module in (output, top):
        monkeypatch.setattr(module, "terminal_width", lambda *, err=False: columns)


async def fill(app: WorkerOrchestrator) -> None:
    """Jobs, dead ones too, and a schedule, with names as long as people give them."""
    await app.control.schedules.put_named(
        "every-night-before-the-shops-open", "fetch", {}, CheckedJobOptions(), every=300.0
    )
    for number in range(3):
        options = CheckedJobOptions(job_id=f"image-of-order-{number:012}", delay_seconds=3600.0)
        await app.control.jobs.enqueue("resize", {"path": "a.png"}, options)
    await app.control.workers.disable("fetch", "the supplier asked us to stop fetching until their database is back up")
    await app.control.pools.pause("images", "the disk is being replaced, which takes until Friday at noon or so")


@pytest.mark.usefixtures("wide")
def test_every_list_fits_80_columns(shop: Terminal) -> None:
    shop.node()
    in_shop(fill)
    for command in LISTS:
        lines = shop.ok(*command.split()).splitlines()
        assert [line for line in lines if len(line) > 80] == [], command


def test_a_wider_terminal_shows_more(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = {}
    for columns in (80, 200):
        widen(monkeypatch, columns)
        result = shop.run("pools")
        titles[columns] = re.split(r"  +", result.stdout.splitlines()[0])
        hidden = re.search(r"not shown at this width: (.*)", result.stderr)
        assert (hidden is None) == (columns == 200)
    assert set(titles[80]) < set(titles[200])
    assert {"POOL", "SLOTS", "RUNNING", "QUEUED", "OLDEST WAIT", "STATE"} <= set(titles[80])
    assert {"COMPLETED", "FAILED", "DEAD"} <= set(titles[200])


def test_columns_are_left_out_in_their_order_until_the_others_fit() -> None:
    titles, rows = ("NAME", "A", "B", "TEXT"), [("x" * 20, 1_000_000, 2_000_000, "y" * 60)]
    assert fitting(titles, rows, ("B", "A"), None) == [*titles]
    assert fitting(titles, rows, ("B", "A"), 70) == [*titles]
    assert fitting(titles, rows, ("B", "A"), 60) == ["NAME", "A", "TEXT"]
    assert fitting(titles, rows, ("B", "A"), 10) == ["NAME", "TEXT"]
    assert all(len(line) <= 10 for line in table(titles, rows, least=("B", "A"), width=10))


@pytest.mark.usefixtures("wide")
def test_a_hint_breaks_between_words(shop: Terminal) -> None:
    in_shop(fill)
    hint = shop.run("jobs", "--limit", "2").stderr.splitlines()
    assert max(map(len, hint)) <= 80
    assert " ".join(hint).endswith("--after image-of-order-000000000001")


def test_a_store_that_does_not_answer_is_named_after_a_while(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    overview = System.overview

    async def late(system: System, **how: bool) -> object:
        told = asyncio.Event()

        def tell(text: str) -> None:
            messages.append(text)
            told.set()

        monkeypatch.setattr(connect, "aside", tell)
        await told.wait()
        return await overview(system, **how)

    messages: list[str] = []
    monkeypatch.setattr(connect, "STORE_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(System, "overview", late)
    assert "POOL" in shop.ok("pools")
    (message,) = messages
    assert re.match(r"shiftwork: no answer for 0.01 s from sqlite:///.*shop.db; still waiting, Ctrl-C ends it", message)
