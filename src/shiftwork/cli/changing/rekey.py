"""`shiftwork key` and `shiftwork rekey`: a new encryption key, and everything encrypted with it."""

import sys

import click
from msgspec.structs import asdict

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import json_option, say, show_json
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.control.access.encryption import Encryption
from shiftwork.core.words import counted
from shiftwork.transfer.rekeying import Rekeyed


@click.command()
def key() -> None:
    """Print a new encryption key, for SHIFTWORK_ENCRYPTION_KEYS or a key file."""
    say(Encryption.new_key())


@click.command()
@click.option("--lost", metavar="KEY", help="Give up the key with this id: cancel the jobs that need it.")
@with_source
@json_option
def rekey(source: Source, *, lost: str | None, as_json: bool) -> None:
    """Encrypt every job with the first of your keys, while nodes run.

    Jobs that are not encrypted, or under another of the keys, are rewritten. If it is interrupted, run it again.
    """
    progress = ProgressBar(terminal=sys.stderr.isatty())
    try:
        if lost is not None:
            cancelled = source.ask(lambda control: control.encryption.give_up(lost, progress.show))
            _show_given_up(lost, cancelled, as_json=as_json)
            return
        done = source.ask(lambda control: control.encryption.rekey(progress.show))
    finally:
        progress.end()
    if as_json:
        show_json(asdict(done))
    else:
        _show(done)


def _show_given_up(key: str, cancelled: int, *, as_json: bool) -> None:
    if as_json:
        show_json({"key": key, "cancelled": cancelled})
    else:
        say(f"key {key} is given up; {counted(cancelled, 'job')} cancelled")


def _show(done: Rekeyed) -> None:
    say(f"{counted(done.rewritten, 'job')} rewritten; key {done.key} encrypts")
    if done.unreadable:
        say(f"{counted(done.unreadable, 'job')} could not be decrypted: the key is missing here")
    if done.changing:
        say(f"{counted(done.changing, 'job')} changed in the meantime: run this again")
    for node in done.lagging:
        say(f"node {node} still encrypts with another key: put {done.key} first there, restart it, run this again")
    for retired in done.retired:
        say(f"no job needs key {retired}: remove it from the keys of every process")
