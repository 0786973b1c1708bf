"""From a URL to a store that is not open yet. Drivers are imported only when used; messages never show a password.

    memory://                 a new, empty store each time
    memory://name             the store of this name in this process
    sqlite:///relative.db     a file, relative to the working directory
    sqlite:////absolute.db    a file, from the root
    redis://host:6379/0       a Redis or Valkey server; rediss:// with TLS
    redis+cluster://host:6379,host:6379
    redis+sentinel://host:26379,host:26379/service/0
    postgresql://user@host/database
                              a schema of a database; `schema`, `pooling` and `pool_size` are shiftwork's, all other
                              parameters are libpq's

Parameters follow a question mark: `sqlite:///shiftwork.db?synchronous=full`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl

from shiftwork.errors import UnknownStoreError, nearest
from shiftwork.store.protocol import Store
from shiftwork.store.url_checks import check_login, unknown_parameter


class LazyStore:
    """A store whose driver is imported when one of its attributes is used.

    A node starts many processes that run jobs. Each imports the app, which names its store, but few of them ever use
    it: the node claims for them, and writes their outcomes. Importing psycopg alone takes half as long as all the rest.
    """

    recorder = None
    """A layer that records is around this one."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._made: Store | None = None
        self._making = Lock()

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            with self._making:
                if self._made is None:
                    self._made = self._make()
        return getattr(self._made, name)


if TYPE_CHECKING:
    from shiftwork.store.memory import MemoryStore

Layer = Callable[[Store], Store]
"""Puts something around a store that is not open yet."""
SCHEMES: Final = ("memory", "sqlite", "redis", "rediss", "redis+cluster", "redis+sentinel", "postgresql")
REDIS: Final = ("redis", "rediss", "redis+cluster", "redis+sentinel")
SQLITE_OPTIONS: Final[dict[str, tuple[str, ...] | None]] = {"synchronous": ("off", "normal", "full", "extra")}
REDIS_OPTIONS: Final[dict[str, tuple[str, ...] | None]] = {
    "timeout": None,
    "keep": None,
    "tls": ("yes", "no"),
    "verify": ("yes", "no"),
    "ca_file": None,
    "cert_file": None,
    "key_file": None,
    "sentinel_password": None,
}
"""The parameters by name, each with the values it takes; None is any."""
SQLITE_FORM: Final = "write sqlite:///relative.db or sqlite:////absolute.db"

_named: "Final[dict[tuple[str, str], MemoryStore]]" = {}
_naming: Final = Lock()
_lazy: Final = Event()


def store_of(given: Any, *, namespace: str = "default", keys: Sequence[str] = (), layer: Layer | None = None) -> Store:
    """Return the store that a program names: by a URL, or itself. Raises `UnknownStoreError` for anything else."""
    if isinstance(given, str):
        return open_store(given, namespace=namespace, keys=keys, layer=layer)
    if not isinstance(given, type) and all(hasattr(given, method) for method in ("add", "claim", "finish")):
        return encrypted(given if layer is None else layer(given), keys, namespace)
    raise UnknownStoreError(f"the first argument is the store, a URL or a store, not {given!r}; {_instead(given)}")


def opening_again(
    given: Any, *, namespace: str, keys: Sequence[str], layer: Layer | None = None
) -> Callable[[], Store] | None:
    """Return a function that makes the same store in a forked process; None for one in memory, or without a URL."""
    scheme = given.partition(":")[0].lower() if isinstance(given, str) else "memory"
    if scheme == "memory":
        return None
    return partial(open_store, _from_the_root(given), namespace=namespace, keys=keys, layer=layer)


def _instead(given: Any) -> str:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return f"write tick_interval={given!r}"
    if isinstance(given, Path):
        return f"write {f'sqlite:///{given}'!r}"
    if given is None:
        return "leave it out for sqlite:///shiftwork.db, or set the variable that it comes from"
    return "for example 'sqlite:///shiftwork.db'"


def open_store(url: str, *, namespace: str = "default", keys: Sequence[str] = (), layer: Layer | None = None) -> Store:
    """Return the store that a URL names, encrypted if there are keys. Nothing is connected or created before `open`.

    `layer` puts something around the store itself, inside what encrypts.
    """
    if _lazy.is_set() and not keys and not url.startswith("memory:"):
        store = cast("Store", LazyStore(partial(_bare_store, _from_the_root(url), namespace)))
    else:
        store = _bare_store(url, namespace)
    return encrypted(store if layer is None else layer(store), keys, namespace)


def _from_the_root(url: str) -> str:
    """Return the URL of a SQLite file with its absolute path, because a job may leave the folder. Others stay."""
    scheme, mark, rest = url.partition(":///")
    path, question, query = rest.partition("?")
    if scheme.lower() != "sqlite" or not mark or path in ("", ":memory:") or path.endswith("/"):
        return url
    return f"sqlite:///{Path(path).resolve()}{question}{query}"


