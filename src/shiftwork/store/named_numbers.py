"""Replaces names by numbers in SQL and Lua when their text is loaded: `STATUS_DEAD` becomes 6.

The names and numbers of core's rules are `shiftwork.core.stored_numbers`. A store adds its own, such as flags and the
order of columns. A text that is hashed is hashed with its numbers, so that a new name makes no new version.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shiftwork.core.stored_numbers import STORED_NUMBERS

_NAME: Final = re.compile(r"\b(?:STATUS|PRIORITY|FLAG|COLUMN|NEED|VERDICT|LIMIT|SECONDS|SLOT|STEP)_[A-Z_]+\b")
_NO_MORE: Final[Mapping[str, int]] = MappingProxyType({})


def with_numbers(text: str, more: Mapping[str, int] = _NO_MORE) -> str:
    """Return SQL or Lua with a number for each name, of which a store adds `more`. An unknown name is a KeyError."""
    numbers = STORED_NUMBERS | dict(more)
    return _NAME.sub(lambda found: str(numbers[found[0]]), text)
