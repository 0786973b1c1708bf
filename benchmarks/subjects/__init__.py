"""What is measured. Each module is imported only in the process that measures it."""

import importlib
from typing import Final

from benchmarks.plan import RUN, STORES
from benchmarks.subjects.subject import Subject

HOMES: Final = {
    ("shiftwork", "sqlite"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    ("shiftwork", "redis"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    ("shiftwork", "postgresql"): ("benchmarks.subjects.shiftwork", "Shiftwork"),
    **{
        (name, store): ("benchmarks.subjects.flows", kind)
        for name, kind in {
            "chains": "Chains",
            "fan-out": "FanOut",
            "fan-in": "FanIn",
            "diamonds": "Diamonds",
            "durable": "Durable",
        }.items()
        for store in STORES
    },
    ("bare", "sqlite"): ("benchmarks.subjects.bare_sqlite", "BareSqlite"),
    ("bare", "redis"): ("benchmarks.subjects.bare_redis", "BareRedis"),
    ("bare", "postgresql"): ("benchmarks.subjects.bare_postgres", "BarePostgres"),
    ("huey", "sqlite"): ("benchmarks.subjects.huey", "OnSqlite"),
    ("huey", "redis"): ("benchmarks.subjects.huey", "OnRedis"),
    ("huey", "postgresql"): ("benchmarks.subjects.huey", "OnPostgres"),
    ("taskiq", "redis"): ("benchmarks.subjects.taskiq", "OnStream"),
    **{("flexiq", store): ("benchmarks.subjects.flexiq", "OnFlexiQ") for store in STORES},
    ("pgqueuer", "postgresql"): ("benchmarks.subjects.pgqueuer", "OnPgQueuer"),
}
NODE_APP: Final = "benchmarks.subjects.node:app"


def exists(name: str, store: str) -> bool:
    """Whether this subject can use this store."""
    return (_family(name), store) in HOMES


def subject(name: str, url: str, *, seconds: float = 0.0, workers: int = 1, spread: bool = False) -> Subject:
    """The subject with this name, on the store with this URL, whose jobs wait this long.

    It has one worker, or many: then its jobs are those of one of them, or are spread over all.

    `bare+` also does an engine's work. `run` is shiftwork as a client: `benchmarks.serving` starts its node.
    """
    module, kind = HOMES[_family(name), url.partition(":")[0]]
    many = {"workers": workers, "spread": spread} if workers > 1 else {}
    made: Subject = getattr(importlib.import_module(module), kind)(url, seconds=seconds, **many)
    made.engine_work = name.endswith("+")
    return made


def _family(name: str) -> str:
    return "shiftwork" if name == RUN else name.removesuffix("+")
