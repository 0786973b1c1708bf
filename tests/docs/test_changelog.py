"""The changelog: a section for each version, the newest first, and one fact a bullet, in one sentence."""

import re
from datetime import date
from pathlib import Path

import pytest

from shiftwork.version import __version__

SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
RELEASED = re.compile(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)")
BULLET = re.compile(r"^- (.+(?:\n  .+)*)$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
SECOND_SENTENCE = re.compile(r"[.?!] +\S")


@pytest.fixture(scope="module")
def changelog(checkout: Path) -> str:
    return (checkout / "CHANGELOG.md").read_text()


def test_what_is_not_released_comes_first_and_then_this_version(changelog: str) -> None:
    sections = SECTION.findall(changelog)
    assert sections[0] == "[Unreleased]"
    released = [RELEASED.fullmatch(section) for section in sections[1:]]
    assert all(released), sections
    versions = [one[1] for one in released if one]
    assert versions[0] == __version__
    numbers = [tuple(int(number) for number in version.split(".")) for version in versions]
    assert numbers == sorted(numbers, reverse=True)
    dates = [date.fromisoformat(one[2]) for one in released if one]
    assert dates == sorted(dates, reverse=True)


def test_a_bullet_is_one_sentence(changelog: str) -> None:
    bullets = [CODE.sub("x", bullet) for bullet in BULLET.findall(changelog)]
    assert len(bullets) > 50
    assert [bullet for bullet in bullets if not bullet.endswith(".") or SECOND_SENTENCE.search(bullet)] == []
