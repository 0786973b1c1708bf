"""Output: aligned tables for people, one JSON document for programs, and messages on stderr."""

import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from shiftwork.cli.terminal.formatting import one_line
from shiftwork.core.words import printable, printable_json
from shiftwork.sentences import plain

_GAP: Final = "  "
_NARROW: Final = 24
"""The width to which the last column is cut first on a narrow terminal."""
_NARROWEST: Final = 12
"""The width to which other columns are cut then, the widest first."""
_TINY: Final = 4
"""The width to which any column is cut where nothing else helps."""
_IDS: Final = ("ID", "JOB", "EXAMPLE", "GROUP")
"""The columns that are cut last: people copy them."""
_NAMES: Final = ("WORKER", "POOL", "NODE", "INSTANCE")
"""The columns that are cut only if cutting texts is not enough, like the first one: half a name is of little use."""

Cell = str | int | None

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")


def say(text: str = "", *, err: bool = False) -> None:
    """Print a text. Whatever comes from a store or a URL, it cannot change the terminal."""
    click.echo(printable(text), err=err)


def show_json(document: Any) -> None:
    """Print a JSON document."""
    click.echo(printable_json(json_text(document)))


def answer(document: Any, text: str, *, as_json: bool) -> None:
    """Print what was done: as a JSON document if that is wanted, otherwise as a text."""
    if as_json:
        show_json(document)
    else:
        say(text)


def show_json_line(value: Any) -> None:
    """Print a value as one line of JSON."""
    click.echo(printable_json(msgspec.json.encode(value, enc_hook=plain).decode()))


def json_text(value: Any) -> str:
    """Return a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=plain), indent=2).decode()


def aside(text: str) -> None:
    """Print a hint or a message on stderr: a program may be reading stdout. On a terminal it breaks between words."""
    width = terminal_width(err=True)
    for line in printable(text).split("\n"):
        if width is None or _width(line) <= width:
            click.echo(line, err=True)
            continue
        import textwrap

        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False):
            click.echo(part, err=True)


def show_wrapped(head: str, text: str) -> None:
    """Print a head, which may be coloured, and a text beside it. On a terminal, a long text is wrapped and indented."""
    text = printable(text)
    indent = " " * _width(click.unstyle(head))
    import textwrap

    width = terminal_width()
    room = 0 if width is None else width - len(indent)
    lines = textwrap.wrap(text, max(room, _NARROW), break_on_hyphens=False) if room else [text]
    for line in lines or [""]:
        click.echo(f"{head}{line}".rstrip())
        head = indent


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, least: Sequence[str] = (), err: bool = False
) -> None:
    """Print rows under titles: numbers are aligned to the right, everything else to the left.

    On a terminal, a row fits into a line: the columns `least` are left out, the first one first, until the others fit,
    and texts are cut. In a pipe, nothing is left out or cut.
    """
    width = terminal_width(err=err)
    head, *lines = table(titles, rows, least=least, width=width)
    click.echo(click.style(head, bold=True), err=err)  # without the style where there is no terminal, or NO_COLOR
    for line in lines:
        say(line, err=err)
    hidden = [title for title in least if title not in fitting(titles, rows, least, width)]
    if hidden:
        aside(f"not shown at this width: {', '.join(hidden)}")


def table(
    titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, least: Sequence[str] = (), width: int | None = None
) -> list[str]:
    """Return the lines of a table; see `show_table`."""
    kept = [titles.index(title) for title in fitting(titles, rows, least, width)]
    titles, rows = [titles[column] for column in kept], [[row[column] for column in kept] for row in rows]
    texts, widths, numeric = _measured(titles, rows)
    if width is None:
        return [_line(line, widths, numeric) for line in texts]
    widths = _shrunk(widths, _hardness(titles, numeric), width - len(_GAP) * (len(widths) - 1))
    return [cut(_line(line, widths, numeric), width) for line in texts]


def fitting(
    titles: Sequence[str], rows: Sequence[Sequence[Cell]], least: Sequence[str], width: int | None
) -> list[str]:
    """Return the titles of the columns that fit into a line, in their order."""
    kept = list(titles)
    if width is None:
        return kept
    _, widths, numeric = _measured(titles, rows)
    narrowest = {
        title: wide if hard else min(wide, _NARROWEST)
        for title, wide, hard in zip(titles, widths, _hardness(titles, numeric), strict=True)
    }
    narrowest[titles[-1]] = min(widths[-1], _NARROW)
    for title in least:
        if sum(narrowest[one] for one in kept) + len(_GAP) * (len(kept) - 1) <= width:
            break
        kept.remove(title)
    return kept


def _measured(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> tuple[list[list[str]], list[int], list[bool]]:
    """Return the texts of all lines, and for each column its width, and whether it holds numbers."""
    texts = [list(titles), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(_width(line[column]) for line in texts) for column in range(len(titles))]
    numeric = [bool(rows) and all(isinstance(row[column], int) for row in rows) for column in range(len(titles))]
    return texts, widths, numeric


def _hardness(titles: Sequence[str], numeric: Sequence[bool]) -> list[int]:
    """Return how late each column is cut: a text first, a name if that is not enough, an id or a number last."""
    return [
        2 if number or title in _IDS else 1 if place == 0 or title in _NAMES else 0
        for place, (title, number) in enumerate(zip(titles, numeric, strict=True))
    ]


def _shrunk(widths: Sequence[int], hardness: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: the last column is cut first, then the widest of the texts, then what is harder."""
    *others, last = widths
    widths = [*others, min(last, max(_NARROW, room - sum(others)))]
    places = range(len(widths))
    soft = [place for place in places[:-1] if not hardness[place]]
    names = [place for place in places if hardness[place] == 1]
    for columns, floor in ((soft, _NARROWEST), (places[-1:], _NARROWEST), (names, _TINY), (places, _TINY)):
        shrinkable = [place for place in columns if widths[place] > floor]
        while shrinkable and sum(widths) > room:
            widest = max(shrinkable, key=widths.__getitem__)
            widths[widest] -= 1
            if widths[widest] == floor:
                shrinkable.remove(widest)
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [_fit(*each) for each in zip(cells, widths, numeric, strict=True)]
    return _GAP.join(padded).rstrip()


def cut(text: str, width: int) -> str:
    """Return a text cut to this many columns."""
    while _width(text) > width:
        text = text[:-2] + "…" if len(text) > 1 else ""
    return text


def padded(text: str, width: int) -> str:
    """Return a text with spaces after it, so that it takes at least this many columns."""
    return text + " " * (width - _width(text))


def _fit(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - zipped from a list
    text = cut(text, width)
    space = " " * (width - _width(text))
    return space + text if right else text + space


def terminal_width(*, err: bool = False) -> int | None:
    """Return how many columns the terminal has; None if the output goes elsewhere."""
    if not (sys.stderr if err else sys.stdout).isatty():
        return None
    import shutil  # a node prints at most two tables, and keeps what it has imported

    return shutil.get_terminal_size().columns


def _text(cell: Cell) -> str:
    return "-" if cell is None else f"{cell:,}" if isinstance(cell, int) else one_line(cell)


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
