"""The customers bring the jobs of the day when they are due. Each acknowledged job is written down as owed."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Final

from examples.company import journal, place
from examples.company.app import app, call_webhook, export_rows, resize_image, send_email, write_pdf
from examples.company.day import Day
from examples.company.orders import CUSTOMERS
from shiftwork import Call

WIDTHS: Final = (320, 480, 640)
AT_ONCE_SECONDS: Final = 0.1
"""Jobs that come within this time are enqueued together."""
MAILS_A_LETTER: Final = 12


class Customers:
    """Bring jobs."""

    def __init__(self, day: Day, photos: Sequence[str]) -> None:
        self._day = day
        self._photos = photos
        self._numbers = count(1)

    async def come(self, midnight: float, first: float = 0, last: float = 24) -> None:
        """Bring the jobs between two hours of the day. `midnight` is when the day began on the loop's clock."""
        arrivals = self._day.arrivals(first, last)
        while arrivals:
            now = asyncio.get_running_loop().time() - midnight
            due = [kind for at, kind in arrivals if at <= now]
            arrivals = arrivals[len(due) :]
            await order(self.call(kind) for kind in due)
            if arrivals:
                await asyncio.sleep(max(AT_ONCE_SECONDS, arrivals[0][0] + midnight - asyncio.get_running_loop().time()))

    def calls(self, kinds: dict[str, int]) -> list[Call[Any]]:
        """So many jobs of each kind."""
        return [self.call(kind) for kind, n in kinds.items() for _ in range(n)]

    def call(self, kind: str) -> Call[Any]:
        """One job of a kind, with the next number."""
        number = next(self._numbers)
        match kind:
            case "resize_image":
                return resize_image.call(photo=self._photos[number % len(self._photos)], width=WIDTHS[number % 3])
            case "write_pdf":
                return write_pdf.call(customer=number % CUSTOMERS)
            case "export_rows":
                return export_rows.call(customer=number % CUSTOMERS)
            case "call_webhook":
                return call_webhook.call(order=number)
            case _:
                if number % MAILS_A_LETTER == 0:
                    journal.write("letter", str(number))
                    place.put_letter(number)
                return send_email.call(to=f"customer-{number}", subject=f"Your order {number}")


async def order(calls: Iterable[Call[Any]]) -> None:
    """Enqueue these jobs, and write down that they are owed."""
    wanted = list(calls)
    for job in await app.enqueue_many(wanted) if wanted else []:
        journal.write("owed", job.id)
