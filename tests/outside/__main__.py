"""Suites that others wrote: `make outside` runs them all, `make outside ARGS="cron django"` some of them.

Prints what did not pass, by name and with the reason, and then a table with the figure of each suite.
"""

import argparse
import sys

from tests.outside.suites import SUITES
from tests.outside.tally import Tally, lines


def main() -> None:
    """Run what is asked for; ends with 1 if a case has failed."""
    asked = argparse.ArgumentParser(prog="make outside", description=__doc__)
    asked.add_argument("suites", nargs="*", choices=[*SUITES, []], help=f"some of {', '.join(SUITES)}; all by default")
    tallies = [tally_of(name) for name in asked.parse_args().suites or SUITES]
    print()
    for line in lines(tallies):
        print(line)
    sys.exit(any(tally.failed for tally in tallies))


def tally_of(name: str) -> Tally:
    """Run one suite. One that breaks has failed, and the next ones run."""
    print(f"» {name}", flush=True)
    try:
        return SUITES[name]()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other suites have a right to run
        return Tally(suite=name, version="-", failed={"all": repr(error)})


if __name__ == "__main__":
    main()
