"""Replaces names by numbers in SQL and Lua when their text is loaded: `STATUS_DEAD` becomes 6.

The statuses and their order are those of `shiftwork.core.jobs.statuses`. A store adds its own names, such as flags and
the order of columns.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shiftwork.core.jobs.statuses import STATUSES

_NAME: Final = re.compile(r"\b(?:STATUS|FLAG|COLUMN|NEED|VERDICT)_[A-Z_]+\b")
_STATUSES: Final = {f"STATUS_{status.name}": number for number, status in enumerate(STATUSES)}
_NO_MORE: Final[Mapping[str, int]] = MappingProxyType({})


def with_numbers(text: str, more: Mapping[str, int] = _NO_MORE) -> str:
    """Return SQL or Lua with a number for each name. An unknown name is a KeyError."""
    numbers = _STATUSES | dict(more)
    return _NAME.sub(lambda found: str(numbers[found[0]]), text)
