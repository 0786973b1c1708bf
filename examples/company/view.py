"""Shows the story: live on a terminal, otherwise as plain lines."""

import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from examples.company.look import News, Picture, Pool, Worker

PILE: Final = 300
"""The number of waiting jobs at which the bar is full, in both parts of the show, so that they can be compared."""
LEGEND: Final = f"Bars: ▕███·······▏ waiting jobs, full at {PILE};  ▕██▒▒······▏ slots: █ busy, ▒ free, · not started"
SCALED: Final = re.compile(r"pool (?P<pool>.+): (?P<before>\d+) → (?P<after>\d+) slots?: ")
NUMBERS: Final = re.compile(r"[\d.]+")


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
    from examples.company.screen import Screen  # noqa: PLC0415 - rich may not be installed

    return Screen()


def bar(filled: float, half: float, whole: float, *, width: int) -> tuple[str, str, str]:
    """The three parts of a bar of this width: filled, half filled, and empty."""
    scale = width / whole if whole else 0.0
    one = min(width, round(filled * scale) or int(filled > 0))
    two = min(width, max(one, round(half * scale)))
    return "█" * one, "▒" * (two - one), "·" * (width - two)


def gathered(news: Iterable[News]) -> list[News]:
    """Combine the steps in which a pool grew or shrank, one after the other, into one."""
    combined: list[News] = []
    for item in news:
        step = SCALED.match(item.text)
        last = next((n for n, one in enumerate(combined) if step and _continued(one, step)), None)
        if step is None or last is None:
            combined.append(item)
            continue
        before = combined.pop(last)
        began = SCALED.match(before.text)
        assert began is not None
        text = before.text[: began.end("before")] + item.text[step.end("before") :]
        combined.append(News(item.seconds, item.name, text))
    return combined


def _continued(one: News, step: re.Match[str]) -> bool:
    """Whether the step goes on where this one ended, in the same direction."""
    other = SCALED.match(one.text)
    return (
        other is not None
        and other["pool"] == step["pool"]
        and _grows(other) == _grows(step)
        and other["after"] == step["before"]
    )


def _grows(step: re.Match[str]) -> bool:
    return int(step["after"]) > int(step["before"])


class PlainView:
    """Prints the story and what went wrong at once, and every hour of the day the pools and how they changed."""

    EVERY_SECONDS: Final = 2.0

    def __init__(self) -> None:
        self._shown = 0
        self._steps: list[News] = []
        self._waits: set[tuple[str, str]] = set()
        self._next = 0.0

    def show(self, picture: Picture) -> None:
        for news in picture.news[self._shown :]:
            if SCALED.match(news.text):
                self._steps.append(news)
            else:
                _print(picture, f"{'»' if news.name == 'story' else '·'} {news.text}", news.seconds)
        self._shown = len(picture.news)
        for worker in picture.workers:
            self._explain(picture, worker)
        if picture.seconds >= self._next:
            self._next = picture.seconds + max(self.EVERY_SECONDS, picture.day.at(1))
            self._sum_up(picture)

    def close(self) -> None:
        sys.stdout.flush()

    def _sum_up(self, picture: Picture) -> None:
        for pool in sorted({_step(news)["pool"] for news in self._steps}):
            for text in _change([news.text for news in self._steps if _step(news)["pool"] == pool]):
                _print(picture, f"· {text}")
        self._steps.clear()
        _print(picture, in_short(picture))

    def _explain(self, picture: Picture, worker: Worker) -> None:
        why = worker.why if worker.state == "waits" else ""
        key = (worker.name, NUMBERS.sub("", why))
        if why and key not in self._waits:  # each reason once: schedules wait for each other again and again
            self._waits.add(key)
            _print(picture, f"· {worker.name} waits: {why}")


def _step(news: News) -> re.Match[str]:
    step = SCALED.match(news.text)
    assert step is not None, "only steps are kept"
    return step


def _change(steps: list[str]) -> Iterator[str]:
    """What the steps of one pool amount to, with the reason of the last one in that direction; or nothing."""
    found = [step for step in map(SCALED.match, steps) if step is not None]
    before, after = int(found[0]["before"]), int(found[-1]["after"])
    for step in reversed(found):
        if before != after and _grows(step) == (after > before):
            slots = "slot" if after == 1 else "slots"
            yield f"pool {step['pool']}: {before} → {after} {slots}: {step.string[step.end() :]}"
            return


def in_short(picture: Picture) -> str:
    """The queues and the pools in one line."""
    queued, _, rest = bar(picture.queued, 0, PILE, width=10)
    busy, free, more = bar(picture.busy, picture.slots, picture.most, width=10)
    pools = "  ".join(_pool(pool) for pool in picture.pools)
    return (
        f"  {picture.queued:3} waiting ▕{queued}{rest}▏ {picture.slots:2} slots ▕{busy}{free}{more}▏"
        f" {picture.completed:,} done;  {pools}"
    )


def _pool(pool: Pool) -> str:
    return f"{pool.name} {pool.busy}/{pool.slots}"


def _print(picture: Picture, text: str, seconds: float | None = None) -> None:
    print(f"{picture.day.clock(picture.seconds if seconds is None else seconds)} {text}", flush=True)
