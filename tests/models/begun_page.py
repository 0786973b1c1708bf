"""The page of begun runs, as it was before the tokens: the fault that cost one job in 6,000 its run.

A process noted the number of a run before it looked whether the run was withdrawn. The node held the process still,
withdrew what had not begun, let the process go on, and read what had begun only then: see decision 104.
"""

from collections.abc import Iterator
from typing import NamedTuple

RUNS = 2


class Page(NamedTuple):
    begun: int = 0
    withdrawn: int = RUNS + 1
    """From which number on runs must not begin."""
    noted: int = 0
    """The run that the process has noted and not looked after yet."""
    ran: tuple[int, ...] = ()
    node: str = "watches"
    seen: int | None = None
    """What the node takes for the run that has begun last."""


class BegunPage:
    """A process that has two runs, and a node that takes back what has not begun."""

    def __init__(self, *, reads_late: bool) -> None:
        self._reads_late = reads_late

    def start(self) -> Page:
        return Page()

    def steps(self, page: Page) -> Iterator[tuple[str, Page]]:
        if page.node == "holds it":
            seen = None if self._reads_late else page.begun
            withdrawn = page._replace(withdrawn=page.begun + 1, seen=seen, node="holds it, has withdrawn")
            yield "node: withdraws what has not begun", withdrawn
        elif page.node == "holds it, has withdrawn":
            yield "node: lets the process go on", page._replace(node="has let go")
        elif page.node == "has let go":
            seen = page.begun if page.seen is None else page.seen
            yield "node: hands back what has not begun", page._replace(node="is done", seen=seen)
        if page.node.startswith("holds it"):
            return
        if page.noted:
            ran = (*page.ran, page.noted) if page.noted < page.withdrawn else page.ran
            yield f"process: looks whether {page.noted} is withdrawn", page._replace(noted=0, ran=ran)
        elif page.begun < RUNS:
            yield f"process: notes {page.begun + 1}", page._replace(begun=page.begun + 1, noted=page.begun + 1)

    def chances(self, page: Page) -> Iterator[tuple[str, Page]]:
        if page.node == "watches":
            yield "node: holds the process still", page._replace(node="holds it")

    def wrong(self, page: Page) -> str | None:
        twice = [run for run in page.ran if page.node == "is done" and page.seen is not None and run > page.seen]
        return f"run {twice[0]} runs here and elsewhere" if twice else None

    def undone(self, page: Page) -> str | None:
        last = RUNS if page.seen is None else page.seen
        lost = [run for run in range(1, last + 1) if run not in page.ran]
        return f"run {lost[0]} neither runs nor is handed back" if lost else None
