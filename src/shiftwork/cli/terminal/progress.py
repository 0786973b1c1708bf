"""Progress on stderr, for commands that take a while."""

import time
from typing import Final

import click

from shiftwork.cli.terminal.output import aside, say
from shiftwork.core.words import counted

_BAR: Final = 30
_TERMINAL_SECONDS: Final = 0.1
_LINE_SECONDS: Final = 5.0


class ProgressBar:
    """Progress on stderr: a moving bar on a terminal, otherwise a line now and then."""

    def __init__(self, *, terminal: bool, noun: str | None = "job") -> None:
        """`noun` is what is counted; without one, only the share that is done is shown."""
        self._terminal = terminal
        self._noun = noun
        self._every = _TERMINAL_SECONDS if terminal else _LINE_SECONDS
        self._step = ""
        self._shown_at = float("-inf")

    def show(self, step: str, done: int, total: int) -> None:
        """Show how many things of a step are done. `total` is 0 if it is not known."""
        now = time.monotonic()
        if step == self._step and done != total and now - self._shown_at < self._every:
            return
        self._shown_at = now
        if self._terminal:
            self._end_line(step)
            click.echo(f"\r\033[K{step:<25}{self._bar(done, total)}", nl=False, err=True)  # noqa: TID251 - one line, drawn again
        else:
            aside(f"{step}: {self._numbers(done, total)}")
        self._step = step

    def end(self) -> None:
        """End the moving line."""
        self._end_line("")

    def _end_line(self, step: str) -> None:
        if self._terminal and self._step and step != self._step:
            say(err=True)

    def _bar(self, done: int, total: int) -> str:
        if not total:
            return self._numbers(done, total)
        filled = _BAR * done // total
        numbers = "" if self._noun is None else f"  {self._numbers(done, total)}"
        return f"{'█' * filled}{'░' * (_BAR - filled)} {done / total:4.0%}{numbers}"

    def _numbers(self, done: int, total: int) -> str:
        if self._noun is None:
            return f"{done / total:.0%}" if total else f"{done:,}"
        return f"{done:,} of {counted(total, self._noun)}" if total else counted(done, self._noun)
