"""The live screen, drawn with rich. It only draws what is in the `Picture`."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.company.day import Day
from examples.company.look import News, Picture, Worker
from examples.company.view import PILE, bar, gathered

STATES: Final = {"runs": "green", "waits": "yellow", "idle": "dim", "disabled": "bold red"}
LOUD: Final = {
    "story": "bold cyan",
    "job.lost": "bold magenta",
    "job.dead": "red",
    "worker.disabled": "bold red",
    "worker.enabled": "green",
    "breaker.opened": "bold red",
    "breaker.closed": "green",
    "pool.scaled": "blue",
    "health.problem": "yellow",
    "health.recovered": "green",
}
LEGEND: Final = f"waiting: full at {PILE} · slots: █ busy ▒ free · not started"
FRAME_LINES: Final = 11
"""The lines of the frame, besides pools, workers and news."""
WIDE_ENOUGH: Final = 100


class Screen:
    """Draws each picture over the previous one; the last one stays."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, picture: Picture) -> None:
        self._live.update(self.draw(picture), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def draw(self, picture: Picture) -> RenderableType:
        """The whole screen."""
        workers = [worker for worker in picture.workers if worker.state != "idle"]
        lines = self._console.height - FRAME_LINES - len(picture.pools) - len(workers)
        title = f"[bold]shiftwork[/bold] · the company's day · [bold]{picture.day.clock(picture.seconds)}[/bold]"
        news = gathered(picture.news)[-min(max(lines, 3), 14) :]
        health = "; ".join(picture.problems) or "ok"
        return Group(
            _panel(self._pools(picture), title, LEGEND),
            _panel(_workers(workers), "workers that run or wait"),
            _panel(_news(picture.day, news), "what happens, and why"),
            Text(f" health: {health}", style=_shade(health), no_wrap=True, overflow="ellipsis"),
        )

    def _pools(self, picture: Picture) -> Table:
        width = 20 if self._console.width >= WIDE_ENOUGH else 10
        table = _table("pool", "waiting", "", "slots", "", "done", "dead")
        rows = [
            (pool.name, pool.queued, pool.busy, pool.slots, pool.most, pool.completed, pool.dead)
            for pool in picture.pools
        ]
        total = ("in all", picture.queued, picture.busy, picture.slots, picture.most, picture.completed, None)
        for name, queued, busy, slots, most, completed, dead in (*rows, total):
            full, _, rest = bar(queued, 0, PILE, width=width)
            used, free, more = bar(busy, slots, most, width=width)
            table.add_row(
                Text(name, style="bold"),
                Text(full, style="yellow") + Text(rest, style="dim"),
                f"{queued:,}",
                Text(used, style="green") + Text(free, style="blue") + Text(more, style="dim"),
                f"{busy} of {slots}, max {most}",
                f"{completed:,}",
                Text(str(dead or ""), style="red"),
            )
        return table


def _workers(workers: Iterable[Worker]) -> Table:
    table = _table("worker", "mode", "state", "why")
    for worker in workers:
        state = f"runs {worker.running}×" if worker.running > 1 else worker.state
        why = Text(worker.why, style=STATES["disabled"] if worker.state == "disabled" else "")
        table.add_row(Text(worker.name, style="bold"), worker.mode, Text(state, style=STATES[worker.state]), why)
    return table


def _news(day: Day, news: Iterable[News]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for item in news:
        table.add_row(day.clock(item.seconds), Text(item.text, style=LOUD.get(item.name, "")))
    return table


def _panel(content: RenderableType, title: str, legend: str | None = None) -> Panel:
    return Panel(content, title=title, title_align="left", subtitle=legend, subtitle_align="right", border_style="dim")


def _shade(health: str) -> str:
    return "green" if health == "ok" else "yellow"


def _table(*columns: str) -> Table:
    table = Table(box=None, expand=True, header_style="dim", pad_edge=False)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return table
