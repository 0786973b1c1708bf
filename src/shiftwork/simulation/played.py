"""What became of an episode that was played, and how it is judged."""

from typing import Final

from msgspec import Struct

SIDE_EFFECTS: Final = frozenset(
    (*("interruption", "second ring", "leader dies", "leader dies in mid-tick", "two versions at once"),)
)
"""What is counted among what was met, and is no fault of the episode."""


class Played(Struct, kw_only=True):
    """An episode that was played to its end."""

    seed: int
    texts: dict[str, list[bytes]]
    """The recorded history: what each process has written."""
    seconds: float
    """How much virtual time has passed."""
    jobs: int
    """How many jobs there were."""
    met: dict[str, int]
    """What has gone wrong, and how often, as far as it met something; see `World.met`."""
    callbacks: int
    """How many callbacks were called."""
    surprises: list[str]
    """The unforeseen: errors that went past everything, and those that were logged with a traceback."""
    rested: bool
    """Whether the system came to rest."""

    @property
    def faults(self) -> int:
        """How many faults met something."""
        return sum(number for kind, number in self.met.items() if kind not in SIDE_EFFECTS)
