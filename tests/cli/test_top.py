"""`shiftwork top`: a frame, and the live view in a real terminal."""

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import click
import pytest
from msgspec.structs import replace

from shiftwork import JobStatus
from shiftwork.cli.looking import top as cli_top
from shiftwork.cli.looking.top import GlanceHistory, Top, frame, sparkline, staleness
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.jobs import JobPriority, JobRecord, Progress
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import WorkerInstance
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.scaling.bounds import Bounds
from shiftwork.views.instances import Glance
from shiftwork.views.overview import NodeView, PoolView
from tests.cli.terminal import URL, Terminal, in_shop, until
from tests.polling import wait_until

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


# ── a frame ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pool(**numbers: Any) -> PoolView:
    return PoolView(
        name="images",
        config=PoolConfig(name="images", kind="process", min_workers=2, max_workers=4),
        bounds=Bounds(low=2, high=4, by="hand"),
        change=PoolDoc(max_workers=4),
        stats=PoolStats(**numbers),
        instances=3,
        slots=3,
        busy=2,
        oldest_wait_seconds=12.0,
        wanted=4,
        hosting="ready",
        failing={},
        unplaced=None,
    )


def instance(number: int = 1) -> WorkerInstance:
    return WorkerInstance(
        id=f"n/images#{number}",
        pool="images",
        node="n",
        status="busy",
        current_jobs=["j"],
        started_at=0.0,
        last_heartbeat=99.0,
        slots=1,
        completed=0,
        failed=0,
        memory=34 << 20,
        pid=4711,
        cpu=87.5,
        lag=0.0021,
    )


def node() -> NodeView:
    return NodeView(
        name="n",
        host="n",
        pid=4700,
        started_at=0.0,
        last_beat_at=99.0,
        leads=True,
        status="serving",
        drained_at=None,
        cores=2.0,
        memory=4 << 30,
        labels=(),
        pools=("images",),
        runs=[],
        failing={},
        cpu=3.44,
        memory_used=120 << 20,
        lag=None,
        store_seconds=0.0004,
    )


def job(name: str = "j", **fields: Any) -> JobRecord:
    return JobRecord(
        id=name,
        worker="resize",
        pool="images",
        status=JobStatus.PROCESSING,
        payload=b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=0.0,
        rank=0.0,
        created_at=0.0,
        started_at=90.0,
        instance="n/images#1",
        **fields,
    )


def glance(at: float = 100.0, *, instances: int = 1, jobs: list[JobRecord] | None = None, **numbers: Any) -> Glance:
    return Glance(
        at=at,
        store=URL,
        leader="n",
        nodes=[node()],
        pools=[pool(**numbers)],
        instances=[instance(number) for number in range(instances)],
        jobs=[job()] if jobs is None else jobs,
    )


def seen(*glances: Glance) -> GlanceHistory:
    history = GlanceHistory()
    for one in glances:
        history.add(one)
    return history


def test_a_frame_shows_pools_nodes_instances_and_jobs() -> None:
    shown = "\n".join(frame(seen(glance(queued=5, waiting=7, processing=2)), width=None))
    assert re.search(r"^images +process +3 → 4 +2–4\* +2 +5 +7 +12 s +- +- +█ +serving$", shown, re.MULTILINE)
    assert re.search(r"^n/images#0 +images +4711 +busy +1/1 +88 % +34 MiB +0\.002 s +100 s +0 +0$", shown, re.MULTILINE)
    assert re.search(r"^n +3\.4 % +2 +120 MiB +4\.0 GiB +- +0\.000 s$", shown, re.MULTILINE)
    assert re.search(r"^j +resize +images +10\.0 s +0 +n/images#1 +-$", shown, re.MULTILINE)