def import_drivers_lazily() -> None:
    """From now on, check URLs and import drivers when a store is first used: the node has checked them already."""
    _lazy.set()


def encrypted(store: Store, keys: Sequence[str], namespace: str) -> Store:
    """Return the store of a namespace, with a layer around it that encrypts if there are keys."""
    if not keys:
        return store
    from shiftwork.store.sealed.key_ring import key_ring
    from shiftwork.store.sealed.store import sealed

    return sealed(store, key_ring(keys), namespace=namespace)


def _bare_store(url: str, namespace: str) -> Store:
    scheme, mark, rest = url.partition("://")
    scheme = "postgresql" if scheme.lower() == "postgres" else scheme.lower()
    if not mark:
        raise UnknownStoreError(_no_scheme(url))
    if scheme not in SCHEMES:
        meant = nearest(scheme, SCHEMES)
        hint = " The driver is chosen for you" if "+" in scheme and "+" not in meant else ""
        raise UnknownStoreError(f"unknown store scheme {scheme!r}; {meant}{hint}")
    if scheme not in ("memory", "sqlite"):
        check_login(scheme, rest)
    place, _, query = rest.partition("?")
    options = _options(scheme, query)
    if scheme == "memory":
        return _memory(place, namespace)
    if scheme == "sqlite":
        return _sqlite(place, options, namespace)
    if scheme in REDIS:
        return _redis(scheme, place, options, namespace)
    return _postgres(f"{scheme}://{rest}", namespace)


def _memory(name: str, namespace: str) -> Store:
    from shiftwork.store.memory import MemoryStore

    if not name:
        return MemoryStore()
    with _naming:
        return _named.setdefault((name, namespace), MemoryStore(f"memory://{name}"))


def _sqlite(place: str, options: dict[str, str], namespace: str) -> Store:
    if not place.startswith("/"):
        meant = f"for the file {place!r}, write sqlite:///{place}" if place and "@" not in place else SQLITE_FORM
        raise UnknownStoreError(f"a SQLite URL has three slashes before the path, or four if it is absolute: {meant}")
    path = place[1:]
    if path == ":memory:":
        raise UnknownStoreError(
            "a SQLite database in memory cannot be shared, not even between threads; write memory://"
        )
    if not path or path.endswith("/"):
        raise UnknownStoreError(f"a SQLite URL must name a file: {SQLITE_FORM}")
    from shiftwork.store.sqlite.store import SqliteStore

    return SqliteStore(path, namespace=namespace, **options)


def _redis(scheme: str, place: str, options: dict[str, str], namespace: str) -> Store:
    try:
        from shiftwork.store.redis.server.address import parse
        from shiftwork.store.redis.store import RedisStore
    except ModuleNotFoundError as error:
        if error.name != "hiredis":
            raise
        raise UnknownStoreError(
            f"{scheme}:// needs a package that is missing: pip install 'shiftwork[redis]'"
        ) from error
    return RedisStore(parse(scheme, place, options), namespace=namespace)


def _postgres(url: str, namespace: str) -> Store:
    try:
        from shiftwork.store.postgres.store import PostgresStore
    except ImportError as error:
        raise UnknownStoreError(
            f"postgresql:// needs the package psycopg ({error}); install it with: pip install 'shiftwork[postgres]'"
        ) from None
    return PostgresStore(url, namespace=namespace)


def _options(scheme: str, query: str) -> dict[str, str]:
    known = SQLITE_OPTIONS if scheme == "sqlite" else REDIS_OPTIONS if scheme in REDIS else {}
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True) if scheme != "postgresql" else ():
        if name not in known:
            raise unknown_parameter(scheme, name, known, query=query)
        if name in options:
            raise UnknownStoreError(f"the parameter {name!r} of {scheme}:// is given twice")
        options[name] = _value(scheme, name, value, known[name])
    return options


def _value(scheme: str, name: str, value: str, known: tuple[str, ...] | None) -> str:
    if known is None:
        return value
    if value.lower() not in known:
        raise UnknownStoreError(f"the parameter {name!r} of {scheme}:// cannot be {value!r}; {_one_of(known)}")
    return value.lower()


def _one_of(values: tuple[str, ...]) -> str:
    return f"it is one of {', '.join(values)}"


def _no_scheme(url: str) -> str:
    """Return the message for something that is not a URL. Text that may hold a password is not repeated."""
    if "@" in url:
        return f"a store is given by its URL; {nearest('', SCHEMES)}"
    if not url:
        return "the store's URL is empty; write sqlite:///shiftwork.db, or memory://"
    path = url.removeprefix("sqlite:").lstrip("/") if url.startswith("sqlite:") else url
    return f"{url!r} is not a store URL; for a SQLite file, write sqlite:///{path}"
