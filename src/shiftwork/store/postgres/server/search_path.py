"""The search path: in which schemas the server looks up names. Ours has no schema in which other roles may create.

With the default search path, a function or operator that another role has created in the schema public is called
instead of PostgreSQL's own if its parameters fit better, and runs with our rights. So

* our connections begin with a safe search path (`address`);
* every function that queries.sql calls sets it (`functions`);
* behind a proxy that pools by transaction, a statement that is more than a call of our functions sets it for its own
  transaction (`execute`);
* in a transaction of the user's, every name in a statement has its schema (`with_type_schemas`).
"""

import re
from functools import cache
from typing import Any, Final

from psycopg import AsyncClientCursor, AsyncConnection

SAFE: Final = "pg_catalog, pg_temp"
"""If pg_temp were left out, temporary types and tables would come first."""
CLAUSE: Final = f"SET search_path = {SAFE}"
LOCAL: Final = f"SET LOCAL search_path = {SAFE}"
_TYPE: Final = re.compile(r"::(?!(?:int|integer|bigint|smallint|boolean|pg_catalog)\b)(?=\w)")
"""A cast to a type that the server looks up by name, such as `bool`; `boolean` is a keyword."""
_ARGUMENT: Final = r"\s*%s(?:::[\w.]+(?:\[\])?)+,?"
_CALL: Final = re.compile(rf'SELECT (?:[\w,.: ]+\sFROM )?(?:\w+|"\w+")\.\w+\((?:{_ARGUMENT})*\s*\)(?:::[\w.]+)?')


def with_type_schemas(text: str) -> str:
    """Return SQL in which the types of casts have their schema, except keywords such as `boolean`."""
    return _TYPE.sub("::pg_catalog.", text)


@cache
def is_call(text: str) -> bool:
    """Return whether a statement does nothing but call one of our functions, so that it looks up no other name."""
    return _CALL.fullmatch(text) is not None


async def execute(conn: AsyncConnection[Any], text: str, args: Any = ()) -> "AsyncClientCursor[tuple[Any, ...]]":
    """Run a statement under the safe search path, in one round trip, whatever the session has set.

    The setting lasts until the transaction ends. So this is not for pipelines, nor for transactions of the user's.
    """
    cursor = AsyncClientCursor(conn)
    await cursor.execute(f"{LOCAL}; {text}".encode(), args)
    cursor.nextset()
    return cursor
