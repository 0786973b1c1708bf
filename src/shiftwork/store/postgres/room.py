"""Whether there is room for more. A full disk still takes small writes: PostgreSQL reuses the space of old rows."""

from typing import Final

from psycopg import errors as pg

from shiftwork.store.postgres.server import search_path
from shiftwork.store.postgres.server.session import PostgresSession

_SPILL: Final = """\
SET LOCAL work_mem = '64kB'; SET LOCAL temp_tablespaces = '';
SELECT max(s.line) FROM (
    SELECT n || repeat('x', 1000) AS line FROM generate_series(1, 1000) AS n ORDER BY 1 OFFSET 1
) AS s"""
"""Sorts a megabyte in a file, in the tablespace of the database. It leaves no rows behind, and needs no rights."""


async def try_room(session: PostgresSession) -> None:
    """Write a file as large as some jobs where the tables are, and delete it. Raises what keeps it from growing."""
    try:
        await search_path.execute(session.conn, _SPILL)
    except pg.ConfigurationLimitExceeded:
        return  # the server allows no such file (temp_file_limit), so this cannot be known
