"""Plausible mistakes at the command line: the message says what to type."""

import pytest

from tests.cli.terminal import URL, Terminal

WRONG_WORDS = [
    ("worker", "there is no command 'worker'; did you mean 'run'?"),
    ("ls", "did you mean 'jobs'?"),
    ("requeue", "did you mean 'retry'?"),
    ("dashboard", "did you mean 'web'?"),
    ("run shop --port 8000 --no-web", "--port needs the web, which --no-web turns off; remove one of them"),
    ("jobs --status running", "'running' is not one of"),
    ("jobs --limit 0", "not in the range"),
    ("retry --store sqlite:///a.db", "No jobs selected: give IDs, or --dead, --group or --flow"),
    ("jobs", "which store? Give --store URL or --app MODULE:NAME"),
    ("jobs --store jobs.db", "--store: 'jobs.db' is not a store URL; for a SQLite file, write sqlite:///jobs.db"),
]
WRONG_NAMES = [
    ("run shop.py", "name the app as it is imported: shop:app"),
    ("run shp", "did you mean 'shop'?"),
    ("run shop:ap", "use shop:app"),
]


def test_the_message_says_what_to_type(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for typed, words in WRONG_WORDS:
        assert words in " ".join(terminal.refused(*typed.split(), code=2, store=None).split()), typed
    monkeypatch.setenv("SHIFTWORK_STORE", "postgre://host/jobs")
    assert "SHIFTWORK_STORE: unknown store scheme 'postgre'" in terminal.refused("jobs", code=2, store=None)
    monkeypatch.setenv("SHIFTWORK_WEB", "here")
    for command in (("run", "shop"), ("web", "--store", URL)):
        told = " ".join(terminal.refused(*command, code=2, store=None).split())
        assert "SHIFTWORK_WEB: 'here' is not an address to listen on: write HOST:PORT" in told


@pytest.mark.parametrize(("typed", "words"), WRONG_NAMES)
def test_an_app_that_is_not_there(terminal: Terminal, typed: str, words: str) -> None:
    node = terminal.start(*typed.split())
    assert node.end() == 1
    assert words in "\n".join(node.lines)


def test_a_value_is_read_by_the_type_of_its_parameter(shop: Terminal) -> None:
    for where in (["--store", URL], ["--app", "shop"]):
        job = shop.json("enqueue", "resize", "path=5", "width=320", *where, store=None)["job"]
        assert job["payload"] == {"path": "5", "width": 320}
        assert "'width'" in shop.refused("enqueue", "resize", "path=a.png", "width=wide", *where, store=None)


def test_retry_checks_its_words_before_it_changes_anything(shop: Terminal) -> None:
    job_id = shop.json("enqueue", "resize", "path=a.png", "--delay", "1h")["job"]["id"]
    said = " ".join(shop.refused("retry", job_id, "path=b.png", code=2).split())
    assert "'path=b.png' is not the id of a job, and nothing was changed" in said
    assert "shiftwork retry ID --payload JSON" in said
    assert shop.json("job", job_id)["job"]["status"] == "scheduled"
