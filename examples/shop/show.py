"""The story: a shop's day in half a minute, served by a node that is killed in the middle of it."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from examples.shop import check, journal, world
from examples.shop.app import app, call_partner, charge_card, image_resize, send_mail
from examples.shop.look import Observer
from examples.shop.view import View, open_view
from shiftwork import JobPriority
from shiftwork.handles.call import Call

LOOK_SECONDS: Final = 0.25
START_SECONDS: Final = 15.0
PATIENCE_SECONDS: Final = 30.0
"""How long the shop stays open after its last customer, so that every job can finish."""
LIVE: Final = ("scheduled", "queued", "processing", "failed")


class ShowError(Exception):
    """The show cannot continue."""


class Server:
    """The node that serves the shop."""

    def __init__(self, log: Path) -> None:
        self._path = log
        self._log = log.open("ab")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        # In its own session, so that Ctrl-C reaches only the show, which then stops the server gracefully.
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "examples.shop.serve", "--until-eof"),
            stdin=asyncio.subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def address(self) -> str | None:
        """The dashboard's address from the log; None if there is none, for example because its port was taken."""
        found = re.findall(r"the dashboard is at (\S+)", self._path.read_text(errors="replace"))
        return found[-1] if found else None

    async def kill(self) -> int:
        """Send SIGKILL, without warning or clean-up, and return the process id."""
        if self._process is None or not self.alive:
            raise ShowError("the process that serves the shop died unexpectedly")
        os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        return self._process.pid

    async def stop(self) -> None:
        """Ask it to stop, and kill it if it does not."""
        if self._process is None or not self.alive:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(30):
                await self._process.wait()
        except TimeoutError:
            await self.kill()


class Show:
    """Plays the story: customers, failures and kills."""

    def __init__(self, server: Server, observer: Observer, *, seconds: float) -> None:
        self._server = server
        self._observer = observer
        self._seconds = seconds
        self._orders = count(1)

    async def play(self) -> None:
        """Play the whole day."""
        await self._open()
        opened = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            customers = group.create_task(self._serve_customers())
            for part, act in self._acts():
                await _sleep_until(opened + part * self._seconds)
                await act()
            await _sleep_until(opened + self._seconds)
            customers.cancel()
        await self._close()

    def _acts(self) -> Sequence[tuple[float, Callable[[], Awaitable[None]]]]:
        return (
            (0.06, self._orders_for_the_partner),
            (0.12, self._bad_luck),
            (0.22, self._morning_peak),
            (0.30, self._kill_one),
            (0.36, self._kill),
            (0.75, self._repair),
        )

    # ── acts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> None:
        self._observer.tell("the shop opens")
        await self._server.start()
        await _until(self._is_served, within=START_SECONDS, what="the server did not start")
        if self._server.address is not None:
            self._observer.tell(f"dashboard: {self._server.address}")

    async def _serve_customers(self) -> None:
        for number in count(1):
            await self._order([send_mail.call(to=f"customer-{number}")])
            if number % 2:
                await self._order([image_resize.call(path=f"new-{number}.jpg", width=320)])
            if number % 4 == 1:
                journal.write("letter", str(number))
                world.put_letter(number)
            await asyncio.sleep(0.4)

    async def _orders_for_the_partner(self) -> None:
        self._observer.tell("8 orders for a partner that is down: call_partner will fail")
        orders = [(f"partner-{number}", number) for number in range(1, 9)]
        await self._order([call_partner.with_options(job_id=id).call(order=number) for id, number in orders])
        await _until(self._is_disabled, within=30, what="call_partner was not disabled")
        journal.write("disabled", "call_partner")

    async def _bad_luck(self) -> None:
        self._observer.tell("a bank that responds at the third attempt, and a file that is not a picture")
        await self._order([charge_card.with_options(job_id=check.FLAKY).call(order=4711)])
        await self._order([image_resize.with_options(job_id=check.BROKEN).call(path="holiday.exe", width=320)])

    async def _morning_peak(self) -> None:
        pictures, mails = int(5 * self._seconds), int(15 * self._seconds)
        self._observer.tell(f"10 o'clock: {pictures} pictures and {mails} mails at once, then one CRITICAL picture")
        await self._order([image_resize.call(path=f"{number}.jpg", width=320) for number in range(pictures)])
        urgent = image_resize.with_options(job_id=check.URGENT, priority=JobPriority.CRITICAL)
        await self._order([urgent.call(path="front-page.jpg", width=1920)])
        await self._order([send_mail.call(to=f"subscriber-{number}") for number in range(mails)])

    async def _kill_one(self) -> None:
        await _until(self._pictures_are_made, within=30, what="no picture was being resized")
        run = next(run for run in reversed(journal.read().runs) if run.worker == "image_resize")
        journal.write("killed", str(run.process))  # before the kill: its job may run elsewhere a moment later
        self._observer.tell(f"kill -9 {run.process}: a process that resizes a picture; the node notices at once")
        with suppress(ProcessLookupError):
            os.kill(run.process, signal.SIGKILL)

    async def _kill(self) -> None:
        await _until(self._is_busy, within=30, what="the pools did not become busy")
        pid = await self._server.kill()
        journal.write("killed", str(pid))
        self._observer.tell(f"kill -9 {pid}: the node and all its processes are gone, in the middle of their jobs")
        await asyncio.sleep(0.7)
        self._observer.tell("the node is started again; its old jobs return when the old lease has ended")
        await self._server.start()

    async def _repair(self) -> None:
        self._observer.tell("the partner is back: call_partner is enabled, and its dead jobs are retried")
        world.PARTNER_IS_UP.touch()
        journal.write("enabled", "call_partner")
        await app.enable_worker("call_partner")
        await app.retry_jobs(worker="call_partner")

    async def _close(self) -> None:
        self._observer.tell("the shop closes; the last jobs finish")
        await _until(self._all_ended, within=PATIENCE_SECONDS, what="not every job finished", fatal=False)

    # ── orders ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _order(self, calls: Sequence[Call[Any]]) -> None:
        for job in await app.enqueue_many(calls):
            journal.write("owed", job.id)

    async def _is_served(self) -> bool:
        if not self._server.alive:
            raise ShowError("the process that serves the shop did not start")
        return any(event.name == "node.started" for event in await app.events())

    async def _pictures_are_made(self) -> bool:
        return any(run.worker == "image_resize" and run.how == "open" for run in journal.read().runs)

    async def _is_busy(self) -> bool:
        jobs = await app.find_jobs(status="processing")
        return sum(job.pool != "default" for job in jobs) >= 6

    async def _is_disabled(self) -> bool:
        return await self._observer.disabled("call_partner")

    async def _all_ended(self) -> bool:
        written = journal.read()
        awaited = {mark.subject for mark in written.marked("owed")}
        awaited |= {run.job for run in written.runs if run.how == "cut" and run.worker != "watch-mailbox"}
        live = await app.find_jobs(status=LIVE, limit=100_000)
        return not world.letters() and not any(job.id in awaited for job in live)


