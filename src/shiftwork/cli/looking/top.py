"""`shiftwork top`: pools, nodes, instances and running jobs, live."""

import asyncio
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from msgspec import Struct, field

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.looking.pools import bounds_of, slots_text
from shiftwork.cli.looking.status import pool_state
from shiftwork.cli.terminal.formatting import one_line, percent, size, span, took
from shiftwork.cli.terminal.output import Cell, cut, json_option, say, show_json, table, terminal_width
from shiftwork.cli.terminal.screen import Screen
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.control.control import Control
from shiftwork.control.system.overview import MOST_GLANCED_JOBS
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.observing.beats import WorkerInstance
from shiftwork.core.words import counted
from shiftwork.errors import StoreError
from shiftwork.views.formats import clock_time, iso
from shiftwork.views.instances import Glance
from shiftwork.views.overview import NodeView, PoolView
from shiftwork.views.shapes.jobs import progress_shape
from shiftwork.views.shapes.pools import instance_shape, node_shape, pool_shape

SHORTEST_REFRESH_SECONDS: Final = 0.1
MOST_NODE_LINES: Final = 6
"""How many lines of a screen the nodes may take."""
REMEMBERED: Final = 24
"""How many glances a sparkline shows."""
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-=+*%#"
OLD_SECONDS: Final = 10.0
"""After how long without an answer of the store a frame says how old it is."""
_POOLS: Final = (
    *("POOL", "KIND", "SLOTS", "BOUNDS", "RUNNING", "QUEUED", "WAITING", "OLDEST WAIT", "DONE/S", "FAILED/S"),
    *("QUEUE", "STATE"),
)
_LEAST_POOLS: Final = ("KIND", "BOUNDS", "WAITING", "FAILED/S", "DONE/S", "QUEUE")
_NODES: Final = ("NODE", "CPU", "CORES", "MEMORY", "OF", "LOOP LAG", "STORE")
_INSTANCES: Final = ("INSTANCE", "POOL", "PID", "STATUS", "JOBS", "CPU", "MEMORY", "LAG", "AGE", "COMPLETED", "FAILED")
_LEAST_INSTANCES: Final = ("LAG", "PID", "COMPLETED", "FAILED", "AGE", "POOL", "MEMORY")
_JOBS: Final = ("JOB", "WORKER", "POOL", "RUNNING", "ATTEMPT", "INSTANCE", "PROGRESS")
_LEAST_JOBS: Final = ("ATTEMPT", "POOL", "INSTANCE")
_SORTS: Final[dict[str, Callable[[PoolView, "GlanceHistory"], float]]] = {
    "queued": lambda pool, _: -pool.stats.queued,
    "wait": lambda pool, _: -(pool.oldest_wait_seconds or 0.0),
    "running": lambda pool, _: -pool.running,
    "done": lambda pool, history: -history.done.get(pool.name, 0.0),
    "failed": lambda pool, history: -history.failed.get(pool.name, 0.0),
}
"""By what pools are sorted, the largest first; "name" is the order in which they come."""
SORTS: Final = ("name", *_SORTS)
_WARNING: Final = 1
"""The line of a frame that says how old it is."""
Style = dict[str, Any]
Line = tuple[str, Style]
"""A line, and how it is printed where there are colours."""


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
@click.option(
    "--interval",
    type=seconds,
    default="1",
    show_default=True,
    metavar="TIME",
    help="How often to refresh; with --once or --json, for how long to measure the rates.",
)
@click.option("--sort", type=click.Choice(SORTS), default="name", show_default=True, help="By what pools are sorted.")
@with_source
@json_option
def top(source: Source, *, once: bool, interval: float, sort: str, as_json: bool) -> None:
    """Show pools, nodes, instances and running jobs, live.

    q or Ctrl-C quits, p pauses and resumes, s sorts the pools by the next column.
    """
    if interval < SHORTEST_REFRESH_SECONDS:
        message = f"--interval must be at least {SHORTEST_REFRESH_SECONDS} s"
        raise click.UsageError(message)
    if as_json:
        show_json(_document(source.look(lambda control: _two_glances(control, interval))))
    elif once or not sys.stdout.isatty():
        history = source.look(lambda control: _two_glances(control, interval))
        for line in frame(history, width=terminal_width(), blocks=_blocks(), sort=sort):
            say(line)
    else:
        source.ask(lambda control: Top(control, interval, sort).run())


async def _two_glances(control: Control, interval: float) -> GlanceHistory:
    """Look twice: a rate is the difference."""
    history = GlanceHistory()
    history.add(await control.system.glance())
    await asyncio.sleep(interval)
    history.add(await control.system.glance())
    return history


