"""`shiftwork top`: pools, instances and running jobs, live."""

import asyncio
import shutil
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import click
from msgspec import Struct, field

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.language import counted, t
from shiftwork.cli.output import Cell, cut, say, table
from shiftwork.cli.parameters import seconds
from shiftwork.cli.pools import bounds_of, workers_of
from shiftwork.cli.screen import Screen
from shiftwork.cli.status import pool_state
from shiftwork.cli.words import one_line, percent, size, span, took
from shiftwork.control.control import Control
from shiftwork.control.glances import MOST_JOBS
from shiftwork.core.beats import WorkerInstance
from shiftwork.core.model import JobRecord
from shiftwork.errors import StoreError
from shiftwork.views.glance import Glance
from shiftwork.views.instants import clock_time
from shiftwork.views.overview import NodeView, PoolView

SHORTEST_SECONDS: Final = 0.1
MOST_NODES: Final = 6
"""How many lines of a screen the nodes may take."""
REMEMBERED: Final = 24
"""How many glances a sparkline shows."""
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-=+*%#"
_POOLS: Final = (
    *("POOL", "KIND", "SLOTS", "BOUNDS", "BUSY", "QUEUED", "WAITING", "OLDEST WAIT", "DONE/S", "FAILED/S"),
    *("QUEUE", "STATE"),
)
_NODES: Final = ("NODE", "CPU", "CORES", "MEMORY", "OF", "LOOP LAG", "STORE")
_INSTANCES: Final = ("INSTANCE", "POOL", "PID", "STATUS", "JOBS", "CPU", "MEMORY", "LAG", "AGE", "COMPLETED", "FAILED")
_JOBS: Final = ("JOB", "WORKER", "POOL", "RUNNING", "ATTEMPT", "INSTANCE", "PROGRESS")


class GlanceHistory(Struct):
    """The last glance, and what earlier ones add to it."""

    depths: dict[str, deque[int]] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    """The jobs completed per second, by pool."""
    failed: dict[str, float] = field(default_factory=dict)
    last: Glance | None = None

    def add(self, seen: Glance) -> None:
        """Add a glance."""
        before = {pool.name: pool.stats for pool in self.last.pools} if self.last is not None else {}
        passed = seen.at - self.last.at if self.last is not None else 0.0
        for pool in seen.pools:
            self.depths.setdefault(pool.name, deque(maxlen=REMEMBERED)).append(pool.stats.queued)
            if pool.name in before and passed > 0:
                was = before[pool.name]
                self.done[pool.name] = max(0, pool.stats.completed - was.completed) / passed
                self.failed[pool.name] = max(0, pool.stats.failed - was.failed) / passed
        self.last = seen


@click.command()
@click.option("--once", is_flag=True, help="Print it once and end; the default if stdout is not a terminal.")
@click.option("--interval", type=seconds, default="1", show_default=True, metavar="TIME", help="How often to refresh.")
@with_source
def top(source: Source, *, once: bool, interval: float) -> None:
    """Show pools, nodes, instances and running jobs, live. q or Ctrl-C quits, p pauses and resumes."""
    if interval < SHORTEST_SECONDS:
        message = t("--interval must be at least {shortest_seconds} s", shortest_seconds=SHORTEST_SECONDS)
        raise click.UsageError(message)
    if once or not sys.stdout.isatty():
        source.ask(_print)
    else:
        source.ask(lambda control: Top(control, interval).run())


async def _print(control: Control) -> None:
    history = GlanceHistory()
    history.add(await control.system.glance())
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in frame(history, width=width, blocks=_blocks()):
        say(line)


