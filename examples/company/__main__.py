"""`python -m examples.company` lives the company's day, compressed to two minutes, with real work."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

SHORTEST: Final = 6.0


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the show handles it, there is nothing to tidy up
    parser = argparse.ArgumentParser(prog="python -m examples.company", description=__doc__)
    parser.add_argument("--seconds", type=float, default=96.0, help="how long the day takes (default: %(default)g)")
    parser.add_argument("--plain", action="store_true", help="print plain lines, even on a terminal")
    parser.add_argument("--picture", type=Path, help="also draw the curves into this SVG file")
    options = parser.parse_args()
    if options.seconds < SHORTEST:
        parser.error(f"--seconds must be at least {SHORTEST:g}: killed processes need some seconds to come back")
    # The app reads this when it is imported, here and in the processes that serve it.
    os.environ["COMPANY_HOME"] = tempfile.mkdtemp(prefix="shiftwork-company-")
    from examples.company.day import Day  # noqa: PLC0415 - see above
    from examples.company.show import Show  # noqa: PLC0415 - see above

    async def run() -> int:
        return await Show(Day(options.seconds), plain=options.plain, picture=options.picture).run()

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
