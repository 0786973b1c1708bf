"""`python -m examples.shop` shows shiftwork at work, live, for half a minute."""

import argparse
import asyncio
import os
import sys
import tempfile
from typing import Final

SHORTEST: Final = 6.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.add_argument("--seconds", type=float, default=26.0, help="how long the shop is open (default: %(default)g)")
    parser.add_argument("--plain", action="store_true", help="print plain lines, even on a terminal")
    options = parser.parse_args()
    if options.seconds < SHORTEST:
        parser.error(f"--seconds must be at least {SHORTEST:g}: killed processes need some seconds to come back")
    # The app reads this when it is imported, here and in the processes that serve it.
    os.environ["SHOP_HOME"] = tempfile.mkdtemp(prefix="shiftwork-shop-")
    from examples.shop.show import run  # noqa: PLC0415 - see above

    return asyncio.run(run(seconds=options.seconds, plain=options.plain))


if __name__ == "__main__":
    sys.exit(main())
