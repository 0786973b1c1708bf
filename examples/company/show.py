"""The whole show: the morning with ten fixed slots, the day with elastic pools, the checks, the page, the dashboard."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from examples.company import check, evidence, journal, place, plan
from examples.company.app import app
from examples.company.day import BY_HOUR, KINDS, Day
from examples.company.look import Observer
from examples.company.outcome import Outcome
from examples.company.outside import serving
from examples.company.picture import draw
from examples.company.report import Curves, as_page
from examples.company.server import Server, ShowError, dashboard_port
from examples.company.stage import Stop, perform
from examples.company.story import Story, furnish
from examples.company.view import LEGEND, open_view

STOPPED: Final = 130
PAGE: Final = place.HOME / "day.html"
SCENARIO: Final = place.HOME / "day.toml"


class Show:
    """Everything that belongs to one run of the demo."""

    def __init__(self, day: Day, *, plain: bool, picture: Path | None) -> None:
        self._day = day
        self._plain = plain
        self._picture = picture
        self._port = dashboard_port()
        self._dashboard = f"http://{place.LOOPBACK}:{self._port}"
        self._observer = Observer(day)

    async def run(self) -> int:
        """Play, verify, and report. Returns the exit code: 0, 1 if a check failed, 130 if the show was stopped."""
        stop = Stop()
        self._introduce()
        try:
            if not await stop.unless(self._prelude()):
                return STOPPED
            async with serving() as outside:
                server = Server(place.HOME / "server.log", outside, self._port)
                try:
                    return await self._elastic(
                        stop, server, Story(self._day, server, outside, self._observer, furnish())
                    )
                finally:
                    await server.stop()
        except ShowError as error:
            print(f"\nThe show could not continue: {error}. The logs are in {place.HOME}", file=sys.stderr)
            return 1
        finally:
            await app.close()

    def _introduce(self) -> None:
        print(
            f"The company's day, {sum(BY_HOUR):,} jobs of five kinds, in {self._day.seconds:g} seconds"
            f" and with 1 job for {self._day.scale():,.0f}:\n"
            "  1. the morning with ten fixed slots: jobs pile up, and mails wait behind pictures\n"
            "  2. the whole day with elastic pools, 2 to 25 slots: real images, PDFs, mail, CSV exports and webhooks\n"
            "  3. meanwhile systems fail and come back, a process is killed in mid-peak, and the node in the evening\n"
            "  4. every job is verified, and the planned day is drawn over the real one\n"
            f"Dashboard: {self._dashboard}\n{LEGEND}\n",
            flush=True,
        )

    async def _prelude(self) -> None:
        """Play the morning with fixed slots, in a process of its own that ends with this one."""
        arguments = [f"--seconds={self._day.seconds}", f"--port={self._port}", *(["--plain"] if self._plain else [])]
        environment = {**os.environ, "COMPANY_HOME": str(place.FIXED_HOME), "COMPANY_POOLS": "fixed"}
        place.FIXED_HOME.mkdir()
        # In its own session, so that Ctrl-C reaches only this process, which then stops the other one gracefully.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "examples.company.prelude", *arguments),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        if code:
            raise ShowError(f"the morning with ten fixed slots ended with exit code {code}")

    async def _elastic(self, stop: Stop, server: Server, story: Story) -> int:
        whole = await perform(stop, story.play(), self._observer, open_view(plain=self._plain))
        if not whole:
            await server.stop()
        code = await self._judge(whole=whole)
        if whole and sys.stdin.isatty() and sys.stdout.isatty():
            print(f"\nThe dashboard stays at {self._dashboard} until you press Enter.", flush=True)
            await stop.unless(_enter())
        return code if whole else STOPPED

    async def _judge(self, *, whole: bool) -> int:
        findings = check.verify(await evidence.gather(whole=whole))
        print("\nVerified from the journal that the jobs wrote, from what they made, and from the store:\n")
        for finding in findings:
            print(f"  {finding}")
        failed = sum(not finding.ok for finding in findings)
        if not whole:
            print("\nThe show was stopped early, so only some checks apply. Waiting jobs stay in the store.")
        print(f"\n{len(findings)} checks, {failed or 'none'} failed.")
        if whole:
            self._draw([str(finding) for finding in findings])
            _try_next()
        return 1 if failed else 0

    def _draw(self, checks: list[str]) -> None:
        fixed = Outcome.read(place.FIXED_HOME)
        assert fixed is not None, "the prelude was played"
        workers, pools = app.registered()
        homes = {kind: workers[kind].pool for kind in KINDS}
        before = plan.measured(journal.read(place.FIXED_HOME / journal.PATH.name))
        now = plan.measured(journal.read())
        SCENARIO.write_text(plan.scenario(self._day, pools, homes, elastic=now, fixed=before))
        curves = Curves(
            self._day,
            fixed_planned=plan.planned(SCENARIO.read_text(), plan.FIXED),
            fixed_real=fixed.samples,
            elastic_planned=plan.planned(SCENARIO.read_text(), plan.ELASTIC),
            elastic_real=self._observer.samples,
        )
        PAGE.write_text(as_page(curves, checks))
        if self._picture is not None:
            self._picture.write_text(draw(curves))
        print(f"Planned and real curves, over each other: {PAGE}")


def _try_next() -> None:
    command = Path(sys.executable).with_name("shiftwork")
    with suppress(ValueError):
        command = command.relative_to(Path.cwd())
    print(
        "\nNow try:\n"
        f"  {command} explain {check.BROKEN} --store {place.STORE}   # why a picture is a dead letter\n"
        f"  {command} plan examples/company.toml   # the whole day of 200,000 jobs, in virtual time\n"
        f"  less examples/company/app.py   # the application: five pools, eleven workers",
        flush=True,
    )


async def _enter() -> None:
    """Wait for Enter."""
    pressed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, pressed.set)
    try:
        await pressed.wait()
        sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
