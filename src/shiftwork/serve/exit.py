"""How the process ends in time. Threads cannot be killed, and the interpreter waits for some of them: not for ever."""

import logging
import os
import sys
import threading
from typing import Final

EXIT_SECONDS: Final = 2.0
"""How long threads that outlive the work may hold up the end of the process."""


def end_in_time(code: int) -> threading.Timer:
    """End the process with this code in a while, if it has not ended by itself or the timer is not cancelled."""

    def end() -> None:
        logging.getLogger("shiftwork").warning("threads of the app go on; the process ends without them")
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)

    timer = threading.Timer(EXIT_SECONDS, end)
    timer.daemon = True
    timer.start()
    return timer
