"""Plays episodes and judges them: by the rules of recorded histories, and by what no rule can see."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.history.judging import judge
from shiftwork.history.reader import history_of
from shiftwork.simulation.cluster import play
from shiftwork.simulation.drawing import draw
from shiftwork.simulation.episode import Episode
from shiftwork.simulation.ground.links import HANDOVER, Handover
from shiftwork.simulation.ground.sim_recorder import decoded
from shiftwork.simulation.played import Played

MOST_FOUND: Final = 5
"""How much of what one rule found is kept."""


class BrokenPromise(Struct, frozen=True):
    """Something that is wrong."""

    rule: str
    """The rule that is refuted; "surprise" for an unforeseen error, "rest" if there is no end."""
    sentence: str
    lines: tuple[str, ...] = ()
    """The lines that show it, each with its place."""


class JudgedSeed(Struct, frozen=True, kw_only=True):
    """An episode that was played and judged."""

    seed: int
    seconds: float
    """How much virtual time has passed."""
    jobs: int
    runs: int
    interrupted: int
    """How many runs began and did not end: their process died."""
    faults: int
    """How many faults met something."""
    findings: tuple[BrokenPromise, ...]


def with_faults(episode: Episode, numbers: Sequence[int] | None) -> Episode:
    """Return an episode with no faults but these, by their numbers from 1; None is all of them."""
    if numbers is None:
        return episode
    return replace(episode, faults=tuple(fault for n, fault in enumerate(episode.faults, 1) if n in numbers))


def judged(seed: int, size: str | None = None) -> JudgedSeed:
    """Play the episode of a seed, and judge it."""
    try:
        return judged_episode(draw(seed, size))[0]
    except Exception as error:  # noqa: BLE001 - the simulation itself has failed, and other seeds go on
        found = BrokenPromise("stopped", f"The simulation has stopped: {error!r}")
        return JudgedSeed(seed=seed, seconds=0.0, jobs=0, runs=0, interrupted=0, faults=0, findings=(found,))


def judged_episode(episode: Episode, handover: Handover = HANDOVER) -> tuple[JudgedSeed, Played]:
    """Play an episode, and judge it."""
    played = play(episode, handover)
    history = history_of(decoded(played.texts))
    judgement = judge(history)
    found = [BrokenPromise("surprise", text) for text in played.surprises[:MOST_FOUND]]
    for rule in judgement.rules:
        of_rule = [one for one in judgement.refutations if one.rule == rule][:MOST_FOUND]
        found += [
            BrokenPromise(rule, one.sentence, tuple(f"{at}  {_line(played, at.file, at.line)}" for at in one.lines))
            for one in of_rule
        ]
    if not played.rested:
        found.append(BrokenPromise("rest", "The system did not come to rest after the last fault."))
    verdict = JudgedSeed(
        seed=episode.seed,
        seconds=played.seconds,
        jobs=played.jobs,
        runs=judgement.runs,
        interrupted=sum(len(tenure.begun) - len(tenure.over) for _, tenure in history.tenures),
        faults=played.faults,
        findings=tuple(found),
    )
    return verdict, played


def _line(played: Played, file: str, number: int) -> str:
    return b"".join(played.texts[file]).splitlines()[number - 1].decode()


def write_history(played: Played, folder: Path) -> None:
    """Write the history of an episode: a file for each process, as `shiftwork check` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in played.texts.items():
        (folder / f"{name.replace(' ', '-')}.jsonl").write_bytes(b"".join(texts))
