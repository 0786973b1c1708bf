"""The named statements of queries.sql, and the columns that those statements read which return jobs."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.postgres.server import functions
from shiftwork.store.postgres.server.functions import FunctionSet
from shiftwork.store.postgres.server.search_path import with_type_schemas
from shiftwork.store.postgres.server.sql import in_schema, read, without_comments

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
WHOLE: Final = ("attempts", "unmet", "steps", "signals")
"""The fields of a job that lists leave out, in the order in which `get` and `get_whole` read them."""
_SIZES: Final = {"payload_size": "payload", "result_size": "result"}
COLUMNS: Final = tuple(name for name in JobRecord.__struct_fields__ if name not in (*WHOLE, "wait"))
"""The fields that every statement about jobs reads first; `wait` follows, in two columns."""
_MASKED: Final = {
    "expires_at": "CASE WHEN j.expires_at > 0 THEN j.expires_at END",
    **dict.fromkeys(_SIZES, "NULL::int"),
}
_CUT: Final = {name: f"substr(j.{name}, 1, {BEGINNING})" for name in _SIZES.values()}
_CUT_SIZES: Final = {
    size: f"CASE WHEN octet_length(j.{name}) > {BEGINNING} THEN octet_length(j.{name}) END"
    for size, name in _SIZES.items()
}


def _selected(masked: Mapping[str, str]) -> str:
    return ", ".join([*(masked.get(name, f"j.{name}") for name in COLUMNS), "j.wait_name", "j.wait_nth"])


SELECTED: Final = _selected(_MASKED)
"""These columns as SQL."""
BEGUN: Final = _selected(_MASKED | _CUT | _CUT_SIZES)
"""These columns, with payloads and results cut off after their beginnings."""
BROKEN_COLUMNS: Final = """\
NULL::bytea[], CASE WHEN j.unmet IS NOT NULL THEN (
    SELECT json_agg(json_build_array(n.needed, n.whatever, n.alone, n.broken) ORDER BY n.needed)::text
    FROM shiftwork.needs n WHERE n.namespace = j.namespace AND n.id = j.id AND n.broken
) END"""
"""What follows in lists: no attempts, and only the broken needs."""


def statements(schema: str) -> dict[str, str]:
    """Return the statements by name, for one schema and the current version of the functions.

    In those that find jobs, `{found}` and `{wanted}` remain: `find` puts columns and conditions there.
    """
    return _statements(schema, functions.current())


@cache
def _statements(schema: str, called: FunctionSet) -> dict[str, str]:
    text = read("queries.sql").replace("{columns}", SELECTED).replace("{broken}", BROKEN_COLUMNS)
    parts = _NAME.split(in_schema(called.versioned(with_type_schemas(text)), schema))
    return {name: without_comments(body).removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}
