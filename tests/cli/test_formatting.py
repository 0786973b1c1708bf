"""Instants, lengths of time, and text that cannot harm a terminal."""

import sys

import click
import pytest

from shiftwork.cli.terminal.formatting import ago, one_line, span, took
from shiftwork.cli.terminal.output import show_wrapped, table
from shiftwork.core.words import counted, printable
from shiftwork.views.formats import iso


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (3.9, "3 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_800, "2 d")],
)
def test_a_span_is_short(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_an_instant_is_seen_from_now() -> None:
    assert ago(97, 100) == "3 s ago"
    assert ago(7300, 100) == "in 2 h"
    assert ago(100.4, 100) == "now"
    assert ago(None, 100) == "never"


def test_a_run_takes_fractions() -> None:
    assert [took(seconds) for seconds in (-1, 0.0123, 1.25, 59, 300)] == [
        "0.000 s",
        "0.012 s",
        "1.2 s",
        "59.0 s",
        "5 min",
    ]


def test_iso_sorts_as_time_does() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000000Z"
    assert iso(1_800_000_000.5) == "2027-01-15T08:00:00.500000Z"
    assert iso(None) is None
    assert iso(1e18) is None


def test_text_cannot_drive_the_terminal() -> None:
    assert printable("red\x1b[31m\nnext\x9b") == "red\\x1b[31m\nnext\\x9b"
    assert one_line("two\nlines \x07") == "two lines \\x07"


def test_counts() -> None:
    assert [counted(1, "job"), counted(1200, "job")] == ["1 job", "1,200 jobs"]


def test_a_table_aligns_numbers_right_and_text_left() -> None:
    assert table(("NAME", "N", "ERROR"), [("a", 5, None), ("long", 1200, "no\nway")]) == [
        "NAME      N  ERROR",
        "a         5  -",
        "long  1,200  no way",
    ]


def test_the_last_column_is_cut_where_a_line_would_break() -> None:
    rows = [("x" * 50, "y" * 50)]
    assert table(("A", "B"), rows)[1] == f"{'x' * 50}  {'y' * 50}"
    assert table(("A", "B"), rows, width=80)[1] == f"{'x' * 50}  {'y' * 27}…"


def test_on_a_narrow_terminal_texts_are_cut_then_names_but_no_id_and_no_number() -> None:
    row = ("x" * 28, "words " * 10, 12_345_678_901_234, "i" * 28, "y" * 50)
    (line,) = table(("NAME", "SCHEDULE", "N", "ID", "ERROR"), [row], width=100)[1:]
    assert line.split() == ["x" * 21 + "…", "words", "words…", "12,345,678,901,234", "i" * 28, "y" * 11 + "…"]
    assert len(line) == 100


def test_wide_letters_take_two_columns() -> None:
    assert table(("A", "B"), [("日本", "x"), ("é", "y")]) == ["A     B", "日本  x", "é     y"]


def test_a_table_without_rows_is_its_titles() -> None:
    assert table(("A", "B"), []) == ["A  B"]


def test_a_long_text_stays_beside_its_head(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "a power cut can lose about the last second of acknowledged jobs"
    show_wrapped("durability  ", text)
    assert capsys.readouterr().out == f"durability  {text}\n", "in a pipe a text is one line"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_wrapped(click.style("durability", fg="red") + "  ", text)
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert lines == [
        "durability  a power cut can lose about",
        "            the last second of",
        "            acknowledged jobs",
    ]