def test_throughput_comes_from_two_looks() -> None:
    history = seen(glance(100.0, completed=10, failed=1), glance(102.0, completed=50, failed=2))
    assert (history.done, history.failed) == ({"images": 20.0}, {"images": 0.5})
    assert re.search(r"^images .* 20 +0\.5 ", "\n".join(frame(history, width=None)), re.MULTILINE)
    history.add(glance(103.0))  # somebody emptied the store
    assert history.done == {"images": 0.0}


def test_the_queue_is_drawn() -> None:
    assert sparkline([0, 1, 4, 8]) == "▁▂▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 7], "_.-=+*%#") == "_#"
    history = seen(*(glance(float(at), queued=at) for at in range(100)))
    assert len(history.depths["images"]) == 24


def test_a_job_whose_instance_is_dead_is_not_shown_as_if_it_ran() -> None:
    dead = instance(1)
    dead["status"] = "dead"
    now = replace(glance(jobs=[job(progress=Progress(1, 4, "sitting down"))]), instances=[dead])
    assert frame(seen(now), width=None)[-1].endswith("  its instance is gone")


@pytest.mark.parametrize(
    ("progress", "cancelling", "words"),
    [
        (Progress(1, 4, "sitting down"), False, "25 % sitting down"),
        (Progress(3), False, "3"),
        (None, True, "being cancelled"),
        (Progress(1, 0), False, "1"),
        (Progress(1, 2, "\x1b[31mred"), False, r"50 % \x1b[31mred"),
    ],
)
def test_how_far_a_job_is(*, progress: Progress | None, cancelling: bool, words: str) -> None:
    lines = frame(seen(glance(jobs=[job(progress=progress, cancelling=cancelling)])), width=None)
    assert lines[-1].endswith(f"  {words}")


@pytest.mark.parametrize("height", [1, 4, 17, 39])
@pytest.mark.parametrize("width", [1, 40, 200])
def test_a_frame_fits_its_screen(width: int, height: int) -> None:
    many = glance(instances=50, jobs=[job(f"j{number}") for number in range(50)])
    lines = frame(seen(many), width=width, height=height, word="q quits")
    assert len(lines) <= max(height, 3)
    assert all(len(line) <= width for line in lines)


def test_what_does_not_fit_is_counted() -> None:
    many = glance(instances=50, jobs=[job(f"j{number}") for number in range(50)])
    lines = frame(seen(many), width=200, height=30)
    more = [int(found[1]) for line in lines if (found := re.match(r"… and (\d+) more", line))]
    shown = [line for line in lines if re.match(r"(n/images#|j)\d", line)]
    assert len(more) == 2
    assert len(shown) + sum(more) == 100


def test_pools_are_sorted_by_what_is_asked_for() -> None:
    seen_pools = [pool(queued=1, processing=2), pool(queued=9), pool(queued=5, processing=1)]
    named = [replace(one, name=name) for one, name in zip(seen_pools, "abc", strict=True)]
    history = seen(replace(glance(), pools=named))

    def order(sort: str) -> str:
        return "".join(line[0] for line in frame(history, width=None, sort=sort) if re.match("[abc] ", line))

    assert [order(sort) for sort in ("name", "queued", "running")] == ["abc", "bca", "acb"]


def test_what_is_wrong_has_a_colour() -> None:
    paused = replace(pool(), name="paused", change=PoolDoc(paused=True))
    unserved = replace(pool(queued=3), name="unserved", instances=0)
    lines = frame(seen(replace(glance(), pools=[paused, unserved])), width=None, colour=True)
    colours = {name: line[:5] for line in lines for name in ("paused", "unserved") if name in line}
    assert colours == {"paused": "\x1b[33m", "unserved": "\x1b[31m"}
    assert any(line.startswith("\x1b[1mPOOL") for line in lines)
    plain = frame(seen(replace(glance(), pools=[paused, unserved])), width=None)
    assert [click.unstyle(line) for line in lines] == plain


