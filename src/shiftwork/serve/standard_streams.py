"""The first three file descriptors, which some supervisors leave closed."""

import os
import sys


def open_standard_streams() -> None:
    """Open those that are closed on the null device.

    Otherwise the next file or connection gets their number: what a library prints would go there, and uvloop aborts
    the process when it closes one of them.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - a positional-only parameter
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - a descriptor
