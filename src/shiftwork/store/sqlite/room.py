"""Whether there is room for more. A full disk still takes small writes: the log has room that it has used before."""

import errno
import os
from pathlib import Path
from secrets import token_hex
from typing import Final

from shiftwork.store.sqlite.file import faults

_BYTES: Final = 1 << 20
_FULL: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def try_room(path: str, side: Path) -> None:
    """Write a file as large as some jobs beside the database, and delete it. Raises what keeps it from growing."""
    try:
        name = side / f"room-{token_hex(8)}"
        with name.open("xb", buffering=0) as file:
            name.unlink()
            left = memoryview(os.urandom(_BYTES))  # which no file system can compress
            while left:
                left = left[file.write(left) :]
    except OSError as error:
        if error.errno in _FULL:
            raise faults.full(error, path) from error
        raise faults.unavailable(error, path) from error
