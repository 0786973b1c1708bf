"""Serves the company until a signal stops it, like `shiftwork run examples.company.app:app`.

It also stops when its standard input ends, so that it does not outlive its parent.
"""

import os
import signal
import sys
import threading

from shiftwork.cli import main as shiftwork


def main() -> None:
    stop_at_eof()
    shiftwork(["run", "examples.company.app:app", "--stop-timeout", "5", *sys.argv[1:]])


def stop_at_eof() -> None:
    """Send this process SIGTERM when its standard input ends."""

    def read() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()


if __name__ == "__main__":
    main()
