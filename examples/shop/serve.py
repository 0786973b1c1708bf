"""Serves the shop until a signal stops it, like `shiftwork run examples.shop.app:app`.

With `--until-eof` it also stops when its standard input ends, so that it does not outlive its parent.
"""

import os
import signal
import sys
import threading

from shiftwork.cli import main as shiftwork


def main() -> None:
    if "--until-eof" in sys.argv:
        threading.Thread(target=_stop_at_eof, daemon=True).start()
    shiftwork(["run", "examples.shop.app:app", "--stop-timeout", "5"])


def _stop_at_eof() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
