"""The live screen, drawn with rich. It only draws what is in the `Picture`."""

import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.shop.look import News, Picture, Pool, Worker
from examples.shop.view import bar

STATES: Final = {"runs": "green", "waits": "yellow", "idle": "dim", "disabled": "bold red"}
LOUD: Final = {
    "story": "bold cyan",
    "job.lost": "bold magenta",
    "job.dead": "red",
    "worker.disabled": "bold red",
    "worker.enabled": "green",
    "pool.scaled": "blue",
}
SCALED: Final = re.compile(r"pool (?P<pool>.+): (?P<before>\d+) → (?P<after>\d+) slots: ")
FRAME_LINES: Final = 10
"""The lines of the frame, besides pools, workers and news."""


class Screen:
    """Draws each picture over the previous one; the last one stays."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._deepest: dict[str, int] = {}
        self._width = 20
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, picture: Picture) -> None:
        self._live.update(self.draw(picture), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def draw(self, picture: Picture) -> RenderableType:
        """The whole screen."""
        self._width = 20 if self._console.width >= 100 else 10
        lines = self._console.height - FRAME_LINES - len(picture.pools) - len(picture.workers)
        title = f"[bold]shiftwork[/bold] · a small shop · {picture.seconds:.1f} s"
        news = _gathered(picture.news)[-min(max(lines, 4), 14) :]
        return Group(
            _panel(self._pools(picture.pools), title),
            _panel(_workers(picture.workers), "workers"),
            _panel(_news(news), "what happens, and why"),
            Text(f" health: {picture.health}", style=_shade(picture.health), no_wrap=True, overflow="ellipsis"),
        )

    def _pools(self, pools: Iterable[Pool]) -> Table:
        table = _table("pool", "queue", "", "█ busy  ▒ free", "", "done", "dead")
        for pool in pools:
            deepest = self._deepest[pool.name] = max(self._deepest.get(pool.name, 20), pool.queued)
            queued, _, rest = bar(pool.queued, 0, deepest, width=self._width)
            busy, free, more = bar(pool.busy, pool.slots, pool.most, width=self._width)
            silent = Text(f" +{pool.silent} silent", style="bold magenta") if pool.silent else Text()
            table.add_row(
                Text(pool.name, style="bold"),
                Text(queued, style="yellow") + Text(rest, style="dim"),
                str(pool.queued),
                Text(busy, style="green") + Text(free, style="blue") + Text(more, style="dim"),
                Text(f"{pool.busy} of {pool.slots}, max {pool.most}") + silent,
                str(pool.completed),
                Text(str(pool.dead), style="red" if pool.dead else "dim"),
            )
        return table


def _workers(workers: Iterable[Worker]) -> Table:
    table = _table("worker", "mode", "state", "why")
    for worker in workers:
        state = f"runs {worker.running}×" if worker.running > 1 else worker.state
        why = Text(worker.why, style=STATES["disabled"] if worker.state == "disabled" else "")
        table.add_row(Text(worker.name, style="bold"), worker.mode, Text(state, style=STATES[worker.state]), why)
    return table


def _gathered(news: Iterable[News]) -> list[News]:
    """Combine consecutive scaling steps of one pool in the same direction."""
    gathered: list[News] = []
    for item in news:
        steps = [SCALED.match(one.text) for one in (*gathered[-1:], item)]
        if len(steps) == 2 and steps[0] and steps[1] and _same_way(steps[0], steps[1]):
            before = gathered.pop()
            text = before.text[: steps[0].end("before")] + item.text[steps[1].end("before") :]
            gathered.append(News(item.seconds, item.name, text))
        else:
            gathered.append(item)
    return gathered


def _same_way(one: re.Match[str], other: re.Match[str]) -> bool:
    ups = [int(step["after"]) > int(step["before"]) for step in (one, other)]
    return one["pool"] == other["pool"] and ups[0] == ups[1]


def _news(news: Iterable[News]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for item in news:
        table.add_row(f"{item.seconds:.1f} s", Text(item.text, style=LOUD.get(item.name, "")))
    return table


def _panel(content: RenderableType, title: str) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim")


def _shade(health: str) -> str:
    return "green" if health == "ok" else "yellow"


def _table(*columns: str) -> Table:
    table = Table(box=None, expand=True, header_style="dim", pad_edge=False)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return table
