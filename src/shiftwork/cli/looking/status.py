"""`shiftwork status`: one screen with what is wrong now, and how much there is to do."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Final, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import one_line, span, when
from shiftwork.cli.terminal.output import Cell, json_option, padded, say, show_json, show_table, show_wrapped
from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Problem, gist
from shiftwork.core.health.verdict import store_away
from shiftwork.core.words import counted
from shiftwork.core.workers.state import is_failing
from shiftwork.errors import StoreUnavailableError
from shiftwork.views.diagnosis import remedy, see
from shiftwork.views.formats import clock_time, past_iso
from shiftwork.views.overview import Overview, PoolView
from shiftwork.views.shapes.system import problem_shape, status_shape

STATUS_PATIENCE_SECONDS: Final = 10.0
"""How long a command that shows what is wrong waits for the store."""
NO_STORE: Final = 3

T = TypeVar("T")
_UNHOSTED = {
    "no_node": "no node serves it",
    "unknown": "no node knows it",
    "labels": "no node has its labels",
    "drained": "its nodes are drained",
}
_COLOURS = {"ok": "green", "degraded": "yellow", "failing": "red", "warning": "yellow", "critical": "red"}


@click.command()
@with_source
@json_option
def status(source: Source, *, as_json: bool) -> None:
    """Show what is wrong now, with the remedy; the pools; disabled workers; the leader.

    The exit code is 3 if the store does not answer; it is 0 however bad the rest is.
    """
    seen = source.ask(lambda control: within_patience(control, control.system.overview(try_write=True)))
    if isinstance(seen, NoAnswer):
        seen.show(as_json=as_json)
        click.get_current_context().exit(NO_STORE)
    elif as_json:
        show_json(status_shape(seen))
    else:
        _show(seen)


class NoAnswer(Struct, frozen=True):
    """A store that does not answer."""

    store: str
    at: float
    problem: Problem

    def show(self, *, as_json: bool) -> None:
        """Print it as what is wrong."""
        if as_json:
            problems = [problem_shape(self.problem)]
            show_json({"at": past_iso(self.at), "store": self.store, "status": "failing", "problems": problems})
            return
        show_wrapped("", f"{self.store} at {clock_time(self.at)}")
        show_health("failing", [self.problem], now=self.at)


async def within_patience(control: Control, work: Awaitable[T]) -> T | NoAnswer:
    """Wait for what a store is asked, but no longer than a person should."""
    began = time.time()
    try:
        async with asyncio.timeout(STATUS_PATIENCE_SECONDS):
            return await work
    except TimeoutError:
        problem = replace(store_away("no reply, and no error", began, time.time()), since=None)  # it began earlier
    except StoreUnavailableError as error:
        problem = store_away(str(error), None, time.time())
    return NoAnswer(control.store.url, time.time(), problem)


def _show(seen: Overview) -> None:
    show_wrapped("", f"{seen.store} at {clock_time(seen.at)}")
    show_health(seen.health.status, seen.health.problems, now=seen.at)
    say()
    say(f"leader   {seen.leader or 'none'}")
    say(f"nodes    {', '.join(seen.nodes) or 'none'}")
    say(f"workers  {_workers(seen)}")
    if seen.pools:
        say()
        show_table(
            ("POOL", "SLOTS", "QUEUED", "WAITING", "RUNNING", "OLDEST WAIT", "DEAD", "STATE"),
            [_pool(p) for p in seen.pools],
            least=("WAITING", "DEAD"),
        )


def show_health(verdict: str, problems: list[Problem], *, now: float | None = None) -> None:
    """Print the verdict, and every problem with its remedy; with since when, if `now` is given."""
    found = counted(len(problems), "problem") if problems else "nothing is wrong"
    show_wrapped(f"{click.style(verdict.upper(), fg=_COLOURS[verdict], bold=True)}: ", found)
    for problem in problems:
        severity = click.style(padded(problem.severity, 8), fg=_COLOURS[problem.severity])
        show_wrapped(f"  {severity}  ", one_line(problem.message))
        show_wrapped("            remedy: ", one_line(remedy(problem)))
        if now is not None and problem.since is not None:
            show_wrapped("            since: ", when(problem.since, now))
        show_wrapped("            see: ", see(problem))


def pool_state(pool: PoolView) -> str:
    """Return in a few words whether a pool takes jobs."""
    if pool.change.paused:
        return f"paused: {pool.change.reason}" if pool.change.reason else "paused"
    if pool.failing:
        return f"failing: {gist(next(iter(pool.failing.values())))}"
    if pool.unplaced is not None and pool.hosting == "ready":
        return f"full: {pool.unplaced}"
    if pool.instances:
        return "serving"
    if pool.hosting == "ready":
        return "starting" if pool.wanted else "idle: no workers needed"
    return _UNHOSTED[pool.hosting]


def _workers(seen: Overview) -> str:
    off = [worker.config.name for worker in seen.workers if not worker.state.enabled]
    failing = [worker.config.name for worker in seen.workers if worker.state.enabled and is_failing(worker.state)]
    words = f", disabled: {', '.join(off)}" if off else ", all enabled" if seen.workers else ""
    return f"{len(seen.workers)}{words}" + (f", failing: {', '.join(failing)}" if failing else "")


def _pool(pool: PoolView) -> list[Cell]:
    waited = None if pool.oldest_wait_seconds is None else span(pool.oldest_wait_seconds)
    stats = pool.stats
    busy = stats.queued, stats.waiting, pool.running
    return [pool.name, pool.slots, *busy, waited, stats.dead, pool_state(pool)]
