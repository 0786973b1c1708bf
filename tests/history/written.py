"""The lines that a process has written into the folder of a history."""

from pathlib import Path
from typing import Any, TypeVar

from shiftwork.history.lines import AnyLine, Asked, Call, decode

T = TypeVar("T")


def texts(file: Path) -> list[bytes]:
    """Every whole line of a file. Unused bytes are zero."""
    *whole, _torn = file.read_bytes().rstrip(b"\0").split(b"\n")
    return whole


def files(folder: Path) -> list[list[AnyLine]]:
    """The lines of each file."""
    return [[decode(text) for text in texts(file)] for file in sorted(folder.glob("*.jsonl"))]


def everything(folder: Path) -> list[AnyLine]:
    """The lines of all processes, in their order."""
    return sorted((line for lines in files(folder) for line in lines), key=lambda line: line.at)


def of(lines: list[AnyLine], kind: type[T]) -> list[T]:
    """The lines of one kind."""
    return [line for line in lines if isinstance(line, kind)]


def asked(lines: list[AnyLine], call: Call) -> list[Any]:
    """What was asked in the calls of one kind."""
    return [line.args for line in lines if isinstance(line, Asked) and line.call == call]
