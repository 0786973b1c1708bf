"""The story: a day with a peak, failures and kills. An act waits for what it shows, never for a time alone."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from examples.company import check, evidence, journal, orders, pictures, place
from examples.company.app import app, book_order, call_webhook, charge_card, resize_image
from examples.company.day import CATALOGUE_HOUR, PEAK_HOURS, Day
from examples.company.journal import Run
from examples.company.look import Observer
from examples.company.outside import Outside
from examples.company.server import Server, ShowError
from examples.company.traffic import Customers, order
from shiftwork import JobPriority

PATIENCE_SECONDS: Final = 120.0
"""How long an act waits for what it shows. Only a machine that stands still needs more."""
LIVE: Final = ("scheduled", "queued", "processing", "failed")
PHOTOS: Final = 6

Act = Callable[[], Awaitable[None]]


class Story:
    """Plays the day: customers, failures and kills."""

    def __init__(self, day: Day, server: Server, outside: Outside, observer: Observer, photos: Sequence[str]) -> None:
        self._day = day
        self._server = server
        self._outside = outside
        self._observer = observer
        self._customers = Customers(day, photos)

    async def play(self) -> None:
        """Play the whole day."""
        await serve(self._server)
        self._observer.begin()
        midnight = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._customers.come(midnight))
            for hour, act in self._acts():
                await asyncio.sleep(midnight + self._day.at(hour) - asyncio.get_running_loop().time())
                await act()
            await asyncio.sleep(midnight + self._day.seconds - asyncio.get_running_loop().time())
        await self._close()

    def _acts(self) -> Sequence[tuple[float, Act]]:
        return (
            (0.0, self._night),
            (6.0, self._accounting_fails),
            (7.0, self._bad_luck),
            (9.0, self._accounting_is_back),
            (PEAK_HOURS[0], self._rush),
            (CATALOGUE_HOUR, self._catalogue),
            (12.0, self._kill_one),
            (PEAK_HOURS[1], self._after_the_peak),
            (16.0, self._partner_fails),
            (18.0, self._partner_is_back),
            (19.0, self._upload_again),
            (21.0, self._kill_node),
        )

    # ── acts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _night(self) -> None:
        self._observer.tell("midnight: a few mails and webhooks; two slots are enough, and three pools sleep")

    async def _accounting_fails(self) -> None:
        self._observer.tell("the accounting system is down; after 3 failures in a row book_order is disabled")
        self._outside.broken.add("/accounting")
        numbers = range(1, 9)
        await order(book_order.with_options(job_id=f"booking-{n}").call(order=n) for n in numbers)
        await until(self._is_disabled, "book_order was not disabled")
        journal.write("disabled", "book_order")

    async def _bad_luck(self) -> None:
        self._observer.tell("a bank that replies at the third attempt, a file that is not a picture, half an upload")
        await order([charge_card.with_options(job_id=check.FLAKY).call(order=4711)])
        (place.ORIGINALS / "holiday.exe").write_bytes(b"MZ, and not a picture")
        photo = (place.ORIGINALS / "photo-0.jpg").read_bytes()
        (place.ORIGINALS / "late.jpg").write_bytes(photo[: len(photo) // 2])
        await order([resize_image.with_options(job_id=check.BROKEN).call(photo="holiday.exe", width=320)])
        await order([resize_image.with_options(job_id=check.LATE).call(photo="late.jpg", width=320)])

    async def _accounting_is_back(self) -> None:
        self._observer.tell("the accounting system is back: book_order is enabled, its dead jobs are retried")
        self._outside.broken.discard("/accounting")
        journal.write("enabled", "book_order")
        await app.enable_worker("book_order")
        await app.retry_jobs(worker="book_order")

    async def _rush(self) -> None:
        kinds = dict(self._day.rushes())[PEAK_HOURS[0]]
        self._observer.tell(f"the shops open: {sum(kinds.values())} jobs at once, and the peak begins")
        await order(self._customers.calls(kinds))

    async def _catalogue(self) -> None:
        kinds = dict(self._day.rushes())[CATALOGUE_HOUR]
        n = kinds["resize_image"]
        self._observer.tell(f"a customer uploads a catalogue: {n} pictures at once, then one CRITICAL picture")
        await order(self._customers.calls({"resize_image": n}))
        urgent = resize_image.with_options(job_id=check.URGENT, priority=JobPriority.CRITICAL)
        await order([urgent.call(photo="photo-1.jpg", width=1200)])
        await order(self._customers.calls({"send_email": kinds["send_email"]}))

    async def _kill_one(self) -> None:
        run = await self._caught_in_the_act()
        journal.write("killed", str(run.process))  # before the kill: its job may run elsewhere a moment later
        self._observer.tell(f"kill -9 {run.process}, a process that resizes a picture; the node notices at once")
        os.kill(run.process, signal.SIGKILL)

    async def _after_the_peak(self) -> None:
        self._observer.tell("the peak is over")

    async def _partner_fails(self) -> None:
        self._observer.tell("the partner's web server replies 503: the breaker opens, and webhooks wait")
        self._outside.broken.add("/webhooks")
        journal.write("down", "partner")
        await order(call_webhook.call(order=number) for number in range(9_001, 9_013))
        await until(self._breaker_is("open", "half-open"), "the breaker did not open")
        await until(self._no_webhook_runs, "webhooks did not stop")  # those that ran when it opened may finish
        journal.write("opened", "partner")

    async def _partner_is_back(self) -> None:
        self._observer.tell("the partner is back: one probe succeeds, the breaker closes, the webhooks go out")
        journal.write("up", "partner")
        self._outside.broken.discard("/webhooks")
        await until(self._breaker_is("closed"), "the breaker did not close")
        journal.write("closed", "partner")

    async def _upload_again(self) -> None:
        await until(self._is_dead, "half an upload did not become a dead letter")
        self._observer.tell("the other half of the upload arrives: its dead letter is retried")
        late = place.ORIGINALS / "late.jpg"
        late.write_bytes((place.ORIGINALS / "photo-0.jpg").read_bytes())
        journal.write("repaired", check.LATE)
        await app.retry_job(check.LATE)

    async def _kill_node(self) -> None:
        await until(self._is_running, "no job was running")
        pid = await self._server.kill()
        journal.write("killed", str(pid))
        self._observer.tell(f"kill -9 {pid}: the node and all its processes are gone; it is started again")
        await self._server.start()

    async def _close(self) -> None:
        self._observer.tell("midnight: no more customers; the last jobs finish, and the pools shrink")
        for what in (self._all_ended, self._have_shrunk):
            with suppress(ShowError):  # the checks say what is missing
                await until(what, "", every=0.5)

    # ── what the acts wait for ───────────────────────────────────────────────────────────────────────────────────

    async def _caught_in_the_act(self) -> Run:
        """A picture that is being resized, its process stopped so that it cannot end before it is killed."""
        found: list[Run] = []

        async def catch() -> bool:
            for run in _open_runs("resize_image"):
                with suppress(ProcessLookupError):
                    os.kill(run.process, signal.SIGSTOP)
                    if run in _open_runs("resize_image"):
                        found.append(run)
                        return True
                    os.kill(run.process, signal.SIGCONT)
            if not await app.find_jobs(worker="resize_image", status=LIVE):
                await order(self._customers.calls({"resize_image": 2}))
            return False

        await until(catch, "no picture was being resized")
        return found[0]

    async def _is_disabled(self) -> bool:
        seen = await app.control.system.overview()
        return any(view.config.name == "book_order" and not view.state.enabled for view in seen.workers)

    def _breaker_is(self, *states: str) -> Callable[[], Awaitable[bool]]:
        async def is_so() -> bool:
            partner = next((one for one in await app.get_breakers() if one.name == "partner"), None)
            return (partner.state if partner else "closed") in states

        return is_so

    async def _no_webhook_runs(self) -> bool:
        return not await app.find_jobs(worker="call_webhook", status="processing")

    async def _is_dead(self) -> bool:
        return any(job.id == check.LATE for job in await app.find_jobs(status="dead"))

    async def _is_running(self) -> bool:
        return any(run.how == "open" and run.worker != "watch-mailbox" for run in journal.read().runs)

    async def _all_ended(self) -> bool:
        written = journal.read()
        awaited = {mark.subject for mark in written.marked("owed")}
        awaited |= {run.job for run in written.runs if run.how == "cut" and run.worker != "watch-mailbox"}
        live = await app.find_jobs(status=LIVE, limit=100_000)
        return not place.letters() and not any(job.id in awaited for job in live)

    async def _have_shrunk(self) -> bool:
        taken = await evidence.steps()
        return all(check.shrank(pool, taken) for pool in check.POOLS)


def _open_runs(worker: str) -> list[Run]:
    return [run for run in journal.read().of(worker) if run.how == "open"]


async def serve(server: Server) -> None:
    """Start the node, and wait until it runs."""
    await server.start()

    async def is_served() -> bool:
        if not server.alive:
            raise ShowError("the process that serves the company did not start; its log says why")
        return any(event.name == "node.started" for event in await app.events())

    await until(is_served, "the node did not start")


def furnish() -> list[str]:
    """Fill the company's tables, and return the photos that its customers have."""
    orders.make(place.ORDERS)
    return [path.name for path in pictures.make_originals(place.ORIGINALS, PHOTOS)]


async def until(true: Callable[[], Awaitable[bool]], otherwise: str, *, every: float = 0.1) -> None:
    """Wait until something is true, for as long as a busy machine may take."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await true():  # noqa: ASYNC110 - another process makes it true
                await asyncio.sleep(every)
    except TimeoutError:
        raise ShowError(f"{otherwise} within {PATIENCE_SECONDS:g} s") from None