class Top:
    """The live view."""

    def __init__(self, control: Control, interval: float) -> None:
        self._control = control
        self._interval = interval
        self._history = GlanceHistory()
        self._paused = False
        self._trouble: str | None = None
        self._screen: Screen | None = None
        self._blocks = _blocks()

    async def run(self) -> None:
        """Refresh the screen until the user quits."""
        # Before the screen is taken, so that an error is printed as for any other command.
        self._history.add(await self._control.system.glance())
        with Screen(key=self._key, resized=self._paint) as self._screen:
            over = asyncio.ensure_future(self._screen.over.wait())
            self._paint()
            while not over.done():
                await asyncio.wait({over}, timeout=self._interval)
                if not self._paused and not over.done():
                    await self._look(over)
                    self._paint()

    async def _look(self, over: "asyncio.Future[Any]") -> None:
        looking = asyncio.ensure_future(self._control.system.glance())
        await asyncio.wait({looking, over}, return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():  # the user quits while the store is slow
            looking.cancel()
            await asyncio.wait({looking})
            return
        try:
            self._history.add(looking.result())
            self._trouble = None
        except StoreError as error:
            self._trouble = t("cannot refresh: {error}", error=error)

    def _key(self, letter: str) -> None:
        if self._screen is None:
            return
        if letter in "qQ":
            self._screen.over.set()
        elif letter in "pP ":
            self._paused = not self._paused
            self._paint()

    def _paint(self) -> None:
        if self._screen is None:
            return
        columns, lines = shutil.get_terminal_size()
        word = self._trouble or (t("paused; p resumes, q quits") if self._paused else t("q quits, p pauses"))
        self._screen.paint(frame(self._history, width=columns, height=lines, blocks=self._blocks, word=word))


def frame(
    history: GlanceHistory,
    *,
    width: int | None,
    height: int | None = None,
    blocks: str = _BLOCKS,
    word: str | None = None,
) -> list[str]:
    """Return the lines to show: as many as fit, the pools first. Without a height, all of them."""
    seen = history.last
    assert seen is not None  # noqa: S101 - there is a glance before the first frame
    lines = [_headline(seen), *([] if word is None else [one_line(word)]), ""]
    room = None if height is None else height - len(lines)
    pools = table(_POOLS, [_pool(pool, history, blocks) for pool in seen.pools], width=width)
    lines += _first(pools, room)
    nodes = table(_NODES, [_node(node) for node in seen.nodes], width=width) if seen.nodes else []
    if height is not None:  # a few of them, where there is room
        room = min(MOST_NODES, (height - len(lines)) // 3)
        nodes = _first(nodes, room) if room > 1 else []
    lines += ["", *nodes] if nodes else []
    room = None if height is None else max(0, height - len(lines) - 2)
    jobs = table(_JOBS, [_job(job, seen.at) for job in seen.jobs], width=width) if seen.jobs else []
    instances = [one for one in seen.instances if one["status"] != "dead"]
    members = table(_INSTANCES, [_instance(one, seen) for one in instances], width=width) if instances else []
    if room is not None:  # each gets half of the rest, or what the other one does not need
        for_jobs = min(len(jobs), max(room // 2, room - len(members)))
        members, jobs = _first(members, room - for_jobs), _first(jobs, for_jobs)
    lines += ["", *members] if members else []
    lines += ["", *jobs] if jobs else []
    if seen.more and room is None:
        lines.append(t("(the newest {most_jobs} running jobs)", most_jobs=MOST_JOBS))
    return [line if width is None else cut(line, width) for line in lines]


def _first(lines: list[str], room: int | None) -> list[str]:
    """Return as many lines as fit, and how many do not."""
    if room is None or len(lines) <= room:
        return lines
    return [*lines[: room - 1], t("… and {number:,} more", number=len(lines) - room + 1)] if room > 0 else []


def _headline(seen: Glance) -> str:
    leader = t("{leader} leads", leader=seen.leader) if seen.leader else t("no leader")
    return t(
        "shiftwork  {time}  {nodes}, {leader}  {store}",
        time=clock_time(seen.at),
        nodes=counted(len(seen.nodes), "node"),
        leader=leader,
        store=one_line(seen.store),
    )


def _pool(pool: PoolView, history: GlanceHistory, blocks: str) -> list[Cell]:
    return [
        pool.name,
        pool.config.kind if pool.config else None,
        workers_of(pool),
        bounds_of(pool),
        pool.running,
        pool.stats.queued,
        pool.stats.waiting,
        None if pool.oldest_wait_seconds is None else span(pool.oldest_wait_seconds),
        _rate(history.done.get(pool.name)),
        _rate(history.failed.get(pool.name)),
        sparkline(history.depths[pool.name], blocks),
        pool_state(pool),
    ]


def _rate(per_second: float | None) -> str | None:
    if per_second is None:
        return None
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"  # noqa: PLR2004 - two digits are enough


def sparkline(depths: Sequence[int], blocks: str = _BLOCKS) -> str:
    """Return a bar for each number, scaled to the largest."""
    most = max([*depths, 1])
    return "".join(blocks[-(-depth * (len(blocks) - 1) // most)] for depth in depths)


def _node(node: NodeView) -> list[Cell]:
    return [
        node.name,
        percent(node.cpu),
        f"{node.cores:g}",
        None if node.memory_used is None else size(node.memory_used),
        size(node.memory),
        _took(node.lag),
        _took(node.store_seconds),
    ]


def _took(seconds: float | None) -> str | None:
    return None if seconds is None else took(seconds)


def _instance(one: WorkerInstance, seen: Glance) -> list[Cell]:
    return [
        one["id"],
        one["pool"],
        str(one["pid"]),
        one["status"],
        f"{len(one['current_jobs'])}/{one['slots']}",
        percent(one["cpu"]),
        size(one["memory"]) if one["memory"] else None,
        _took(one["lag"]),
        span(seen.at - one["started_at"]),
        one["completed"],
        one["failed"],
    ]


def _job(job: JobRecord, now: float) -> list[Cell]:
    ran = took(now - (job.started_at or now))
    return [job.id, job.worker, job.pool, ran, job.attempt, job.instance, _progress(job)]


def _progress(job: JobRecord) -> str | None:
    if job.cancelling:
        return t("being cancelled")
    if job.progress is None or job.progress.done is None:
        return None
    done, total, message = job.progress.done, job.progress.total, job.progress.message
    share = f"{100 * done / total:.0f} %" if total else f"{done:g}"
    return f"{share}  {message}" if message else share


def _blocks() -> str:
    """Return bars that the terminal can show."""
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return _ASCII
    return _BLOCKS
