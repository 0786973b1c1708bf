"""Where the server looks up names without a schema: among its own first, and never where others may create something.

With the usual search path, a function or operator that any role has created in the schema public is called instead of
PostgreSQL's own if its parameters fit better, and then it runs with our rights. So every function that is called from
outside has a search path of its own (`functions`), and our connections begin with it (`address`). Where a proxy pools
by transaction, a statement that is more than a call of our functions sets it for its own transaction. In a transaction
of the user's, every name in a statement has its schema (`queries`).
"""

import re
from functools import cache
from typing import Any, Final

from psycopg import AsyncClientCursor, AsyncConnection

SAFE: Final = "pg_catalog, pg_temp"
"""Without pg_temp, temporary types and tables would come first."""
CLAUSE: Final = f"SET search_path = {SAFE}"
LOCAL: Final = f"SET LOCAL search_path = {SAFE}"
_TYPE: Final = re.compile(r"::(?!(?:int|integer|bigint|smallint|boolean|pg_catalog)\b)(?=\w)")
"""A cast to a type that the server looks up. `bool` is one, unlike `boolean`, which is a word of the language."""
_ARGUMENT: Final = r"\s*%s(?:::[\w.]+(?:\[\])?)+,?"
_CALL: Final = re.compile(rf'SELECT (?:[\w,.: ]+\sFROM )?(?:\w+|"\w+")\.\w+\((?:{_ARGUMENT})*\s*\)(?:::[\w.]+)?')


def with_type_schemas(text: str) -> str:
    """Return SQL in which the types of casts have their schema, apart from those that are words of the language."""
    return _TYPE.sub("::pg_catalog.", text)


@cache
def is_call(text: str) -> bool:
    """Whether a statement only calls one of our functions, so that it looks up no other name."""
    return _CALL.fullmatch(text) is not None


async def execute(conn: AsyncConnection[Any], text: str, args: Any = ()) -> "AsyncClientCursor[tuple[Any, ...]]":
    """Run a statement under a safe search path, whatever that of the session is, in one round trip.

    Not in a pipeline, and not in a transaction of the user's: the setting holds until the transaction ends.
    """
    cursor = AsyncClientCursor(conn)
    await cursor.execute(f"{LOCAL}; {text}".encode(), args)
    cursor.nextset()
    return cursor
