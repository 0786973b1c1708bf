"""The named statements of queries.sql, for one schema and for the current version of the functions."""

import re
from functools import cache
from typing import Final

from shiftwork.store.postgres import rows
from shiftwork.store.postgres.server import functions
from shiftwork.store.postgres.server.functions import FunctionSet
from shiftwork.store.postgres.server.search_path import with_type_schemas
from shiftwork.store.postgres.sql import in_schema, read, without_comments

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def statements(schema: str) -> dict[str, str]:
    """Return the statements by name, without comments. Those that find jobs have a place for more conditions."""
    return _statements(schema, functions.current())


@cache
def _statements(schema: str, called: FunctionSet) -> dict[str, str]:
    text = read("queries.sql").replace("{columns}", rows.SELECTED).replace("{broken}", rows.BROKEN)
    parts = _NAME.split(in_schema(called.versioned(with_type_schemas(text)), schema))
    return {name: without_comments(body).removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}
