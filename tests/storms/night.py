"""A night in pieces: many storms and calm hours on each store, added up in a file, and drawn.

`python -m tests.storms.night --minutes 30` continues where the last call stopped. What counts is the number of jobs
and faults, so a night may be run on several days. A piece whose history is illegal stops it, and keeps the history.
"""

import argparse
import asyncio
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.storms.night_picture import draw
from tests.storms.places import STORM_PLACES
from tests.storms.storm import Sample, Storm, StormPlan, StormResult

CALM_EVERY: Final = 2
"""Every few pieces there are no faults, so that growth in a node can be seen. The number of places is odd, so each of
them has both."""

NODES: Final = 3
"""So that work goes on while one of them starts and one is frozen."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the night."""

    store: str
    seed: int
    calm: bool
    seconds: float
    processor_seconds: float = 0.0
    """What the storm, its nodes, clients and servers, and the checker took of the machine."""
    jobs: int
    runs: int
    lines: int
    faults: int
    legal: bool
    text: str
    surprises: list[str]
    skew: float = 0.0
    samples: list[Sample]
    began_at: float

    @property
    def good(self) -> bool:
        """Whether nothing is refuted, and no node printed a traceback about no job."""
        return self.legal and not self.surprises


def piece_of(result: StormResult, seconds: float, processor_seconds: float, began_at: float) -> Piece:
    """Return what is kept of a storm."""
    found = result.judgement
    return Piece(
        store=result.plan.store,
        seed=result.plan.seed,
        calm=result.plan.fronts == 0,
        seconds=seconds,
        processor_seconds=processor_seconds,
        jobs=found.jobs,
        runs=found.runs,
        lines=found.lines,
        faults=result.faults,
        legal=found.holds,
        text=found.text(),
        surprises=result.surprises,
        skew=result.skew,
        samples=result.samples,
        began_at=began_at,
    )


def pieces_in(file: Path) -> list[Piece]:
    """Return the pieces so far."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Piece) for line in file.read_bytes().splitlines()]


def summed(pieces: Sequence[Piece]) -> str:
    """Return the night so far, as a table in Markdown."""
    rows = ["| store | pieces | time | jobs | runs | faults | failed |", "|---|---|---|---|---|---|---|"]
    for store in [*STORM_PLACES, "all"]:
        own = [one for one in pieces if store in (one.store, "all")]
        hours = sum(one.seconds for one in own) / 3600
        counts = [sum(getattr(one, what) for one in own) for what in ("jobs", "runs", "faults")]
        bad = sum(not one.good for one in own)
        rows.append(f"| {store} | {len(own)} | {hours:.1f} h | " + " | ".join(f"{n:,}" for n in [*counts, bad]) + " |")
    return "\n".join(rows)


def grown(pieces: Sequence[Piece]) -> str:
    """Return what grew in the largest calm piece of each store, after a quarter of it, as a table in Markdown."""
    head = (
        "store",
        "jobs",
        "memory of a process",
        "descriptors of a process",
        "size of the store",
        "log",
        "longest wait",
    )
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for store in STORM_PLACES:
        calm = [one for one in pieces if one.store == store and one.calm and one.samples]
        if calm:
            piece = max(calm, key=lambda one: one.jobs)
            then, now = piece.samples[len(piece.samples) // 4], piece.samples[-1]
            cells = [
                store,
                f"{piece.jobs:,}",
                f"{then.memory / then.processes / 1e6:.1f} → {now.memory / now.processes / 1e6:.1f} MB",
                f"{then.descriptors / then.processes:.0f} → {now.descriptors / now.processes:.0f}",
                f"{then.store_bytes / 1e6:.0f} → {now.store_bytes / 1e6:.0f} MB",
                f"{then.log_bytes / 1e3:.0f} → {now.log_bytes / 1e3:.0f} kB",
                f"{max(one.oldest for one in piece.samples):.0f} s",
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Run pieces until the time is over. Returns 1 once a history is illegal."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms.night", description=__doc__)
    parser.add_argument("--minutes", type=float, default=480.0)
    parser.add_argument("--pieces", type=int, help="how many at most; 0 only draws")
    parser.add_argument("--piece", type=float, default=90.0, help="seconds of work in a piece")
    parser.add_argument("--bulk", type=int, default=2000, help="plain jobs that a client adds in one call")
    parser.add_argument("--fronts", type=int, default=3, help="how many faults are under way at a time")
    parser.add_argument("--folder", type=Path, default=Path("build/night"))
    parser.add_argument("--store", action="append", choices=[*STORM_PLACES])
    parser.add_argument("--picture", type=Path, help="draw the night here")
    said = parser.parse_args()
    file = said.folder / "night.jsonl"
    said.folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + said.minutes * 60
    lived = len(pieces_in(file))
    last = sys.maxsize if said.pieces is None else lived + said.pieces
    for number in range(lived, last):
        if time.monotonic() > end:
            break
        stores = said.store or [*STORM_PLACES]
        plan = StormPlan(
            stores[number % len(stores)],
            seed=1_000 + number,
            seconds=said.piece,
            nodes=NODES,
            bulk=said.bulk,
            fronts=said.fronts if number % CALM_EVERY else 0,
        )
        if not _lived(plan, said.folder / f"piece-{number}", file):
            return 1
    pieces = pieces_in(file)
    sys.stdout.write(f"{summed(pieces)}\n\n{grown(pieces)}\n")
    if said.picture:
        said.picture.write_text(draw(pieces))
    return 0


def _lived(plan: StormPlan, kept: Path, file: Path) -> bool:
    """Live through a piece, in a folder that is in memory where `TMPDIR` is; it is kept if something is wrong."""
    began, spent = time.time(), _spent()
    folder = Path(tempfile.mkdtemp(prefix="shiftwork-night-"))
    folder.chmod(0o755)  # servers run as the user nobody
    try:
        result = asyncio.run(Storm(plan, folder / "piece").rage())
        piece = piece_of(result, time.time() - began, _spent() - spent, began)
        with file.open("ab") as out:
            out.write(msgspec.json.encode(piece) + b"\n")
        sys.stdout.write(f"» {plan}: {piece.faults} faults\n{piece.text}\n" + "\n".join(piece.surprises[:2]) + "\n")
        sys.stdout.flush()
        if not piece.good:
            shutil.copytree(folder / "piece", kept, dirs_exist_ok=True)
    except BaseException:
        shutil.copytree(folder / "piece", kept, dirs_exist_ok=True)
        raise
    finally:
        shutil.rmtree(folder)
    return piece.good


def _spent() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
