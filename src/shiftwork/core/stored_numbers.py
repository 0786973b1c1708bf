"""The numbers that SQL and Lua share with core: statuses, priorities, verdicts, kinds of needs, limits.

`with_numbers` puts them in place of their names when a text is loaded (`STATUS_DEAD` becomes 6), so no SQL and no Lua
spells them out. Numbers that only one store has, such as its flags, are not here but in that store. A text that is
hashed is hashed with its numbers, so that a new name makes no new version.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_changes import VERDICTS
from shiftwork.core.model.job_parts import NEED_ALONE, NEED_BROKEN, NEED_WHATEVER
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobPriority
from shiftwork.core.values.job_limits import FIRST_ATTEMPTS, LAST_ATTEMPTS, MOST_ATTEMPTS
from shiftwork.core.workers.admission import JUST_STARTED_SECONDS
from shiftwork.core.workers.breaker import UNTIL_CLOSED

STORED_NUMBERS: Final[dict[str, int]] = {
    **{f"STATUS_{status.name}": number for number, status in enumerate(STATUSES)},
    **{f"PRIORITY_{priority.name}": priority.value for priority in JobPriority},
    **{f"VERDICT_{verdict.upper()}": number for verdict, number in VERDICTS.items()},
    "NEED_WHATEVER": NEED_WHATEVER,
    "NEED_ALONE": NEED_ALONE,
    "NEED_BROKEN": NEED_BROKEN,
    "LIMIT_FIRST_ATTEMPTS": FIRST_ATTEMPTS,
    "LIMIT_LAST_ATTEMPTS": LAST_ATTEMPTS,
    "LIMIT_ATTEMPTS": MOST_ATTEMPTS,
    "SECONDS_A_DAY": int(SECONDS_A_DAY),
    "SECONDS_JUST_STARTED": int(JUST_STARTED_SECONDS),
    "SECONDS_UNTIL_CLOSED": int(UNTIL_CLOSED),
}
"""By name, as SQL and Lua write it."""
_NAME: Final = re.compile(r"\b(?:STATUS|PRIORITY|FLAG|COLUMN|NEED|VERDICT|LIMIT|SECONDS|SLOT|STEP)_[A-Z_]+\b")
_NO_MORE: Final[Mapping[str, int]] = MappingProxyType({})


def with_numbers(text: str, more: Mapping[str, int] = _NO_MORE) -> str:
    """Return SQL or Lua with a number for each name; `more` are those of a store. An unknown name is a KeyError."""
    numbers = STORED_NUMBERS | dict(more)
    return _NAME.sub(lambda found: str(numbers[found[0]]), text)
