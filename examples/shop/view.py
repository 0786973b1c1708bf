"""Shows the story: live on a terminal, otherwise as plain lines."""

import importlib.util
import sys
from typing import Protocol

from examples.shop.look import Picture, Pool, Worker


class View(Protocol):
    """Shows a sequence of pictures."""

    def show(self, picture: Picture) -> None:
        """Show this picture."""

    def close(self) -> None:
        """Restore the terminal."""


def open_view(*, plain: bool) -> View:
    """The live screen if there is a terminal and rich is installed; otherwise plain lines."""
    if plain or not sys.stdout.isatty() or importlib.util.find_spec("rich") is None:
        return PlainView()
    from examples.shop.screen import Screen  # noqa: PLC0415 - rich may not be installed

    return Screen()


def bar(filled: float, half: float, whole: float, *, width: int) -> tuple[str, str, str]:
    """The three parts of a bar of this width: filled, half filled, and empty."""
    scale = width / whole if whole else 0.0
    one = min(width, round(filled * scale) or int(filled > 0))
    two = min(width, max(one, round(half * scale)))
    return "█" * one, "▒" * (two - one), "·" * (width - two)


class PlainView:
    """Prints the news, and every two seconds the state of the pools."""

    EVERY_SECONDS = 2.0

    def __init__(self) -> None:
        self._shown = 0
        self._waits: dict[str, str] = {}
        self._next = 0.0
        self._health = ""

    def show(self, picture: Picture) -> None:
        for news in picture.news[self._shown :]:
            _print(news.seconds, f"{'»' if news.name == 'story' else '·'} {news.text}")
        self._shown = len(picture.news)
        for worker in picture.workers:
            self._explain(picture.seconds, worker)
        if picture.seconds >= self._next:
            self._next = picture.seconds + self.EVERY_SECONDS
            _print(picture.seconds, "  " + "   ".join(_in_short(pool) for pool in picture.pools))
        if picture.health != self._health:
            self._health = picture.health
            _print(picture.seconds, f"· health is {picture.health}")

    def close(self) -> None:
        sys.stdout.flush()

    def _explain(self, seconds: float, worker: Worker) -> None:
        why = worker.why if worker.state == "waits" else ""
        if why and why != self._waits.get(worker.name):
            _print(seconds, f"· {worker.name} waits: {why}")
        self._waits[worker.name] = why


def _in_short(pool: Pool) -> str:
    busy, free, rest = bar(pool.busy, pool.slots, pool.most, width=8)
    return (
        f"{pool.name} ▕{busy}{free}{rest}▏ {pool.busy}/{pool.slots} busy, {pool.queued} queued, {pool.completed} done"
    )


def _print(seconds: float, text: str) -> None:
    print(f"{seconds:5.1f} s {text}", flush=True)