async def run(*, seconds: float, plain: bool) -> int:
    """Play, verify, and report. Returns the exit code: 0, 1 if a check failed, 130 if the show was stopped."""
    server, observer, view = Server(world.HOME / "server.log"), Observer(), open_view(plain=plain)
    play = asyncio.create_task(Show(server, observer, seconds=seconds).play())
    watch = asyncio.create_task(_watch(observer, view))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, play.cancel)
    try:
        await asyncio.wait([play])
        if play.cancelled():
            observer.tell("stopped; running jobs may finish")
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        view.show(await observer.look())
    finally:
        view.close()
        await server.stop()
    try:
        return await _sum_up(play)
    finally:
        await app.close()


async def _watch(observer: Observer, view: View) -> None:
    while True:
        view.show(await observer.look())
        await asyncio.sleep(LOOK_SECONDS)


async def _sum_up(play: asyncio.Task[None]) -> int:
    whole = not play.cancelled()
    if whole and (error := play.exception()) is not None:
        print(f"\nThe show could not continue: {error}\n{_where()}", file=sys.stderr)
        return 1
    findings = check.verify(await check.gather(whole=whole))
    print("\nVerified from the journal that the jobs wrote, and from the store:\n")
    for finding in findings:
        print(f"  {finding}")
    failed = sum(not finding.ok for finding in findings)
    if not whole:
        print("\nThe show was stopped early, so only some checks apply. Waiting jobs stay in the store.")
    print(f"\n{len(findings)} checks, {failed or 'none'} failed. {_where()}")
    return 1 if failed else 0 if whole else 130


def _where() -> str:
    return (
        f"Server log: {world.HOME}/server.log\n"
        f"Look closer: shiftwork jobs --store {world.STORE} (or workers, pools, events)"
    )


async def _sleep_until(when: float) -> None:
    await asyncio.sleep(when - asyncio.get_running_loop().time())


async def _until(true: Callable[[], Awaitable[bool]], *, within: float, what: str, fatal: bool = True) -> None:
    try:
        async with asyncio.timeout(within):
            while not await true():  # noqa: ASYNC110 - another process makes it true
                await asyncio.sleep(0.1)
    except TimeoutError:
        if fatal:
            raise ShowError(f"{what} within {within:g} s") from None
