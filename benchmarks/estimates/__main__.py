"""Simulates many queues, and shows in docs/tasks.md how good the estimates were: `make estimates`."""

import asyncio
import sys
from pathlib import Path
from typing import Final

from benchmarks.estimates.cases import case
from benchmarks.estimates.picture import draw, quartiles
from benchmarks.estimates.queues import Answer, answers

PICTURE: Final = Path(__file__).parents[2] / "docs" / "estimates.svg"
PAGE: Final = PICTURE.with_name("tasks.md")
BEGIN, END = "<!-- estimates -->", "<!-- /estimates -->"
QUEUES: Final = 120
FEWEST: Final = 8
"""Of how many answers at least quartiles are printed."""


async def all_answers(queues: int) -> list[Answer]:
    """Return the answers of so many simulated queues."""
    return [answer for seed in range(queues) for answer in await answers(case(seed))]


def rows(found: list[Answer]) -> dict[str, list[Answer]]:
    """Return all answers, and those in queues of each kind."""
    kinds = sorted({kind for one in found for kind in one.kinds})
    return {"all": found} | {kind: [one for one in found if kind in one.kinds] for kind in kinds}


def report(found: list[Answer]) -> str:
    """Return the quartiles of true/estimated as a table."""
    lines = [
        "| queues with | estimates | no estimate | lower quartile | median | upper quartile |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, some in rows(found).items():
        known = [one for one in some if one.estimated is not None]
        if len(known) >= FEWEST:
            low, median, high = quartiles(known)
            none = len(some) - len(known)
            lines.append(f"| {name} | {len(known)} | {none} | {low:.2f} | {median:.2f} | {high:.2f} |")
    return "\n".join(lines)


def written(page: str, table: str) -> str:
    """Return the page of the documentation with this table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    results = asyncio.run(all_answers(int(sys.argv[1]) if len(sys.argv) > 1 else QUEUES))
    print(report(results))
    PICTURE.write_text(draw(results))
    PAGE.write_text(written(PAGE.read_text(), report(results)))
