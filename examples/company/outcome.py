"""What the part with the ten fixed slots leaves for the checks and the picture."""

from pathlib import Path
from typing import Self

import msgspec

NAME = "outcome.json"


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A point of the curves. Seconds are counted from the compressed midnight."""

    seconds: float
    queued: float
    slots: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A part that has been played."""

    owed: int
    """How many jobs were acknowledged."""
    completed: int
    waiting: int
    """How many had not ended, because the part was over."""
    samples: list[Sample]

    def write(self, home: Path) -> None:
        (home / NAME).write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """What a part left in its folder; None if it was not played to its end."""
        path = home / NAME
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else None
