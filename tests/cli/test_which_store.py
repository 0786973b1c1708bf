"""Which store is meant, and what is said when none is, or none is there."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from shiftwork.cli.connect import Source, find_source, with_source
from shiftwork.cli.terminal.output import say
from tests.cli.terminal import Terminal

LOOKING = ("status", "workers", "pools", "jobs", "dead", "events", "doctor")


def test_the_order_of_precedence(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shiftwork.db").touch()
    assert find_source(None, None, None) == Source(store="sqlite:///shiftwork.db")
    monkeypatch.setenv("SHIFTWORK_APP", "env:app")
    assert find_source(None, None, None) == Source(app="env:app")
    monkeypatch.setenv("SHIFTWORK_STORE", "sqlite:///env.db")
    monkeypatch.setenv("SHIFTWORK_NAMESPACE", "blue")
    assert find_source(None, None, None) == Source(store="sqlite:///env.db", origin="SHIFTWORK_STORE", namespace="blue")
    assert find_source(None, "given:app", None) == Source(app="given:app")
    assert find_source("sqlite:///given.db", "given:app", "red") == Source(store="sqlite:///given.db", namespace="red")


@pytest.mark.parametrize("command", LOOKING)
def test_no_store_at_all_says_how_to_name_one(command: str, terminal: Terminal) -> None:
    told = terminal.refused(command, store=None, code=2)
    for way in ("--store URL", "--app MODULE:NAME", "SHIFTWORK_STORE", "SHIFTWORK_APP", str(terminal.folder)):
        assert way in told


@pytest.mark.parametrize("command", [*LOOKING, "job x", "explain x", "cancel x", "enable x", "enqueue x", "trigger x"])
@pytest.mark.parametrize(
    "where", ["--store sqlite:///none.db", "--store sqlite:////tmp/no/such/none.db?synchronous=full"]
)
def test_looking_makes_no_database(command: str, where: str, terminal: Terminal) -> None:
    told = terminal.refused(*command.split(), *where.split(), store=None, code=3)
    assert told.startswith("shiftwork: there is no database ")
    assert not Path("none.db").exists()


@pytest.mark.parametrize("command", LOOKING)
def test_looking_through_an_app_makes_no_database_either(command: str, terminal: Terminal) -> None:
    terminal.refused(command, "--app", "shop", store=None, code=3)
    assert not Path("shop.db").exists()


def test_an_app_may_be_given_work_before_its_first_start(terminal: Terminal) -> None:
    terminal.ok("enqueue", "resize", "path=a.png", "--app", "shop", store=None)
    terminal.ok("pause", "images", "--app", "shop", store=None)
    (job,) = terminal.json("jobs")["jobs"]
    assert job["worker"] == "resize"


def test_a_hint_names_the_store_as_it_was_named(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    paused = terminal.ok("pause", "images", "--app", "shop", store=None)
    assert paused.strip().endswith("until: shiftwork resume images --app shop")
    monkeypatch.setenv("SHIFTWORK_APP", "shop")
    assert terminal.ok("pause", "images", store=None).strip().endswith("until: shiftwork resume images")


@pytest.mark.parametrize("url", ["redis://ada:secret@h/0", "postgresql:///db?host=h&password=secret"])
def test_a_hint_repeats_no_password(url: str) -> None:
    @click.command
    @with_source
    def hint(source: Source) -> None:
        say(source.again("jobs"))

    assert CliRunner().invoke(hint, ["--store", url]).output == "hint jobs --store URL\n"


def test_a_malformed_url_is_a_wrong_command_line(terminal: Terminal) -> None:
    assert "unknown store scheme" in terminal.refused("status", store="sqlit:///x.db", code=2)


def test_a_memory_store_cannot_be_looked_into(terminal: Terminal) -> None:
    assert "inside one process" in terminal.refused("status", store="memory://", code=2)


def test_a_file_that_is_not_a_database(terminal: Terminal) -> None:
    Path("notes.db").write_text("milk, eggs, and a good deal more than sixteen bytes " * 100)
    assert terminal.refused("status", store="sqlite:///notes.db", code=3).startswith("shiftwork: ")


def test_a_folder_is_not_a_database(terminal: Terminal) -> None:
    Path("folder.db").mkdir()
    assert terminal.refused("pools", store="sqlite:///folder.db", code=3).startswith("shiftwork: ")


def test_an_app_has_a_namespace_of_its_own(terminal: Terminal) -> None:
    assert "--namespace goes with --store" in terminal.refused(
        "status", "--app", "shop", "--namespace", "blue", store=None, code=2
    )


def test_namespaces_do_not_meet(shop: Terminal) -> None:
    assert shop.json("workers", "--namespace", "blue") == {"workers": []}
    assert len(shop.json("workers")["workers"]) == 6


def test_the_environment_names_the_store(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIFTWORK_APP", "shop")
    assert "fetch" in shop.ok("workers", store=None)


def test_an_app_whose_store_is_memory_is_warned_about(terminal: Terminal) -> None:
    Path("memo.py").write_text("from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('memory://')\n")
    result = terminal.run("status", "--app", "memo", store=None)
    assert result.exit_code == 0
    assert "has its own" in result.stderr


def test_help_names_every_command_and_exit_code(terminal: Terminal) -> None:
    told = terminal.ok("--help", store=None)
    for word in ("Exit codes", "3  the store", "doctor", "enqueue", "SHIFTWORK_STORE", "--json"):
        assert word in told


def test_the_version(terminal: Terminal) -> None:
    assert terminal.ok("--version", store=None).startswith("shiftwork 0.")
