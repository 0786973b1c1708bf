"""Serves the shop until it is told to stop; what `windlass run examples.shop.app:app` does.

With `--until-eof` also until its standard input ends, so that it does not outlive whoever started it.
"""

import asyncio
import logging
import os
import signal
import sys
import threading

from examples.shop.app import app


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)-7s %(message)s")
    if "--until-eof" in sys.argv:
        threading.Thread(target=_stop_at_eof, daemon=True).start()
    asyncio.run(app.run(stop_timeout_seconds=5))


def _stop_at_eof() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
