"""Gives each Python process a wall clock that can be set: ahead by the seconds in the file that STORM_CLOCK names."""

import mmap
import os
import struct
import time

with open(os.environ["STORM_CLOCK"], "rb") as file:  # noqa: PTH123 - this runs at every start of Python
    _ahead = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
_time, _time_ns = time.time, time.time_ns


def _seconds() -> float:
    return float(struct.unpack_from("d", _ahead)[0])


time.time = lambda: _time() + _seconds()
time.time_ns = lambda: _time_ns() + int(_seconds() * 1e9)
