"""What a part of the show leaves for the picture: its curves, how its jobs ended, and how long they took."""

from pathlib import Path
from typing import Self

import msgspec

from examples.company.day import KINDS, percentile
from examples.company.journal import Journal

NAME = "outcome.json"


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A point of the curves. Seconds are counted from the compressed midnight."""

    seconds: float
    queued: float
    slots: float


class Took(msgspec.Struct, frozen=True):
    """How long the runs of a worker took, in seconds."""

    median: float
    p95: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A part that has been played."""

    owed: int
    """How many jobs were acknowledged."""
    completed: int
    waiting: int
    """How many had not ended, because the part was over."""
    samples: list[Sample]
    took: dict[str, Took]
    """By worker, for the five kinds."""

    def write(self, home: Path) -> None:
        (home / NAME).write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """What a part left in its folder; None if it was not played to its end."""
        path = home / NAME
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else None


def took(journal: Journal) -> dict[str, Took]:
    """How long the successful runs of each kind took."""
    times = {kind: [run.ended - run.began for run in journal.of(kind) if run.how == "ok"] for kind in KINDS}
    return {kind: Took(percentile(all_of, 0.5), percentile(all_of, 0.95)) for kind, all_of in times.items() if all_of}