def _document(history: GlanceHistory) -> dict[str, Any]:
    """Return the last glance, and the rates since the one before, as programs see them."""
    seen = history.last
    assert seen is not None  # noqa: S101 - there are two
    return {
        "at": iso(seen.at),
        "store": seen.store,
        "leader": seen.leader,
        "nodes": [node_shape(node) for node in seen.nodes],
        "pools": [pool_shape(pool) for pool in seen.pools],
        "rates": [
            {
                "pool": pool.name,
                "completed_per_second": history.done.get(pool.name),
                "failed_per_second": history.failed.get(pool.name),
            }
            for pool in seen.pools
        ],
        "instances": [instance_shape(one) for one in seen.instances],
        "jobs": [_job_document(job) for job in seen.jobs],
        "more": seen.more,
    }


def _job_document(job: JobRecord) -> dict[str, Any]:
    return {
        "id": job.id,
        "worker": job.worker,
        "pool": job.pool,
        "attempt": job.attempt,
        "started_at": iso(job.started_at),
        "instance": job.instance,
        "cancelling": job.cancelling,
        "progress": progress_shape(job.progress),
    }


class Top:
    """The live view."""

    def __init__(self, control: Control, interval: float, sort: str) -> None:
        self._control = control
        self._interval = interval
        self._sort = sort
        self._history = GlanceHistory()
        self._paused = False
        self._trouble: str | None = None
        self._screen: Screen | None = None
        self._blocks = _blocks()
        self._colour = not os.environ.get("NO_COLOR")
        self._seen_at = time.monotonic()
        """When the store answered last, by our own clock."""

    async def run(self) -> None:
        """Refresh the screen until the user quits."""
        # Before the screen is taken, so that an error is printed as for any other command.
        self._take(await self._control.system.glance())
        looking: asyncio.Future[Glance] | None = None
        with Screen(key=self._key, resized=self._paint) as self._screen:
            over = asyncio.ensure_future(self._screen.over.wait())
            self._paint()
            while not over.done():
                await asyncio.wait({over}, timeout=self._interval)
                if over.done() or (self._paused and looking is None):
                    continue
                looking = await self._look(looking, over)
                self._paint()
            if looking is not None:  # the user quits while the store is slow
                looking.cancel()
                await asyncio.wait({looking})

    async def _look(
        self, looking: "asyncio.Future[Glance] | None", over: "asyncio.Future[Any]"
    ) -> "asyncio.Future[Glance] | None":
        """Look, or go on waiting for a look that has begun; return it if the store takes longer than a refresh."""
        looking = looking or asyncio.ensure_future(self._control.system.glance())
        await asyncio.wait({looking, over}, timeout=self._interval, return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():
            return looking
        try:
            self._take(looking.result())
        except StoreError as error:
            self._trouble = f"cannot refresh: {error}"
        return None

    def _take(self, seen: Glance) -> None:
        self._history.add(seen)
        self._seen_at, self._trouble = time.monotonic(), None

    def _key(self, letter: str) -> None:
        if self._screen is None:
            return
        if letter in "qQ":
            self._screen.over.set()
        elif letter in "pP ":
            self._paused = not self._paused
            self._paint()
        elif letter in "sS":
            self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
            self._paint()

    def _paint(self) -> None:
        if self._screen is None:
            return
        columns, lines = shutil.get_terminal_size()
        keys = "paused; p resumes, q quits" if self._paused else "q quits, p pauses, s sorts"
        self._screen.paint(
            frame(
                self._history,
                width=columns,
                height=lines,
                blocks=self._blocks,
                word=keys if self._sort == "name" else f"{keys}; sorted by {self._sort}",
                sort=self._sort,
                warning=staleness(time.monotonic() - self._seen_at, self._trouble, paused=self._paused),
                colour=self._colour,
            )
        )


def staleness(age: float, trouble: str | None, *, paused: bool) -> str | None:
    """Return what is wrong with a frame of this age; None if it is fresh, or old because a person paused it."""
    if trouble is None and (paused or age < OLD_SECONDS):
        return None
    old = f"OLD: what you see is {span(age)} old"
    if trouble is not None:
        return f"{old}; {trouble}" if age >= OLD_SECONDS else trouble
    return old + "; the store does not answer"


def frame(
    history: GlanceHistory,
    *,
    width: int | None,
    height: int | None = None,
    blocks: str = _BLOCKS,
    word: str | None = None,
    sort: str = "name",
    warning: str | None = None,
    colour: bool = False,
) -> list[str]:
    """Return the lines to show: as many as fit, the pools first. Without a height, all of them.

    A `warning` is the second line; everything below it is old, and grey.
    """
    seen = history.last
    assert seen is not None  # noqa: S101 - there is a glance before the first frame
    lines: list[Line] = [(_headline(seen), {})]
    lines += [] if warning is None else [(one_line(warning), {"fg": "red", "bold": True})]
    lines += [] if word is None else [(one_line(word), {})]
    lines += _sections(history, seen, width=width, height=height and height - len(lines), blocks=blocks, sort=sort)
    texts = [(text if width is None else cut(text, width), style) for text, style in lines]
    if not colour:
        return [text for text, _ in texts]
    grey: Style = {} if warning is None else {"dim": True}
    styled = [(text, style if place <= _WARNING else grey or style) for place, (text, style) in enumerate(texts)]
    return [click.style(text, **style) if style else text for text, style in styled]


def _sections(
    history: GlanceHistory, seen: Glance, *, width: int | None, height: int | None, blocks: str, sort: str
) -> list[Line]:
    """Return pools, nodes, instances and running jobs, as many as fit, each after an empty line."""
    ordered = sorted(seen.pools, key=lambda pool: _SORTS[sort](pool, history)) if sort in _SORTS else seen.pools
    pools = _section(_POOLS, [(_pool(one, history, blocks), _pool_style(one)) for one in ordered], width, _LEAST_POOLS)
    lines: list[Line] = [("", {}), *_first(pools, None if height is None else height - 1)]
    nodes = _section(_NODES, [(_node(node), {}) for node in seen.nodes], width)
    if height is not None:  # a few of them, where there is room
        for_nodes = min(MOST_NODE_LINES, (height - len(lines)) // 3)
        nodes = _first(nodes, for_nodes) if for_nodes > 1 else []
    lines += [("", {}), *nodes] if nodes else []
    room = None if height is None else max(0, height - len(lines) - 2)
    alive = [one for one in seen.instances if one["status"] != "dead"]
    dead = {one["id"] for one in seen.instances if one["status"] == "dead"}
    rows: list[tuple[list[Cell], Style]] = [
        (_job(job, seen.at, gone=job.instance in dead), {"fg": "yellow"} if job.cancelling else {}) for job in seen.jobs
    ]
    jobs = _section(_JOBS, rows, width, _LEAST_JOBS)
    members = _section(_INSTANCES, [(_instance(one, seen), {}) for one in alive], width, _LEAST_INSTANCES)
    if room is not None:  # each gets half of the rest, or what the other one does not need
        for_jobs = min(len(jobs), max(room // 2, room - len(members)))
        members, jobs = _first(members, room - for_jobs), _first(jobs, for_jobs)
    lines += [("", {}), *members] if members else []
    lines += [("", {}), *jobs] if jobs else []
    if seen.more and room is None:
        lines.append((f"(the newest {MOST_GLANCED_JOBS} running jobs)", {}))
    return lines


def _section(
    titles: Sequence[str], rows: Sequence[tuple[list[Cell], Style]], width: int | None, least: Sequence[str] = ()
) -> list[Line]:
    """Return a table, each line with its style; nothing without rows, but for the titles of the pools."""
    if not rows and titles is not _POOLS:
        return []
    lines = table(titles, [cells for cells, _ in rows], width=width, least=least)
    return list(zip(lines, [{"bold": True}, *(style for _, style in rows)], strict=True))


def _pool_style(pool: PoolView) -> Style:
    """Red for a pool that cannot run its jobs, yellow for one that a person or a lack of room holds back."""
    if pool.change.paused or pool.unplaced is not None:
        return {"fg": "yellow"}
    if pool.failing or (pool.stats.queued and not pool.instances):
        return {"fg": "red"}
    return {"fg": "green"} if pool.running else {}


def _first(lines: list[Line], room: int | None) -> list[Line]:
    """Return as many lines as fit, and how many do not."""
    if room is None or len(lines) <= room:
        return lines
    more = f"… and {len(lines) - room + 1:,} more"
    return [*lines[: room - 1], (more, {})] if room > 0 else []


def _headline(seen: Glance) -> str:
    leader = f"{seen.leader} leads" if seen.leader else "no leader"
    return f"shiftwork  {clock_time(seen.at)}  {counted(len(seen.nodes), 'node')}, {leader}  {one_line(seen.store)}"


def _pool(pool: PoolView, history: GlanceHistory, blocks: str) -> list[Cell]:
    return [
        pool.name,
        pool.config.kind if pool.config else None,
        slots_text(pool),
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


def _job(job: JobRecord, now: float, *, gone: bool) -> list[Cell]:
    ran = took(now - (job.started_at or now))
    progress = "its instance is gone" if gone else _progress(job)
    return [job.id, job.worker, job.pool, ran, job.attempt, job.instance, progress]


def _progress(job: JobRecord) -> str | None:
    if job.cancelling:
        return "being cancelled"
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
