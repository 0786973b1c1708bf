"""A PostgreSQL URL, parsed: the options of the driver, our own, and the URL without its password.

    postgresql://user:password@host:5432/database?schema=shiftwork&pooling=transaction&sslmode=require

`schema`, `pooling` and `pool_size` are ours; all other parameters are libpq's.
"""

import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import psycopg
from msgspec import Struct
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict

from shiftwork.errors import UnknownStoreError
from shiftwork.store.postgres.server import search_path
from shiftwork.store.postgres.server.faults import shown
from shiftwork.store.postgres.server.sql import DEFAULT_SCHEMA
from shiftwork.store.url_checks import unknown_parameter

OWN_PARAMETERS: Final = ("schema", "pooling", "pool_size")
POOLING: Final = ("session", "transaction")
DRIVER_DEFAULTS: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "shiftwork",
    "client_encoding": "UTF8",  # whatever the environment says: messages and payloads may be in any language
}
"""Options of libpq unless the URL sets them. With these it notices within seconds that a server has vanished."""
LOCK_TIMEOUT: Final = "10s"
SESSION_SETTINGS: Final = {
    "lock_timeout": LOCK_TIMEOUT,
    "jit": "off",
    "default_transaction_isolation": r"read\ committed",  # a statement must see what was committed while it waited
    "extra_float_digits": "1",  # times are exact
}
"""Settings of our sessions. They override those of the role, the database and the server."""
_SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class PostgresAddress(Struct, frozen=True, kw_only=True):
    """Where the store is, and how to connect."""

    url: str
    """The URL without its password."""
    schema: str
    pooling: str
    pool_size: int
    options: dict[str, Any]
    """The options of the driver."""
    lent_options: dict[str, Any]
    """The options for connections that are lent to jobs: their SQL expects the search path of the role."""

    def lent(self) -> "PostgresAddress":
        """Return the address for connections that are lent to jobs."""
        return replace(self, options=self.lent_options)

    @property
    def place(self) -> str:
        """The URL without parameters, for messages."""
        return self.url.partition("?")[0]

    @property
    def transaction_pooling(self) -> bool:
        """Whether a proxy between us and the server pools by transaction."""
        return self.pooling == "transaction"

    @property
    def prepare_threshold(self) -> int | None:
        """After how many uses the driver prepares a statement; None for never."""
        return None if self.transaction_pooling else 3


def parse(url: str) -> PostgresAddress:
    """Parse a URL. Raises `UnknownStoreError`, which says what is wrong with it."""
    base, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    own = {name: value for name, value in pairs if name in OWN_PARAMETERS}
    theirs = [(name, value) for name, value in pairs if name not in OWN_PARAMETERS]
    pooling = own.get("pooling", "session")
    if pooling not in POOLING:
        raise UnknownStoreError(
            f"the parameter 'pooling' of postgresql:// cannot be {pooling!r}; use {' or '.join(POOLING)}"
        )
    schema = own.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UnknownStoreError(
            f"the parameter 'schema' of postgresql:// cannot be {schema!r}: use letters, digits and _, not beginning "
            "with a digit or pg_"
        )
    options = _driver_options(base, theirs, pooling)
    return PostgresAddress(
        url=_public(base, own, theirs),
        schema=schema,
        pooling=pooling,
        pool_size=_size(own.get("pool_size", "10")),
        options=options if pooling == "transaction" else _with_search_path(options),
        lent_options=options,
    )


def _size(value: str) -> int:
    if not value.isdigit() or int(value) < 1:
        raise UnknownStoreError(
            f"the parameter 'pool_size' of postgresql:// must be a positive number of connections, not {value!r}"
        )
    return int(value)


def _driver_options(base: str, theirs: list[tuple[str, str]], pooling: str) -> dict[str, Any]:
    text = base + ("?" + urlencode(theirs) if theirs else "")
    try:
        given = conninfo_to_dict(text)
    except psycopg.Error as error:
        unknown = re.search(r'invalid URI query parameter: "(.*)"', str(error))
        if unknown:
            raise unknown_parameter(
                "postgresql", unknown[1], OWN_PARAMETERS, query=urlencode(theirs, safe="@")
            ) from None
        raise UnknownStoreError(f"write postgresql://user@host:5432/database: {shown(error)}") from None
    options = {**DRIVER_DEFAULTS, **given}
    if pooling == "session" and "options" not in given:
        # A proxy that pools by transaction refuses settings of a session. Functions have settings of their own.
        options["options"] = " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items())
    return options


def _with_search_path(options: dict[str, Any]) -> dict[str, Any]:
    """Add the search path of our own connections, at the end: the last setting of a name wins."""
    return {**options, "options": f"{options['options']} -c search_path={search_path.SAFE.replace(' ', '')}"}


def _public(base: str, own: dict[str, str], theirs: list[tuple[str, str]]) -> str:
    bare = re.sub(r"(://[^:/@]*):[^@]*@", r"\1@", base, count=1)
    kept = [*((name, value) for name, value in theirs if name not in ("password", "sslpassword")), *own.items()]
    return bare + ("?" + urlencode(kept) if kept else "")
