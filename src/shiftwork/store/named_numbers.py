"""Replaces names by numbers in SQL and Lua when their text is loaded: `STATUS_DEAD` becomes 6.

So a number that means something is written once, in Python. The statuses, the priorities and the seconds of a day are
those of `shiftwork.core`; a store adds names of its own, such as flags and the order of columns. A text that is hashed
is hashed with its numbers, so that a name that is changed makes no new version.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shiftwork.core.jobs.statuses import STATUSES
from shiftwork.core.model.job import SECONDS_A_DAY, JobPriority

_NAME: Final = re.compile(r"\b(?:STATUS|PRIORITY|SECONDS|FLAG|COLUMN|NEED|VERDICT)_[A-Z_]+\b")
_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{f"STATUS_{status.name}": number for number, status in enumerate(STATUSES)},
        **{f"PRIORITY_{priority.name}": priority.value for priority in JobPriority},
        "SECONDS_A_DAY": int(SECONDS_A_DAY),
    }
)
_NO_MORE: Final[Mapping[str, int]] = MappingProxyType({})


def with_numbers(text: str, more: Mapping[str, int] = _NO_MORE) -> str:
    """Return SQL or Lua with a number for each name, of which a store adds `more`. An unknown name is a KeyError."""
    numbers = {**_NUMBERS, **more}
    return _NAME.sub(lambda found: str(numbers[found[0]]), text)
