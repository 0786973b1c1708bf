"""What became of an episode that was played, and how it is judged."""

from msgspec import Struct


class Played(Struct, kw_only=True):
    """An episode that was played to its end."""

    seed: int
    texts: dict[str, list[bytes]]
    """The recorded history: what each process has written."""
    seconds: float
    """How much virtual time has passed."""
    jobs: int
    """How many jobs there were."""
    faults: int
    """How many faults met something."""
    callbacks: int
    """How many callbacks were called."""
    surprises: list[str]
    """The unforeseen: errors that went past everything, and those that were logged with a traceback."""
    rested: bool
    """Whether the system came to rest."""
