"""The command line in another language: what people read is translated, what programs read is not."""

import ast
import importlib.util
import json
import re
import struct
from collections.abc import Iterator
from gettext import NullTranslations
from pathlib import Path

import pytest

from shiftwork.cli.terminal import language
from tests.cli.terminal import Terminal

PRINTING = ("say", "aside", "show_wrapped", "confirm", "UsageError", "BadParameter")
SENTENCE = re.compile(r"[a-z]{2,}.* ")
GERMAN = {
    "": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n != 1;\n",
    "POOL": "BECKEN",
    "Look": "Sehen",
    "List jobs, newest or oldest first. A queued job has its position, and about when it starts.": (
        "Aufträge auflisten, die neuesten zuerst."
    ),
    "Jobs with this tag.": "Aufträge mit dieser Marke.",
    "pool {pool} is resumed": "Becken {pool} läuft weiter",
    "no jobs match": "keine Aufträge passen",
    "{verb} {jobs}?": "{jobs} {verb}?",
    "cancel": "abbrechen",
    "{n:,} job\0{n:,} jobs": "{n:,} Auftrag\0{n:,} Aufträge",
    "worker {worker} is enabled; its count of failures is reset": "kaputt: {wrong}",
}


def compiled(messages: dict[str, str]) -> bytes:
    """A catalogue as msgfmt writes it."""
    pairs = sorted((one.encode(), two.encode()) for one, two in messages.items())
    offset, texts = 28 + 16 * len(pairs), b""
    places: tuple[list[int], list[int]] = ([], [])
    for column in (0, 1):
        for pair in pairs:
            places[column].extend((len(pair[column]), offset + len(texts)))
            texts += pair[column] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return head + struct.pack(f"<{4 * len(pairs)}I", *places[0], *places[1]) + texts


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "locale" / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "shiftwork.mo").write_bytes(compiled(GERMAN))
    monkeypatch.setattr(language, "LOCALE", tmp_path / "locale")
    monkeypatch.delenv("LANGUAGE", raising=False)
    monkeypatch.setenv("LC_ALL", "de_AT.UTF-8")
    language.catalogue.cache_clear()
    yield
    language.catalogue.cache_clear()


def test_what_people_read_is_in_their_language(german: None, shop: Terminal) -> None:
    assert shop.run("pools").output.startswith("BECKEN")
    assert shop.run("resume", "images").output == "Becken images läuft weiter\n"
    assert "keine Aufträge passen" in shop.run("jobs", "--worker", "resize").stderr
    assert "Aufträge auflisten, die neuesten zuerst." in shop.run("jobs", "--help").output
    assert "Aufträge mit dieser Marke." in shop.run("jobs", "--help").output
    assert "Sehen:" in shop.run("--help", store=None).output
    shop.run("enqueue", "resize", "path=a.png", "width=1")
    assert "1 Auftrag abbrechen?" in shop.run("cancel", "--waiting").stderr
    # A translation with a hole that the message does not have does no harm.
    assert shop.run("enable", "fetch").output == "worker fetch is enabled; its count of failures is reset\n"


class Marking(NullTranslations):
    """A language that shows what was translated."""

    def gettext(self, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, one: str, many: str, n: int) -> str:
        return f"«{one if n == 1 else many}»"


def test_what_programs_read_is_the_same_in_every_language(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run("enqueue", "resize", "path=a.png", "--id", "one")
    shop.run("schedule", "put", "hourly", "resize", "path=a.png", "--every", "1h")
    shop.run("pause", "images", "--reason", "x")
    shop.run("disable", "fetch", "--reason", "x")
    shop.run("cancel", "one")
    monkeypatch.setattr(language, "catalogue", Marking)
    assert "«" in shop.run("jobs").output
    lists = ("status", "workers", "schedules", "pools", "nodes", "jobs", "flows", "dead", "events", "doctor")
    changes = (
        "resume images",
        "enable fetch",
        "schedule pause hourly",
        "retry one",
        "cancel one",
        "scale images --max 3",
    )
    for command in (*lists, "token list", "job one", "explain one", *changes, "enqueue resize path=b.png"):
        output = shop.run(*command.split(), "--json").stdout
        assert json.loads(output), command
        assert "«" not in output, command


def test_the_template_has_every_message(checkout: Path) -> None:
    spec = importlib.util.spec_from_file_location("messages", checkout / "docs" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = script.messages()
    assert {key.split("\0")[0] for key in GERMAN if key} - {message for message, _ in found} == set()
    assert 'msgid "{n:,} crash"\nmsgid_plural "{n:,} crashes"\n' in script.template(found)


def test_nothing_is_printed_for_people_that_cannot_be_translated(checkout: Path) -> None:
    wrong = [
        f"{path.name}:{node.lineno}: {ast.unparse(text)}"
        for path in (checkout / "src/shiftwork/cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in PRINTING
        for text in node.args
        if isinstance(text, ast.Constant | ast.JoinedStr) and SENTENCE.search(words_of(text))
    ]
    assert wrong == []


def words_of(text: ast.Constant | ast.JoinedStr) -> str:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant)).removeprefix("shiftwork: ")
