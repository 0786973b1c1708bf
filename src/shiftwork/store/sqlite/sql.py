"""Reads the SQL files: the statements of queries.sql by name, with the marked part repeated for each row.

Names in them become numbers (`shiftwork.core.stored_numbers`).
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

from shiftwork.core.model.job_parts import NEED_BROKEN, NEED_WHATEVER
from shiftwork.core.stored_numbers import with_numbers

_OWN_NUMBERS: Final = {"NEED_WHATEVER_OR_BROKEN": NEED_WHATEVER | NEED_BROKEN}
_ROW: Final = re.compile(r"\{(\(.+?\))\}", re.DOTALL)
_END: Final = re.compile(r";\s*$", re.MULTILINE)
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def statements(text: str) -> dict[str, str]:
    """Return the statements of a file by name, without their comments."""
    parts = _NAME.split(text)
    return {name: _bare(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _bare(body: str) -> str:
    lines = (line for line in body.splitlines() if line.strip() and not line.startswith("--"))
    return "\n".join(lines).rstrip().removesuffix(";")


def read(name: str) -> str:
    """Return the text of a file beside this one, with numbers for names."""
    return with_numbers(Path(__file__).with_name(name).read_text(encoding="utf-8"), _OWN_NUMBERS)


def script(name: str) -> list[str]:
    """Return the statements of a file one by one, because `executescript` would commit first."""
    bare = "\n".join(line.split("--")[0] for line in read(name).splitlines())
    return [statement for statement in map(str.strip, _END.split(bare)) if statement]


SQL: Final = statements(read("queries.sql"))


@cache
def for_rows(name: str, n: int) -> str:
    """Return the named statement, with its part in braces repeated for each row."""
    before, row, after = _ROW.split(SQL[name])
    return before + ", ".join([row] * n) + after
