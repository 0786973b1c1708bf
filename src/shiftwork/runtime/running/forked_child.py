"""A child that a job has forked, and that leaves the job's function: it ends there.

It has a copy of everything that its parent runs. If it went on, it would report the end of its parent's job, and run
the jobs that wait in its parent a second time.
"""

import os
import sys
import traceback
from contextlib import suppress

from shiftwork.runtime.running.run import Run


def end_forked_child(run: Run, error: BaseException | None = None) -> None:
    """Return in the process in which the run began. End any other process, as `sys.exit` and `multiprocessing` do."""
    if os.getpid() == run.pid:
        return
    status = 1
    try:
        status = _status(error)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
    finally:
        os._exit(status)


def _status(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201 - what Python itself does
    else:
        traceback.print_exception(error)
    return 1
