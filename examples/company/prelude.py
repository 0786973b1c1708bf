"""`python -m examples.company.prelude`: the same morning with ten fixed slots for everything, as it was before.

It is a process of its own, because its app has other pools; it is started by the show, and ends with it.
"""

import argparse
import asyncio
import sys
from typing import Final

from examples.company import journal, place
from examples.company.app import FIXED_SLOTS, app
from examples.company.day import PEAK_HOURS, Day
from examples.company.look import Observer
from examples.company.outcome import Outcome
from examples.company.outside import serving
from examples.company.serve import stop_at_eof
from examples.company.server import Server, ShowError
from examples.company.stage import Stop, perform
from examples.company.story import LIVE, furnish, serve
from examples.company.traffic import Customers, order
from examples.company.view import open_view
from shiftwork import JobStatus

FIRST_HOUR: Final = 9


async def play(day: Day, server: Server, observer: Observer) -> None:
    """From 9 AM until 2 PM."""
    customers = Customers(day, furnish())
    await serve(server)
    observer.begin(FIRST_HOUR)
    observer.tell(f"{FIXED_SLOTS} fixed slots for everything, as it was before")
    midnight = asyncio.get_running_loop().time() - day.at(FIRST_HOUR)
    async with asyncio.TaskGroup() as group:
        group.create_task(customers.come(midnight, FIRST_HOUR, PEAK_HOURS[1]))
        for hour, kinds in day.rushes():
            await asyncio.sleep(midnight + day.at(hour) - asyncio.get_running_loop().time())
            observer.tell(f"{sum(kinds.values())} jobs come at once")
            await order(customers.calls(kinds))
        await asyncio.sleep(midnight + day.at(PEAK_HOURS[1]) - asyncio.get_running_loop().time())


async def leave(observer: Observer) -> Outcome:
    """How it went."""
    jobs = await app.find_jobs(limit=1_000_000)
    written = journal.read()
    owed = {mark.subject for mark in written.marked("owed")}
    ends = [job.status for job in jobs if job.id in owed]
    return Outcome(
        owed=len(owed),
        completed=sum(status is JobStatus.COMPLETED for status in ends),
        waiting=sum(status in LIVE for status in ends),
        samples=observer.samples,
    )


async def run(day: Day, port: int, *, plain: bool) -> int:
    """Play, and print what waits at 2 PM. Returns the exit code: 0, 1 if it failed, or 130 if it was stopped."""
    stop, observer = Stop(), Observer(day)
    async with serving() as outside:
        server = Server(place.HOME / "server.log", outside, port)
        try:
            played = await perform(stop, play(day, server, observer), observer, open_view(plain=plain))
        except ShowError as error:
            print(f"\nThe morning could not continue: {error}. The log is {place.HOME}/server.log", file=sys.stderr)
            return 1
        finally:
            await server.stop()
            outcome = await leave(observer)
            await app.close()
    if not played:
        return 130
    outcome.write(place.HOME)
    print(f"14:00 » {outcome.waiting} jobs wait, mails behind pictures; that was the morning with ten fixed slots")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.company.prelude", description=__doc__)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    stop_at_eof()
    return asyncio.run(run(Day(options.seconds), options.port, plain=options.plain))


if __name__ == "__main__":
    sys.exit(main())
