"""Draws storms: one page, with a timeline of each, what was done to it, and what the checker says."""

from collections.abc import Sequence
from pathlib import Path

from tests.storms.storm import StormResult


def write_report(results: Sequence[StormResult], page: Path) -> None:
    page.write_text("")