def test_a_frame_says_how_old_it_is_when_the_store_is_silent() -> None:
    assert staleness(9.9, None, paused=False) is None
    assert staleness(12.0, None, paused=True) is None
    assert staleness(12.0, None, paused=False) == "OLD: what you see is 12 s old; the store does not answer"
    assert staleness(1.0, "cannot refresh: gone", paused=False) == "cannot refresh: gone"
    assert (
        staleness(130.0, "cannot refresh: gone", paused=True) == "OLD: what you see is 2 min old; cannot refresh: gone"
    )
    lines = frame(seen(glance()), width=80, warning="OLD: what you see is 12 s old", colour=True)
    assert lines[1] == "\x1b[31m\x1b[1mOLD: what you see is 12 s old\x1b[0m"
    assert all(line.startswith("\x1b[2m") for line in lines[3:] if line), "everything else is grey"


# ── for real ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_once_prints_one_frame(shop: Terminal) -> None:
    told = shop.ok("top", "--once")
    assert "no leader" in told.splitlines()[0]
    assert "\x1b" not in told
    assert re.search(r"^images +thread +0 +1–4 .* no node serves it$", told, re.MULTILINE)
    assert shop.ok("top").splitlines()[2:] == told.splitlines()[2:], "where stdout is no terminal it is the same"


def test_one_snapshot_as_json(shop: Terminal) -> None:
    seen = shop.json("top", "--interval", "0.1")
    assert seen.keys() == {"at", "store", "leader", "nodes", "pools", "instances", "jobs", "more", "rates"}
    assert [one["pool"] for one in seen["rates"]] == [pool["name"] for pool in seen["pools"]]
    assert {one["completed_per_second"] for one in seen["rates"]} == {0.0}, "measured, not unknown"
    assert [pool["name"] for pool in seen["pools"]] == ["default", "images"]
    shop.node()
    job_id = shop.json("enqueue", "linger", "name=rude")["job"]["id"]
    until(job_id, JobStatus.PROCESSING)
    wait_until(lambda: shop.json("top")["jobs"][0]["progress"] is not None)
    (job,) = shop.json("top")["jobs"]
    assert (job["id"], job["worker"], job["progress"]["message"]) == (job_id, "linger", "sitting down")


@pytest.mark.parametrize("interval", ["0", "0.01", "soon"])
def test_an_interval_that_makes_no_sense(shop: Terminal, interval: str) -> None:
    assert "Usage: shiftwork top" in shop.refused("top", "--interval", interval, code=2)


