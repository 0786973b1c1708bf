"""The company's own record of what ran when: one line per start and end, in a file that outlives every process.

It is independent of shiftwork and its store: `check` compares the two.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from examples.company.place import HOME
from shiftwork import Context

PATH: Final = HOME / "journal.jsonl"
FOREVER: Final = float("inf")


@dataclass(frozen=True)
class Run:
    """One run of a function, from its own point of view."""

    worker: str
    job: str
    attempt: int
    node: int
    process: int
    began: float
    ended: float
    how: str
    """`ok`, `failed`, `cut` (its process or its node was killed) or `open` (no end was written)."""

    def overlaps(self, other: "Run") -> bool:
        """Whether both were running at some moment."""
        return self.began < other.ended and other.began < self.ended


@dataclass(frozen=True)
class Mark:
    """Something else that happened: a job was acknowledged, a process was killed, a worker was enabled."""

    what: str
    subject: str
    at: float


@dataclass(frozen=True)
class Journal:
    """The whole journal, read back."""

    runs: list[Run]
    marks: list[Mark]

    def of(self, worker: str) -> list[Run]:
        """The runs of one worker, in the order in which they began."""
        return [run for run in self.runs if run.worker == worker]

    def of_job(self, job: str) -> list[Run]:
        """The runs of one job, in the order in which they began."""
        return [run for run in self.runs if run.job == job]

    def marked(self, what: str) -> list[Mark]:
        """The marks of this kind, in order."""
        return [mark for mark in self.marks if mark.what == what]


def write(what: str, subject: str, **more: Any) -> None:
    """Append one line. With O_APPEND, lines of several processes never mix, and a kill truncates none."""
    line = {"at": time.monotonic(), "what": what, "subject": subject, **more}
    file = os.open(PATH, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


@contextmanager
def recorded(ctx: Context) -> Iterator[None]:
    """Record when this run begins, and when and how it ends."""
    # A process dies with the node that started it, so a run records both.
    run = {"job": ctx.job_id, "attempt": ctx.attempt, "fence": ctx.fence, "node": os.getppid(), "process": os.getpid()}
    write("begin", ctx.worker.name, **run)
    try:
        yield
    except BaseException:
        write("end", ctx.worker.name, how="failed", **run)
        raise
    write("end", ctx.worker.name, how="ok", **run)


def read(path: Path = PATH) -> Journal:
    """Combine the lines: a begin and its end are one run; an interrupted run ends when its process was killed."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    ends = {line["fence"]: line for line in lines if line["what"] == "end"}
    killed = {int(line["subject"]): line["at"] for line in lines if line["what"] == "killed"}
    runs = [_run(line, ends.get(line["fence"]), killed) for line in lines if line["what"] == "begin"]
    marks = [Mark(line["what"], line["subject"], line["at"]) for line in lines if line["what"] not in {"begin", "end"}]
    return Journal(sorted(runs, key=lambda run: run.began), marks)


def _run(begin: dict[str, Any], end: dict[str, Any] | None, killed: dict[int, float]) -> Run:
    if end is not None:
        ended, how = end["at"], end["how"]
    else:
        ended = min(killed.get(begin[whose], FOREVER) for whose in ("node", "process"))
        how = "open" if ended == FOREVER else "cut"
    return Run(
        worker=begin["subject"],
        job=begin["job"],
        attempt=begin["attempt"],
        node=begin["node"],
        process=begin["process"],
        began=begin["at"],
        ended=ended,
        how=how,
    )
