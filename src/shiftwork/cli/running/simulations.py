"""`shiftwork simulate`: whole clusters in virtual time, with faults, from seeds; judged by the rules of histories."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from shiftwork.cli.terminal.output import json_option, say, show_json, show_wrapped
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.core.words import counted

if TYPE_CHECKING:
    from shiftwork.simulation.episode import Episode
    from shiftwork.simulation.judged import BrokenPromise, JudgedSeed

SEEDS: Final = 200
SEEDS_SHOWN: Final = 10
"""How many failing seeds are shown in full."""
INTERRUPTED: Final = 130
_LONGEST_LINE: Final = 300
_HELP: Final = """\
Simulate clusters in which things go wrong, and check each against the promises of shiftwork.

Each seed decides everything: the nodes, pools and workers, what clients do, what fails and when, how long each call
takes and which process goes on next. The app, the runtime and the core are the real ones; time, processes, the network
and the store's failures are simulated. docs/proof.md says what it covers and what it leaves out. A cluster-hour is an
hour of virtual time in which a cluster is simulated.

\b
Exit codes:
  0  no seed has broken a promise
  1  a seed has; the command that plays it again is printed
  130  interrupted by Ctrl-C, and no seed so far has; what was played is printed

\b
Examples:
  shiftwork simulate --seeds 1000
  shiftwork simulate --minutes 10
  shiftwork simulate --seed 148 --history history
  shiftwork simulate --seed 148 --minimise
