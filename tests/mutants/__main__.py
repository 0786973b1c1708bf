"""`make mutants`: break the package in a copy, and see that the tests notice.

`make mutants` runs the breakages that have a name, and `ARGS="--only rank"` those whose name or file has this text.
`ARGS="--random 300 --seed 7"` draws some: the seed and the source decide which. A run that was stopped goes on where it
was. `ARGS="--table"` writes what killed the named ones into the documentation.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from tests.mutants import coverage_map, judgements, named_run, random_mutants
from tests.mutants.journal import Journal
from tests.mutants.mutant import Mutant
from tests.mutants.sites import Site, draw
from tests.mutants.trial import MOST_SECONDS, Bench, Interrupted
from tests.polling import wait_until

BUILD: Final = coverage_map.CHECKOUT / "build/mutants"
WAIT_SECONDS: Final = 2.0
WEEK: Final = 7 * 86_400.0

T = TypeVar("T")
R = TypeVar("R")


def main() -> int:
    """Run what was asked for. Returns 1 if a mutant is alive."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only those whose name or file has this text")
    parser.add_argument("--random", type=int, metavar="N", help="draw N breakages instead of running the named ones")
    parser.add_argument("--seed", type=int, default=1, help="what decides which are drawn")
    parser.add_argument(
        "--again", action="store_true", help="try again what was tried before: survivors, and named ones"
    )
    parser.add_argument("--list", action="store_true", help="print what would be tried, and end")
    parser.add_argument("--table", action="store_true", help="write the table of the named ones into the documentation")
    parser.add_argument("--record", action="store_true", help="find out again what tests run that failed meanwhile")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="how long the tests of one may take in all")
    parser.add_argument("--processes", type=int, default=2, help="how many are tried at a time")
    parser.add_argument("--unless", type=Path, metavar="FILE", help="pause while this file exists")
    given = parser.parse_args()
    os.nice(10)
    if given.table:
        named_run.write_table(Journal(BUILD / "named.jsonl", named_run.TriedNamed).read())
        return 0
    if given.random is not None:
        return _random(given)
    return _named(given)


def _random(given: argparse.Namespace) -> int:
    sites = [site for site in draw(given.random, given.seed) if given.only in site.file]
    if given.list:
        say("\n\n".join(random_mutants.diff(site) for site in sites))
        return 0
    coverage_map.record(given.processes, failed_too=given.record)
    known, judged = coverage_map.load(), judgements.judgements()
    equivalent, harmless = judgements.reasons(judged.equivalent), judgements.reasons(judged.harmless)
    journal = Journal(BUILD / f"random-{given.seed}.jsonl", random_mutants.Tried)
    before = {tried.key: tried for tried in journal.read()}

    def try_one(site: Site, bench: Bench) -> random_mutants.Tried:
        was, becomes = random_mutants.changed_lines(site)
        there = before.get((site.file, was, becomes, site.line))
        is_equivalent = (site.file, was, becomes) in equivalent
        if there is not None and (there.verdict == "killed" or not (given.again or is_equivalent)):
            return there
        tried = random_mutants.try_site(site, bench, known, equivalent)
        journal.add(tried)
        return tried

    tried = _all(sites, try_one, lambda one: f"{one.verdict}: {one.file}:{one.line} {one.becomes}", given)
    say(random_mutants.summary(tried, harmless))
    return int(any(one.verdict in {"survived", "unreached"} for one in tried))


def _named(given: argparse.Namespace) -> int:
    wanted = [one for one in named_run.everything() if given.only in one.name or given.only in one.file]
    if given.list:
        say("\n".join(f"{one.file}: {one.name}" for one in wanted))
        return 0
    journal = Journal(BUILD / "named.jsonl", named_run.TriedNamed)

    before = {(tried.file, tried.name): tried for tried in journal.read()}

    def try_one(mutant: Mutant, bench: Bench) -> named_run.TriedNamed:
        there = before.get((mutant.file, mutant.name))
        if there is not None and named_run.is_done(mutant, there) and not given.again:
            return there
        tried = named_run.try_mutant(mutant, bench)
        journal.add(tried)
        return tried

    tried = _all(wanted, try_one, lambda one: f"{one.verdict}: {one.name} ({one.file})", given)
    alive = [one for one in tried if one.verdict != "killed"]
    say("\n".join(f"ALIVE: {one.name} ({one.file}): {one.by}" for one in alive))
    say(f"{len(tried) - len(alive)} of {len(tried)} killed")
    return int(bool(alive))


def _all(
    mutants: Sequence[T], try_one: Callable[[T, Bench], R], words: Callable[[R], str], given: argparse.Namespace
) -> list[R]:
    """Try all, a few at a time, each in a copy of its own, with a line for each."""
    benches: SimpleQueue[Bench] = SimpleQueue()
    copies = BUILD / f"copies-{os.getpid()}"
    for n in range(given.processes):
        benches.put(
            Bench(
                copies / str(n),
                most_seconds=given.seconds,
                is_needed=lambda: given.unless is not None and given.unless.exists(),
            )
        )
    began, done = time.monotonic(), 0

    def at_a_bench(mutant: T) -> R:
        nonlocal done
        bench = benches.get()
        try:
            result = _undisturbed(lambda: try_one(mutant, bench), given.unless)
        finally:
            benches.put(bench)
        done += 1
        say(f"{done}/{len(mutants)}, {time.monotonic() - began:.0f} s  {words(result)}")
        return result

    try:
        with ThreadPoolExecutor(given.processes) as pool:
            return list(pool.map(at_a_bench, mutants))
    finally:
        shutil.rmtree(copies, ignore_errors=True)


def _undisturbed(trial: Callable[[], R], unless: Path | None) -> R:
    """Return the result of a trial, which begins again after each interruption."""
    while True:
        wait_until(lambda: unless is None or not unless.exists(), within=WEEK, every=WAIT_SECONDS)
        with suppress(Interrupted):
            return trial()


def say(text: str) -> None:
    """Print a line at once."""
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
