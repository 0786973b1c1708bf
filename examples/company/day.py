"""The company's day: 200,000 jobs of five kinds, most of them between 10 AM and 2 PM, and how it is compressed.

A compressed day has as many jobs a second as two cores can do for real, so a shorter day has fewer jobs. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

HOURS: Final = 24
BY_HOUR: Final = (
    *(1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 2_000, 4_000, 7_000, 10_000),
    *(27_500, 27_500, 27_500, 27_500),
    *(10_000, 9_000, 9_000, 8_000, 7_000, 6_000, 5_000, 3_500, 2_000, 1_500),
)
"""How many jobs the company has in each hour of a real day."""
PEAK_HOURS: Final = (10, 14)
NIGHT_ENDS: Final = 6
PEAK_PER_SECOND: Final = 44.0
"""How many jobs come in each second of the compressed peak."""

BY_DAY: Final = {"send_email": 0.40, "call_webhook": 0.32, "resize_image": 0.14, "write_pdf": 0.07, "export_rows": 0.07}
AT_NIGHT: Final = {"send_email": 0.55, "call_webhook": 0.45}
"""The share of each kind of jobs."""
KINDS: Final = tuple(BY_DAY)
RUSH: Final = {"send_email": 30, "call_webhook": 24, "resize_image": 8, "write_pdf": 8, "export_rows": 8}
"""What comes all at once at 10 AM, when the shops open."""
CATALOGUE_HOUR: Final = 11.5
CATALOGUE_PER_SECOND: Final = 1.0
"""How many pictures a customer uploads at once at this hour, for each second of the day."""
SMALLEST_CATALOGUE: Final = 24


@dataclass(frozen=True)
class Day:
    """A day compressed to some seconds."""

    seconds: float

    def at(self, hour: float) -> float:
        """How many seconds after midnight an hour of the day is."""
        return hour / HOURS * self.seconds

    def hour(self, seconds: float) -> float:
        """Which hour of the day it is, so many seconds after midnight."""
        return seconds / self.seconds * HOURS

    def clock(self, seconds: float) -> str:
        """The time of day, as on a clock. After midnight the day's last jobs are done: it stays 24:00."""
        minutes = round(min(max(self.hour(seconds), 0.0), HOURS) * 60)
        return f"{minutes // 60:02}:{minutes % 60:02}"

    def jobs(self, kind: str) -> list[float]:
        """How many jobs of this kind come in each hour, on average."""
        each = PEAK_PER_SECOND * self.seconds / HOURS / max(BY_HOUR)
        return [n * each * _shares(hour).get(kind, 0.0) for hour, n in enumerate(BY_HOUR)]

    def rushes(self) -> list[tuple[float, dict[str, int]]]:
        """What comes all at once, on top of the usual jobs: at which hour, and how many of which kind."""
        pictures = max(SMALLEST_CATALOGUE, round(CATALOGUE_PER_SECOND * self.seconds))
        return [(PEAK_HOURS[0], RUSH), (CATALOGUE_HOUR, {"resize_image": pictures, "send_email": 10})]

    def scale(self) -> float:
        """How many jobs of the real day one job of this day stands for."""
        return sum(BY_HOUR) / sum(sum(self.jobs(kind)) for kind in KINDS)

    def arrivals(self, first: float = 0, last: float = HOURS, *, seed: int = 7) -> list[tuple[float, str]]:
        """When jobs come between two hours, and of which kind: (seconds after midnight, kind), in order."""
        dice = Random(seed)
        drawn = [arrival for kind in KINDS for arrival in self._drawn(kind, dice)]
        return sorted((at, kind) for at, kind in drawn if self.at(first) <= at < self.at(last))

    def _drawn(self, kind: str, dice: Random) -> list[tuple[float, str]]:
        owed, drawn = dice.random(), []
        for hour, n in enumerate(self.jobs(kind)):
            owed += n
            drawn += [(self.at(hour + dice.random()), kind) for _ in range(int(owed))]
            owed -= int(owed)
        return drawn


def _shares(hour: int) -> dict[str, float]:
    return AT_NIGHT if hour < NIGHT_ENDS else BY_DAY


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 if there are none."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0
