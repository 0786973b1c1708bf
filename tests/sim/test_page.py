"""The page is one file: well-formed, without the network, and readable without seeing the pictures."""

import re
from html.parser import HTMLParser

import pytest

from shiftwork.sim.report.chart import Chart, Curve, drawn, evenly
from shiftwork.sim.report.page import PageMoments, PageSection, PageTable, page
from shiftwork.sim.report.study_page import study_page
from shiftwork.sim.study import study_scenario
from tests.sim.scenarios import small

VOID = {"meta"}


class Tags(HTMLParser):
    """Checks that every tag is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags


@pytest.fixture(scope="module")
def made() -> str:
    two = "[configurations.a]\n[configurations.b.pools.images]\nmin_workers = 8\n[targets.images]"
    return study_page(study_scenario(small(("[targets.images]", two))))


def test_the_page_is_well_formed_and_loads_nothing(made: str) -> None:
    tags = tags_of(made)
    assert made.startswith("<!DOCTYPE html>")
    assert {"link", "img", "iframe", "object"}.isdisjoint(tags.seen)
    assert not [name for name, _ in tags.attributes if name in {"src", "href", "srcset"}]
    assert not re.search(r"https?://|url\(|@import|fetch\(", made)


def test_the_page_has_the_curves_of_each_configuration_and_the_reasons(made: str) -> None:
    assert made.count("<figure") == 6  # queued, slots and arrivals: of all pools together, and of the one pool
    assert made.count('data-label="a"') == made.count('data-label="b"') == 4
    assert re.search(r"<time>00:\d\d:\d\d</time> 4 → [5-8]: ", made)
    assert "prefers-color-scheme: dark" in made
    assert "@media print" in made


def test_a_chart_says_what_it_shows() -> None:
    curves = [evenly("planned", [1, 50_000, 3], 60.0), Curve("<measured>", [(0.0, 2.0), (90.0, 5.0)])]
    figure = drawn(Chart(title="Queued", unit="jobs", start=36_000.0, curves=curves, scale="auto"), "one")
    tags_of(figure)
    assert (
        'aria-label="Queued. planned: at most 50,000 jobs, at 10:01. &lt;measured&gt;: at most 5 jobs, at 10:01."'
        in figure
    )
    assert "<small>logarithmic</small>" in figure
    assert 'data-values="[1,50000,3]"' in figure or 'data-values="[1.0,50000.0,3.0]"' in figure


def test_an_empty_chart_can_be_drawn() -> None:
    tags_of(drawn(Chart(title="Nothing", unit="jobs", start=0.0, curves=[Curve("none", [])], scale="auto"), "none"))


def test_text_from_a_scenario_cannot_become_markup() -> None:
    evil = "<script>alert(1)</script>"
    table = PageTable(caption=evil, titles=[evil], rows=[[evil, evil]])
    chart = Chart(title=evil, unit=evil, start=0.0, curves=[Curve(evil, [(0.0, 1.0)])])
    section = PageSection(
        title=evil, text=[evil], tables=[table], charts=[chart], moments=[PageMoments(title=evil, items=[(evil, evil)])]
    )
    made = page(evil, [section], lead=evil)
    assert evil not in made
    assert tags_of(made).seen.count("script") == 1
