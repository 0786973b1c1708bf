"""A node inside a program of its own: `await app.run()`, with threads and coroutines in this process."""

import asyncio
import sys

from shiftwork.errors import ShiftworkError
from shiftwork.serve.logging import set_up_logging
from tests.storms.programs.shop import app

if __name__ == "__main__":
    set_up_logging("info", "text")
    try:
        asyncio.run(app.run())
    except ShiftworkError as error:  # its store is away, for example
        sys.exit(str(error))
