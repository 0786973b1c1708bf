"""The log of a bad morning can be followed by a reader who was not there."""

import re
from pathlib import Path

import pytest

from tests.system.morning_log import MOST_LINES, play

STORY = (
    r"INFO    shiftwork \S+ runs shop:app on redis://\S+",
    r"INFO    node \S+ leads",
    r"INFO    node \S+ runs 3 workers in 2 pools",
    r"WARNING fetch-data: attempt 1 of 3 failed, again in 1 s: ConnectionError: the partner's API returned 503",
    r"ConnectionError: the partner's API returned 503",
    r"WARNING fetch-data: attempt 2 of 3 failed, again in 2 s: ConnectionError: the partner's API returned 503",
    r"INFO    fetch-data: works again after 2 failed attempts",
    r"WARNING process \d+ was killed by SIGKILL while it ran 1 job \(resize\); a new one takes its place",
    r"WARNING resize: crash 1, again in .* s: its process was killed by SIGKILL",
    r"INFO    resize: works again after 1 failed attempt",
    r"WARNING store: unavailable: .*; running jobs go on, no job starts until it is back",
    r"INFO    store: back after \S+ s",
    r"INFO    node \S+ runs 3 workers in 2 pools",
    r"INFO    stopping: running jobs have 30 s to finish",
    r"INFO    node \S+ has stopped",
    r"INFO    node \S+ leads",
    r"INFO    stopping",
    r"INFO    node \S+ has stopped",
)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("away", [4.0, 20.0])
def test_a_reader_who_was_not_there_can_follow_it(away: float, tmp_path: Path) -> None:
    lines = play(tmp_path, away)
    text = "\n".join(lines)
    assert len(lines) < MOST_LINES, text
    at = 0
    for step in STORY:
        found = re.compile(step).search(text, at)
        assert found, f"{step!r} is missing, or too early, in:\n{text}"
        at = found.end()
    assert text.count("store: ") == 2, text