"""


def _numbers(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        return [int(word) for word in value.split(",") if word]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers, such as 2,5") from None


@click.command(help=_HELP)
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help=f"Play this many seeds.  [default: {SEEDS}]")
@click.option("--first", type=int, metavar="SEED", help="The first of them.  [default: 0; of --minutes, the time]")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Play fresh seeds for this long.")
@click.option("--seed", type=int, help="Play this seed alone, and show what happens in it.")
@click.option("--faults", callback=_numbers, metavar="N,N", help="With --seed: only these of its faults.")
@click.option("--size", type=click.Choice(["small", "large", "long"]), help="How large all episodes are.")
@click.option("--jobs", type=click.IntRange(min=1), help="How many processes play.  [default: one for each core]")
@click.option("--minimise", is_flag=True, help="Look for the fewest faults with which a failing seed still fails.")
@click.option(
    "--history",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --seed: write its history, for shiftwork check.",
)
@json_option
@click.pass_context
def simulate(
    ctx: click.Context,
    *,
    seeds: int | None,
    first: int | None,
    minutes: float | None,
    seed: int | None,
    faults: list[int] | None,
    size: str | None,
    jobs: int | None,
    minimise: bool,
    history: Path | None,
    as_json: bool,
) -> None:
    """Exit with 0 if no seed has broken a promise."""
    if seed is None and (faults is not None or history is not None):
        raise click.UsageError("--faults and --history go with --seed")
    if seed is not None:
        one = _alone(seed, size, faults, history, as_json=as_json)
        failed, ended = [one] if one.findings else [], True
    else:
        failed, ended = _many(seeds, first, minutes, size, jobs or os.cpu_count() or 1, as_json=as_json)
    if minimise and faults is None:
        for one in failed[:SEEDS_SHOWN]:
            _minimise(one.seed, size)
    ctx.exit(1 if failed else 0 if ended else INTERRUPTED)


# ── one seed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _alone(
    seed: int, size: str | None, faults: list[int] | None, history: Path | None, *, as_json: bool
) -> "JudgedSeed":
    from shiftwork.simulation.drawing import draw
    from shiftwork.simulation.judged import judged_episode, with_faults, write_history

    episode = draw(seed, size)
    verdict, played = judged_episode(with_faults(episode, faults))
    if history is not None:
        write_history(played, history)
    if as_json:
        show_json(verdict)
        return verdict
    _show_episode(episode, faults)
    runs = f"{counted(verdict.runs, 'run')} ({verdict.interrupted:,} interrupted)"
    say(f"{verdict.seconds:,.0f} s: {counted(verdict.jobs, 'job')}, {runs}, {counted(verdict.faults, 'fault')}")
    _show_findings(verdict.findings)
    return verdict


def _show_episode(episode: "Episode", faults: Sequence[int] | None) -> None:
    nodes = counted(len(episode.nodes), "node")
    say(f"seed {episode.seed}: {nodes} on {counted(len(episode.machines), 'machine')}, {episode.seconds:g} s of faults")
    for pool in episode.pools:
        say(f"  pool {pool.name}: {_options(pool.options)}")
    for worker in episode.workers:
        say(f"  worker {worker.name}, a {worker.act}: {_options(worker.options)}")
    for number, fault in enumerate(episode.faults, 1):
        if faults is None or number in faults:
            say(f"  fault {number}: {_fault(fault)}")


def _options(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _fault(fault: Any) -> str:
    more = f" for {fault.seconds:g} s" if fault.seconds else ""
    more += f", {counted(fault.callbacks, 'callback')} later" if fault.callbacks else ""
    return f"{fault.at:.3f} s: {fault.kind} {fault.target} {fault.what}".rstrip() + more


def _show_findings(findings: "Sequence[BrokenPromise]") -> None:
    for finding in findings:
        show_wrapped(f"{finding.rule}: ", finding.sentence)
        for line in finding.lines:
            say(f"  {line[:_LONGEST_LINE]}")
    if not findings:
        say("legal: no rule is refuted")


def _minimise(seed: int, size: str | None) -> None:
    from shiftwork.simulation.campaign import smallest

    bar = ProgressBar(terminal=True, noun="episode") if sys.stderr.isatty() else None
    try:
        episode, numbers = smallest(seed, size, lambda n: bar.show(f"minimising {seed}", n, 0) if bar else None)
    finally:
        if bar:
            bar.end()
    said = "no fault is" if not numbers else f"{len(numbers)} of {counted(len(episode.faults), 'fault')}"
    said += "" if not numbers else " is" if len(numbers) == 1 else " are"
    say(f"seed {seed}: {said} enough:")
    for number in numbers:
        say(f"  fault {number}: {_fault(episode.faults[number - 1])}")
    say(f"  {_command(seed, size)} --faults {','.join(map(str, numbers)) or '0'}")


def _command(seed: int, size: str | None) -> str:
    return f"shiftwork simulate --seed {seed}" + ("" if size is None else f" --size {size}")


# ── many seeds ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _many(
    number: int | None, first: int | None, minutes: float | None, size: str | None, jobs: int, *, as_json: bool
) -> "tuple[list[JudgedSeed], bool]":
    """Play seeds; return those that have broken a promise, and False if that was interrupted."""
    from shiftwork.simulation.campaign import PlayedSeeds, judged_seeds

    bar = ProgressBar(terminal=True, noun="seed") if sys.stderr.isatty() else None
    began, tally, failed, ended = time.monotonic(), PlayedSeeds(), list["JudgedSeed"](), True
    total = number or (SEEDS if minutes is None else 0)
    first = int(time.time()) if first is None and minutes is not None else first or 0
    try:
        for one in judged_seeds(_chosen(total, first, minutes, began), jobs=jobs, size=size):
            tally.add(one)
            if bar:
                bar.show("simulating", tally.seeds, total)
            if one.findings:
                failed.append(one)
                if not as_json and len(failed) <= SEEDS_SHOWN:
                    _show_failed(one, size, bar)
    except KeyboardInterrupt:
        ended = False
    finally:
        if bar:
            bar.end()
    took = time.monotonic() - began
    if as_json:
        show_json(
            {
                "first": first,
                "seeds": tally.seeds,
                "virtual_seconds": tally.seconds,
                "seconds": took,
                "jobs": tally.jobs,
                "runs": tally.runs,
                "interrupted": tally.interrupted,
                "faults": tally.faults,
                "failed": failed,
            }
        )
        return failed, ended
    say(f"from seed {first}, {tally.text(took)}")
    if not failed:
        say("legal: no seed has broken a promise")
    else:
        say(f"{counted(len(failed), 'seed')} broke a promise: {', '.join(str(one.seed) for one in failed)}")
    return failed, ended


def _show_failed(one: "JudgedSeed", size: str | None, bar: ProgressBar | None) -> None:
    """Show at once what a seed has broken, with the command that plays it again."""
    if bar:
        bar.end()
    say(f"seed {one.seed} broke a promise; to play it again: {_command(one.seed, size)}")
    _show_findings(one.findings)


def _chosen(total: int, first: int, minutes: float | None, began: float) -> Iterator[int]:
    """Yield the seeds to play: so many, or as many as there is time for."""
    for seed in count(first):
        if total and seed - first >= total:
            return
        if minutes is not None and time.monotonic() - began >= 60 * minutes:
            return
        yield seed
