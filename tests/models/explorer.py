"""Tries every interleaving of a small model, and prints the shortest story of what goes wrong.

A model is a state that can be hashed, and what its actors can do from there. Every state that any order of steps leads
to is visited once, the nearest first, so the first violation is the one with the shortest story. An actor that is not
chosen for a while is frozen for a while: no model needs a step for that.

`Explored.walks` are the same vectors for the real code: walks that take every step of every state at least once.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")

MOST_STATES: Final = 1_000_000
"""A model with more states than this is not small."""


class Model(Protocol[S]):
    """What is shared, and what its actors do with it."""

    def start(self) -> S:
        """Return the first state."""

    def steps(self, state: S) -> Iterable[tuple[str, S]]:
        """Return each step that an actor takes from here sooner or later, in words, and the state after it."""

    def chances(self, state: S) -> Iterable[tuple[str, S]]:
        """Return likewise what may happen or not: a death, a person's wish, a lost reply."""

    def wrong(self, state: S) -> str | None:
        """Return what must never be so and is so here."""

    def undone(self, state: S) -> str | None:
        """Return what is missing here, where no actor has a step left: perhaps nothing else ever happens."""


class Explored(Generic[S]):
    """Every state of a model, or the story of what goes wrong in it. `endless`: its actors need not come to rest."""

    def __init__(self, model: Model[S], *, endless: bool = False) -> None:
        self.story: str | None = None
        """The shortest story of a violation; None if there is none."""
        self.transitions: int = 0
        self._came_from: dict[S, tuple[str, S] | None] = {}
        self._onward: dict[S, list[tuple[str, S]]] = {}
        """The steps from each state, and behind them the chances."""
        self._steps: dict[S, int] = {}
        """How many of them are steps."""
        self._explore(model)
        if not endless:
            self._look_for_circles()

    @property
    def states(self) -> int:
        return len(self._onward)

    def _explore(self, model: Model[S]) -> None:
        start = model.start()
        self._came_from[start] = None
        ahead = deque([start])
        while ahead:
            state = ahead.popleft()
            steps = list(model.steps(state))
            wrong = model.wrong(state) or (None if steps else model.undone(state))
            if wrong is not None:
                self.story = self._told(wrong, state)
                return
            self._steps[state] = len(steps)
            self._onward[state] = steps = [*steps, *model.chances(state)]
            self.transitions += len(steps)
            for step, there in steps:
                if there not in self._came_from:
                    self._came_from[there] = step, state
                    ahead.append(there)
            assert len(self._came_from) <= MOST_STATES, "this model is not small"

    def _look_for_circles(self) -> None:
        """Find a state from which the actors are busy forever: whatever they do, they never come to rest."""
        if self.story is not None:
            return
        before: dict[S, list[S]] = {state: [] for state in self._onward}
        for state, onward in self._onward.items():
            for _, there in onward[: self._steps[state]]:
                before[there].append(state)
        ahead = [state for state, steps in self._steps.items() if not steps]
        restful = set(ahead)
        while ahead:
            new = {state for state in before[ahead.pop()] if state not in restful}
            restful |= new
            ahead += new
        restless = next((state for state in self._onward if state not in restful), None)
        if restless is not None:
            self.story = self._told("the actors never come to rest", restless)

    def _told(self, wrong: str, state: S) -> str:
        steps = [step for step, _ in self._way_to(state)]
        return "\n".join([f"{wrong}:", *(f"{number:4}. {step}" for number, step in enumerate(steps, 1)), f"  {state}"])

    def _way_to(self, state: S) -> list[tuple[str, S]]:
        way: list[tuple[str, S]] = []
        came_from = self._came_from[state]
        while came_from is not None:
            step, before = came_from
            way.append((step, state))
            state, came_from = before, self._came_from[before]
        return way[::-1]

    # ── test vectors ─────────────────────────────────────────────────────────────────────────────────────────────

    def walks(self) -> Iterator[list[tuple[str, S]]]:
        """Return walks from the first state that together take every step, each with the state after every step."""
        left = {state: [*onward] for state, onward in self._onward.items()}
        for state, untaken in left.items():
            while untaken:
                walk = self._way_to(state)
                here = state
                while left[here]:
                    step, here = left[here].pop()
                    walk.append((step, here))
                yield walk


def changed(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """Return these values with another one at this place."""
    return (*values[:at], value, *values[at + 1 :])
