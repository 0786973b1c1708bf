"""`shiftwork check`: does a recorded history break a promise? It needs no store."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from shiftwork.cli.terminal.output import json_option, say, show_json, show_wrapped
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.core.words import counted
from shiftwork.errors import HistoryError

if TYPE_CHECKING:
    from shiftwork.history.gathered import Evidence, RecordedHistory
    from shiftwork.history.judging import Judgement
    from shiftwork.history.refutation import Refutation

_LONGEST_LINE: Final = 300
_HELP: Final = """\
Check a recorded history against the promises of shiftwork.

HISTORY is the folder that SHIFTWORK_HISTORY named while everything ran, with one file for each process, or one such
file. Each rule looks for what no legal run can have produced, whatever failed and whichever answer got lost. What it
finds is one sentence, and the lines that show it. docs/proof.md says what each rule proves.

\b
Exit codes:
  0  no promise is broken, as far as the history shows
  1  a promise is broken
  2  the history cannot be read

\b
Examples:
  shiftwork check history
  shiftwork check history --json
  shiftwork check history --edn history.edn    for the checkers of Jepsen
"""


@click.command(help=_HELP)
@click.argument("history", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--edn",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the history in the format of Jepsen, too.",
)
@json_option
@click.pass_context
def check(ctx: click.Context, history: Path, *, edn: Path | None, as_json: bool) -> None:
    """Exit with 0 if no rule refutes the history."""
    from shiftwork.history.judging import judge
    from shiftwork.history.reader import read_history

    bar = ProgressBar(terminal=True, noun=None) if sys.stderr.isatty() else None
    try:
        read = read_history(history, partial(bar.show, "reading") if bar else None)
        judgement = judge(read, bar.show if bar else None)
    except HistoryError as error:
        raise click.BadParameter(str(error), ctx, param_hint="HISTORY") from None
    finally:
        if bar:
            bar.end()
    if edn is not None:
        _write(read, edn)
    if as_json:
        show_json(_shape(judgement))
    else:
        _show(judgement, history)
    ctx.exit(0 if judgement.holds else 1)


def _write(read: "RecordedHistory", path: Path) -> None:
    from shiftwork.history.edn import write_edn

    try:
        with path.open("w", encoding="utf-8") as file:
            write_edn(read, file)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise click.BadParameter(message, param_hint="--edn") from None


def _shape(judgement: "Judgement") -> dict[str, object]:
    return {
        "legal": judgement.holds,
        "lines": judgement.lines,
        "processes": judgement.processes,
        "jobs": judgement.jobs,
        "runs": judgement.runs,
        "rules": judgement.rules,
        "refutations": judgement.refutations,
    }


def _show(judgement: "Judgement", history: Path) -> None:
    lines = f"{counted(judgement.lines, 'line')} of {counted(judgement.processes, 'process', 'processes')}"
    say(f"{lines}: {counted(judgement.jobs, 'job')}, {counted(judgement.runs, 'run')}")
    if judgement.holds:
        say(f"legal: none of {counted(len(judgement.rules), 'rule')} is refuted")
        return
    texts = _texts(history, judgement.refutations)
    for one in judgement.refutations:
        say()
        show_wrapped(f"{one.rule}: ", one.sentence)
        for evidence in one.lines:
            say(f"  {evidence}  {texts.get(evidence, '')}")


def _texts(history: Path, refutations: "list[Refutation]") -> "dict[Evidence, str]":
    """Return the lines that are shown, as they stand in the files."""
    from shiftwork.history.gathered import Evidence

    wanted: dict[str, set[int]] = {}
    for evidence in (line for one in refutations for line in one.lines):
        wanted.setdefault(evidence.file, set()).add(evidence.line)
    found = {}
    for name, numbers in wanted.items():
        path = history / name if history.is_dir() else history
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if number in numbers:
                    found[Evidence(name, number)] = text.strip()[:_LONGEST_LINE].decode("utf-8", "replace")
    return found
