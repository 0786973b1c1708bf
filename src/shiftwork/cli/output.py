"""Output: aligned tables for people, one JSON document for programs, and messages on stderr."""

import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from shiftwork.cli.language import t
from shiftwork.cli.words import one_line
from shiftwork.core.printable import printable, printable_json

_GAP: Final = "  "
_NARROW: Final = 24
"""The width to which the last column is cut first on a narrow terminal."""
_NARROWEST: Final = 12
"""The width to which other columns are cut then, the widest first."""
_WHOLE: Final = ("ID", "EXAMPLE", "WORKER", "POOL")
"""The columns that are never cut, like the first one: half a name is useless."""

Cell = str | int | None

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")


def say(text: str = "", *, err: bool = False) -> None:
    """Print a text. Whatever comes from a store or a URL, it cannot change the terminal."""
    click.echo(printable(text), err=err)


def show_json(document: Any) -> None:
    """Print a JSON document."""
    click.echo(printable_json(json_text(document)))


def show_json_line(value: Any) -> None:
    """Print a value as one line of JSON."""
    click.echo(printable_json(msgspec.json.encode(value).decode()))


def json_text(value: Any) -> str:
    """Return a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def aside(text: str) -> None:
    """Print a hint or a message on stderr: a program may be reading stdout."""
    say(text, err=True)


def show_wrapped(head: str, text: str) -> None:
    """Print a head, which may be coloured, and a text beside it. On a terminal, a long text is wrapped and indented."""
    text = printable(text)
    indent = " " * len(click.unstyle(head))
    import textwrap

    room = _columns_of_terminal() - len(indent) if sys.stdout.isatty() else 0
    lines = textwrap.wrap(text, max(room, _NARROW), break_on_hyphens=False) if room else [text]
    for line in lines or [""]:
        click.echo(f"{head}{line}".rstrip())
        head = indent


def show_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, err: bool = False) -> None:
    """Print rows under titles: numbers are aligned to the right, everything else to the left.

    On a terminal, columns are cut so that a row fits into a line; in a pipe, nothing is cut.
    """
    terminal = (sys.stderr if err else sys.stdout).isatty()
    head, *lines = table(titles, rows, width=_columns_of_terminal() if terminal else None)
    click.echo(click.style(head, bold=True), err=err)  # without the style where there is no terminal, or NO_COLOR
    for line in lines:
        say(line, err=err)


def table(titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, width: int | None = None) -> list[str]:
    """Return the lines of a table."""
    texts = [[t(title) for title in titles], *([_text(cell) for cell in row] for row in rows)]
    widths = [max(_width(line[column]) for line in texts) for column in range(len(titles))]
    numeric = [bool(rows) and all(isinstance(row[column], int) for row in rows) for column in range(len(titles))]
    if width is not None:
        may_shrink = [not (number or title in _WHOLE) for title, number in zip(titles, numeric, strict=True)]
        widths = _shrunk(widths, may_shrink, width - len(_GAP) * (len(widths) - 1))
    return [_line(line, widths, numeric) for line in texts]


def _shrunk(widths: Sequence[int], may_shrink: Sequence[bool], room: int) -> list[int]:
    *others, last = widths
    last = min(last, max(_NARROW, room - sum(others)))
    shrinkable = [column for column in range(1, len(others)) if may_shrink[column] and others[column] > _NARROWEST]
    while shrinkable and sum(others) + last > room:
        widest = max(shrinkable, key=others.__getitem__)
        others[widest] -= 1
        if others[widest] == _NARROWEST:
            shrinkable.remove(widest)
    return [*others, last]


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


def _columns_of_terminal() -> int:
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
