"""SQL as text: reads the files, puts numbers, settings and the name of the schema in place, and quotes names."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shiftwork.core.stored_numbers import with_numbers
from shiftwork.core.values.job_limits import FIRST_ATTEMPTS
from shiftwork.core.workers.state import FAILED_IN_A_ROW

DEFAULT_SCHEMA: Final = "shiftwork"
STEP_KEPT, STEP_STALE, STEP_FULL = 1, 0, -1
"""What the function `keep_step` returns: the step is kept, its run is stale, or its job has no room for it."""
SQL_NUMBERS: Final = {
    "STATUS_ABSENT": 9,
    "LIMIT_AFTER_DROPPED": FIRST_ATTEMPTS + 2,
    "STEP_KEPT": STEP_KEPT,
    "STEP_STALE": STEP_STALE,
    "STEP_FULL": STEP_FULL,
    "SLOT_COUNT": 8,
    "SLOT_CLAIMS": 8,
    "SLOT_RELEASED": 16,
    "SLOT_LOOSE": 24,
}
"""Numbers that only this store has, by their names in SQL: the status of a job that is not in this store, the first
attempt that is kept after the dropped ones, what `keep_step` returns, and the slots in which `lanes` are counted."""
INDEX_PLANS: Final = """\
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan"""
"""The text of `{index_plans}`: settings of a function that make its plans use indices, whatever the statistics say."""
LOOKUP_PLANS: Final = """\
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan"""
"""The text of `{lookup_plans}`: those that a function without joins needs. Each setting costs time in every call."""
_FOLDER: Final = Path(__file__).parent.parent
"""Where queries.sql, functions/ and migrations/ are."""
_SCHEMA: Final = re.compile(r"\bshiftwork\.(?=\w|')")


def read(name: str) -> str:
    """Return the text of an SQL file of the store, ready for the server."""
    return _loaded(_FOLDER / name)


def read_folder(name: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the SQL files in a folder of the store, sorted by name."""
    for path in sorted((_FOLDER / name).glob("*.sql")):
        yield path.name, _loaded(path)


def _loaded(path: Path) -> str:
    text = with_numbers(path.read_text(encoding="utf-8"), SQL_NUMBERS)
    text = text.replace("{index_plans}", INDEX_PLANS).replace("{lookup_plans}", LOOKUP_PLANS)
    return text.replace("{failed_in_a_row}", literal(FAILED_IN_A_ROW))


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def in_schema(text: str, schema: str) -> str:
    """Return SQL, which is written for the schema "shiftwork", for this schema."""
    return text if schema == DEFAULT_SCHEMA else _SCHEMA.sub(lambda _: f"{quoted(schema)}.", text)


def without_comments(text: str) -> str:
    """Return SQL without empty lines and comment lines."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--"))
