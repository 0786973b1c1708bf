"""Files without a name, which a process inherits from its node: they are gone with the last of the two."""

import os


def unnamed_file() -> int:
    """Return the descriptor of a new file, which is in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shiftwork")
    import tempfile  # noqa: PLC0415 - on Linux, every process does without

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
