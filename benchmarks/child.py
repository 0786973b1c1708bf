"""A process that takes one measurement of one subject and prints its figures, or runs jobs for such a process.

python -m benchmarks.child measure WHAT SUBJECT URL SIZES
python -m benchmarks.child serve SUBJECT URL FOLDER SECONDS WORKERS
python -m benchmarks.child versions PACKAGE…
"""

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Coroutine
from importlib.metadata import version
from typing import Any, TypeVar

from benchmarks.measures import measure, serve
from benchmarks.plan import Sizes

T = TypeVar("T")


def loop_name() -> str:
    """The event loop of every subject: uvloop's, if it is installed."""
    return "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on that loop."""
    factory = importlib.import_module("uvloop").new_event_loop if loop_name() == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


async def _measured(what: str, subject: str, url: str, sizes: str) -> None:
    print(json.dumps(await measure(what, subject, url, Sizes(**json.loads(sizes)))), flush=True)
    os._exit(0)  # some libraries take long to stop, and one does not end at all


def main(what: str, *rest: str) -> None:
    """Run the command that the first argument names."""
    if what == "serve":
        subject, url, folder, seconds, workers = rest
        run(serve(subject, url, folder, seconds=float(seconds), workers=int(workers)))
    elif what == "versions":
        print(json.dumps({package: version(package) for package in rest}))
    else:
        run(_measured(*rest))


if __name__ == "__main__":
    main(*sys.argv[1:])
