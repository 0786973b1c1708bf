"""Health as what has changed: a problem is reported when it has lasted a moment, and again when it is over."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

LASTING_SECONDS: Final = 2.5
"""What is over sooner than this is not worth a line."""
LONGEST: Final = 110

Name = tuple[str, str]
"""What is wrong, and with what: ("breaker_open", "partner")."""


class Health:
    """Compares what is wrong now with what was wrong before."""

    def __init__(self) -> None:
        self._since: dict[Name, float] = {}
        self._last_seen: dict[Name, float] = {}
        self._reported: dict[Name, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that were reported and are not over, in short."""
        return tuple(_gathered(self._reported))

    def changes(self, problems: Mapping[Name, str], now: float) -> Iterator[tuple[str, str]]:
        """What is new, and what is over: the name of an event, and a text. `problems`: messages by name."""
        for name in problems:
            self._last_seen[name] = now
            self._since.setdefault(name, now)
        lasting = [name for name in problems if now - self._since[name] >= LASTING_SECONDS]
        new = [name for name in lasting if name not in self._reported]
        self._reported |= dict.fromkeys(new)
        if len(new) == 1:
            yield "health.problem", f"health: {_short(problems[new[0]])}"
        elif new:
            yield "health.problem", f"health: {_short('; '.join(_gathered(new)))}"
        ended = self._forgotten([name for name, at in self._last_seen.items() if now - at >= LASTING_SECONDS])
        if ended:
            yield "health.recovered", f"health: over: {_short('; '.join(_gathered(ended)))}"

    def _forgotten(self, names: Iterable[Name]) -> list[Name]:
        """Forget these, and return those that had been reported."""
        reported = []
        for name in names:
            del self._since[name], self._last_seen[name]
            if name in self._reported:
                del self._reported[name]
                reported.append(name)
        return reported


def _gathered(names: Iterable[Name]) -> list[str]:
    """Problems of the same kind together: "pool_starved (mail, webhooks)"."""
    subjects: dict[str, list[str]] = {}
    for code, subject in names:
        subjects.setdefault(code, []).append(subject)
    return [f"{code} ({', '.join(all_of)})" for code, all_of in subjects.items()]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
