"""The promise of `--json`: every command has it, or is named among those that do not, and its document is described."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from shiftwork.cli import main
from shiftwork.cli.entry import SECTIONS

WITHOUT = {"run", "web", "record", "key", "completion"}
"""The commands whose output has one form only."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that can be typed, with its words."""
    context = click.Context(main)
    for name in (name for names in SECTIONS.values() for name in names):
        command = main.get_command(context, name)
        if command is None:  # this system does not have it
            continue
        if isinstance(command, click.Group):
            yield from ((f"{name} {word}", each) for word, each in command.commands.items())
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield name, command


COMMANDS = dict(commands())


def takes_json(command: click.Command) -> bool:
    return any("--json" in option.opts for option in command.params)


def documented(page: str) -> set[str]:
    """The commands in the first column of the table of documents."""
    table = page.partition("## What `--json` prints")[2].partition("\n| command |")[2].partition("\n\n")[0]
    found: set[str] = set()
    for row in table.splitlines()[2:]:
        words = ""
        for one in row.split("|")[1].strip().split(", "):
            # "schedule put, show": the group is said once
            group = words.partition(" ")[0]
            words = one if one.partition(" ")[0] in GROUPS or f"{group} {one}" not in COMMANDS else f"{group} {one}"
            found.add(words.removesuffix(" --list"))
    return found


GROUPS = {words.partition(" ")[0] for words in COMMANDS if " " in words}


@pytest.fixture
def page(checkout: Path) -> str:
    return (checkout / "docs" / "cli.md").read_text()


def test_every_command_takes_json_or_is_one_of_those_with_one_form() -> None:
    assert {name for name, command in COMMANDS.items() if not takes_json(command)} == WITHOUT


def test_the_docs_name_the_commands_without_json(page: str) -> None:
    promise = page.partition("**For programs** every command takes")[2].partition(", except")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", promise)) == WITHOUT


def test_the_docs_describe_every_document_and_no_other(page: str) -> None:
    described = documented(page)
    described |= {"token revoke"}  # in the row of token create
    assert described == {*COMMANDS} - WITHOUT
