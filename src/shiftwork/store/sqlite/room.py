"""Whether there is room for more. A full disk still takes small writes: the log has room that it has used before."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from shiftwork.store.sqlite import faults

_BYTES: Final = 1 << 20
_FULL: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def try_room(path: str, side: Path) -> None:
    """Write a file as large as some jobs beside the database, and delete it. Raises what keeps it from growing."""
    try:
        with TemporaryFile(dir=side) as file:
            file.write(os.urandom(_BYTES))  # which no file system can compress
            file.flush()
    except OSError as error:
        if error.errno in _FULL:
            raise faults.full(error, path) from error
        raise faults.unavailable(error, path) from error
