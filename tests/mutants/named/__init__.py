"""All breakages that have a name, by what they break."""

from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.named.memory import MEMORY
from tests.mutants.named.postgres import POSTGRES
from tests.mutants.named.redis import REDIS
from tests.mutants.named.sqlite import SQLITE

NAMED: Final[dict[str, tuple[Mutant, ...]]] = {
    "The memory store": MEMORY,
    "The SQLite store": SQLITE,
    "The Redis store": REDIS,
    "The PostgreSQL store": POSTGRES,
}
