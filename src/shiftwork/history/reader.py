"""Reads a recorded history: the files of a folder, one for each process, or lines that are in memory.

A process that is killed leaves an unfinished last line at most, which is left out, and so are the empty lines and the
zeros where its file had grown ahead of what was written. Anything else that cannot be read is an error that names the
line. So is a line that says that the recording ended early: what that process did afterwards is not known, and a rule
that looks for what is missing would be wrong.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import MsgspecError

from shiftwork.errors import HistoryError
from shiftwork.history.gathered import without_collector
from shiftwork.history.gathering import Gatherer
from shiftwork.history.lines import RECORDING_ENDED, AnyLine, Fault, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shiftwork.history.gathered import RecordedHistory

FIRST: Final = b'["opened"'
"""How the first line of a file begins. Other files in the folder are none of ours."""
REPORT_LINES: Final = 20_000
"""After how many lines the progress is reported."""

Progress = Callable[[int, int], None]
"""Gets how many bytes are read, and how many there are."""


def history_of(processes: Mapping[str, Iterable[AnyLine]]) -> "RecordedHistory":
    """Return the history that these lines make. The lines of each process are in their order, `Opened` first."""
    gatherer = Gatherer()
    for name, lines in processes.items():
        gatherer.file(name, lines)
    return gatherer.whole()


def read_history(folder: Path, progress: Progress | None = None) -> "RecordedHistory":
    """Return the history in a folder, or in one file. Raises `HistoryError` if there is none, or it is damaged."""
    files = _files(folder)
    if not files:
        raise HistoryError(f"{folder} holds no recorded history: no file in it begins with {FIRST.decode()}")
    total = sum(path.stat().st_size for path in files)
    gatherer, read = Gatherer(), 0
    with without_collector():
        for path in files:
            for done in _gather(path, gatherer):
                if progress is not None:
                    progress(read + done, total)
            read += path.stat().st_size
    if progress is not None:
        progress(total, total)
    return gatherer.whole()


def _files(folder: Path) -> list[Path]:
    if not folder.exists():
        raise HistoryError(f"there is no {folder}")
    found = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else [folder]
    return [path for path in found if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST)) == FIRST


def _gather(path: Path, gatherer: Gatherer) -> "Iterator[int]":
    """Take the lines of a file; yield now and then how many bytes are read."""
    gatherer.begin(path.name)
    done = 0
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            done += len(text)
            whole = text.endswith(b"\n") and b"\0" not in text
            if whole and text != b"\n":
                _take(gatherer, text, number, path)
            if number % REPORT_LINES == 0:
                yield done
    gatherer.end()


def _take(gatherer: Gatherer, text: bytes, number: int, path: Path) -> None:
    try:
        line = decode(text)
        gatherer.take(line, number)
    except (MsgspecError, ValueError) as error:
        raise HistoryError(f"{path}:{number} is no line of a history: {error}") from None
    if isinstance(line, Fault) and line.kind == RECORDING_ENDED:
        raise HistoryError(f"{path}:{number}: this process could not record on, so its history cannot be judged")
