"""What is measured. Each module is imported only in the process that measures it."""

import importlib
from typing import Final

from benchmarks.subjects.subject import Subject

HOMES: Final = {
    ("shiftwork", "sqlite"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    ("shiftwork", "redis"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    ("shiftwork", "postgresql"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    ("bare", "sqlite"): ("benchmarks.subjects.bare_sqlite", "BareSqlite"),
    ("bare", "redis"): ("benchmarks.subjects.bare_redis", "BareRedis"),
    ("bare", "postgresql"): ("benchmarks.subjects.bare_postgres", "BarePostgres"),
    ("huey", "sqlite"): ("benchmarks.subjects.huey", "OnSqlite"),
    ("huey", "redis"): ("benchmarks.subjects.huey", "OnRedis"),
    ("huey", "postgresql"): ("benchmarks.subjects.huey", "OnPostgres"),
}


def subject(name: str, url: str) -> Subject:
    """The subject with this name, on the store with this URL. `bare+` also does an engine's work."""
    module, kind = HOMES[name.removesuffix("+"), url.partition(":")[0]]
    made: Subject = getattr(importlib.import_module(module), kind)(url)
    made.engine_work = name.endswith("+")
    return made
