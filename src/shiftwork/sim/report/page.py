"""One self-contained HTML page with curves, tables and words: no network, light and dark, for the screen and for paper.

`page(title, sections, lead="…")` returns the document as text. A section has a title, text, tables, charts and lists
of moments ("13:02  2 → 4 slots: …"), any of which may be empty. Curves of one chart are drawn over each other, so
planned and measured numbers are two curves of one chart:

    page("The company's day", [
        PageSection(title="images", charts=[
            Chart(title="slots", unit="slots", start=0.0, curves=[
                evenly("planned", [2, 4, 8], 60.0), Curve("measured", [(0.0, 2.0), (75.0, 5.0)]),
            ]),
        ]),
    ])
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import count

from msgspec import Struct

from shiftwork.sim.report.chart import Chart, drawn


class PageTable(Struct, frozen=True, kw_only=True):
    """A table; cells that begin with a digit or a sign are aligned to the right."""

    caption: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


class PageMoments(Struct, frozen=True, kw_only=True):
    """Clock times, each with what happened then; folded away under a title."""

    title: str
    items: Sequence[tuple[str, str]]


class PageSection(Struct, frozen=True, kw_only=True):
    """A part of the page, under a heading of its own."""

    title: str
    text: Sequence[str] = ()
    """The paragraphs."""
    tables: Sequence[PageTable] = ()
    charts: Sequence[Chart] = ()
    moments: Sequence[PageMoments] = ()


def page(title: str, sections: Sequence[PageSection], *, lead: str = "") -> str:
    """Return an HTML document."""
    numbers = count(1)
    names = (f"chart-{n}" for n in numbers)
    body = "".join(_section(section, names) for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>\n{_file('page.css')}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{_lead(lead)}{body}</main><script>\n{_file('page.js')}</script></body></html>\n"
    )


def _lead(text: str) -> str:
    return f'<p class="lead">{escape(text)}</p>' if text else ""


def _section(section: PageSection, names: Iterator[str]) -> str:
    return "".join(
        (
            f"<section><h2>{escape(section.title)}</h2>",
            *(f"<p>{escape(paragraph)}</p>" for paragraph in section.text),
            *map(_table, section.tables),
            *(drawn(chart, next(names)) for chart in section.charts),
            *map(_moments, section.moments),
            "</section>",
        )
    )


def _table(table: PageTable) -> str:
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in table.titles)
    rows = "".join(f"<tr>{''.join(_cells(row))}</tr>" for row in table.rows)
    return (
        f'<div class="wide" tabindex="0"><table><caption>{escape(table.caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(row: Sequence[str]) -> Iterator[str]:
    first, *others = row
    yield f'<th scope="row">{escape(first)}</th>'
    for cell in others:
        number = ' class="n"' if cell[:1].isdigit() or cell[:1] in "-–+" else ""
        yield f"<td{number}>{escape(cell)}</td>"


def _moments(moments: PageMoments) -> str:
    items = "".join(f"<li><time>{escape(at)}</time> {escape(what)}</li>" for at, what in moments.items)
    return f"<details><summary>{escape(moments.title)}</summary><ol>{items}</ol></details>"


def _file(name: str) -> str:
    return files("shiftwork.sim").joinpath(name).read_text()