class Live:
    """`shiftwork top` in a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        self.output = b""
        self.master, slave = pty.openpty()
        self.resize(30, 160)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shiftwork", "top", "--interval", "0.1", "--store", URL],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing else runs yet
        )

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, pattern: bytes, *, within: float = 30.0) -> None:
        """Read until this has been shown; forget all up to there."""
        deadline = time.monotonic() + within
        while not (found := re.search(pattern, self.output, re.DOTALL)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} was not shown; there is:\n{self.output[-4000:].decode(errors='replace')}"
            self._read(left)
        self.output = self.output[found.end() :]

    def frames(self, seconds: float) -> int:
        """How many frames it paints in so long."""
        self.output, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)
        return self.output.count(b"\x1b[?2026h")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        """Wait for its end; the terminal is as it was before."""
        deadline = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read(0.05)
        self._read(0.0)
        assert self.output.rstrip().endswith(LEAVE), self.output[-200:]
        assert b"\x1b[?25h" in self.output, "no cursor"
        assert termios.tcgetattr(self.slave) == self.before
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def _read(self, seconds: float) -> None:
        while select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)
            seconds = 0.0


@pytest.fixture
def live(shop: Terminal) -> Iterator[Live]:
    """It runs, and has painted."""
    made = Live(shop.folder)
    made.wait_for(re.escape(ENTER) + b".*shiftwork  2")
    yield made
    made.close()


def test_it_lives(shop: Terminal, live: Live) -> None:
    live.wait_for(b"no leader")
    shop.node()
    live.wait_for(rb" leads .*serving")
    job_id = shop.json("enqueue", "linger", "name=rude")["job"]["id"]
    until(job_id, JobStatus.PROCESSING)
    live.wait_for(job_id.encode() + rb" +linger .*25 % sitting down")
    live.wait_for(rb"/default#\d+ +default +\d+ +busy +1/5 ")
    shop.ok("cancel", job_id)
    in_shop(lambda app: app.control.jobs.enqueue("resize", {"path": "a.png"}))
    live.type("q")
    assert live.end() == 0


def test_p_pauses_and_resumes(live: Live) -> None:
    live.type("p")
    live.wait_for(b"paused; p resumes")
    assert live.frames(0.6) == 0 or live.frames(0.6) == 0, "one may have been under way"
    live.type("p")
    live.wait_for(b"q quits, p pauses")
    live.type("q")
    assert live.end() == 0


def test_s_sorts_the_pools(live: Live) -> None:
    live.type("s")
    live.wait_for(b"q quits, p pauses, s sorts; sorted by queued")
    live.type("q")
    assert live.end() == 0


def test_a_frame_that_the_store_does_not_renew_is_called_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen keeps showing its age while the store hangs, until the first reply."""
    painted, answers, times = list[str](), asyncio.Queue[Glance](), [0.0]

    class Paper:
        def __init__(self, *, key: Any, resized: Any) -> None:
            self.over = asyncio.Event()

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def paint(self, lines: Sequence[str]) -> None:
            painted.append(click.unstyle("\n".join(lines)))
            if "OLD: what you see is 60 s old; the store does not answer" in painted[-1]:
                answers.put_nowait(glance(200.0))
            elif len(painted) > 2 and "OLD:" in painted[-2]:
                self.over.set()
            else:
                times[0] += 60.0 if len(painted) == 1 else 0.0

    monkeypatch.setattr(cli_top, "Screen", Paper)
    monkeypatch.setattr(cli_top, "time", SimpleNamespace(monotonic=lambda: times[0]))
    control = SimpleNamespace(system=SimpleNamespace(glance=answers.get))

    async def watch() -> None:
        answers.put_nowait(glance())
        async with asyncio.timeout(30):
            await Top(cast("Any", control), 0.01, "name").run()

    asyncio.run(watch())
    assert "OLD:" not in painted[0]
    assert "OLD:" not in painted[-1]


def test_it_follows_the_size_of_the_terminal(live: Live) -> None:
    live.wait_for(rb"STATE\x1b\[0m\x1b\[K")
    live.resize(4, 40)
    live.wait_for(rb"\x1b\[H[^\r]{1,39}\xe2\x80\xa6\x1b\[K(\r+\n[^\r]*){3}\x1b\[J")
    live.type("q")
    assert live.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(live: Live, number: signal.Signals) -> None:
    live.process.send_signal(number)
    assert live.end() == 0


def test_ctrl_c_ends_it(live: Live) -> None:
    live.type("\x03")
    assert live.end() == 0


def test_ctrl_z_gives_the_terminal_back_for_a_while(live: Live) -> None:
    live.output = b""
    live.process.send_signal(signal.SIGTSTP)
    live.wait_for(re.escape(LEAVE))
    assert os.waitid(os.P_PID, live.process.pid, os.WSTOPPED) is not None
    assert termios.tcgetattr(live.slave) == live.before
    live.process.send_signal(signal.SIGCONT)
    live.wait_for(re.escape(ENTER) + b".*shiftwork  2")
    live.type("q")
    assert live.end() == 0


def test_a_store_that_goes_away_does_not_end_it(shop: Terminal, live: Live) -> None:
    database = shop.folder / "shop.db"
    database.write_bytes(b"this is no database " * 1000)
    live.wait_for(b"cannot refresh: ")
    live.type("q")
    assert live.end() == 0
