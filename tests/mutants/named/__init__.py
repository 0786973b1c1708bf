"""All breakages that have a name, by what they break."""

from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.named.core_jobs import CORE_JOBS
from tests.mutants.named.core_rules import CORE_RULES
from tests.mutants.named.memory import MEMORY
from tests.mutants.named.postgres import POSTGRES
from tests.mutants.named.redis import REDIS
from tests.mutants.named.redis_flows import REDIS_FLOWS
from tests.mutants.named.runtime_claims import RUNTIME_CLAIMS
from tests.mutants.named.runtime_runs import RUNTIME_RUNS
from tests.mutants.named.sqlite import SQLITE

NAMED: Final[dict[str, tuple[Mutant, ...]]] = {
    "Rules about jobs": CORE_JOBS,
    "Rules about workers, schedules and scaling": CORE_RULES,
    "Claims, leases and outcomes": RUNTIME_CLAIMS,
    "Runs and the leader": RUNTIME_RUNS,
    "The memory store": MEMORY,
    "The SQLite store": SQLITE,
    "The Redis store": REDIS,
    "The Redis store: flows and durable functions": REDIS_FLOWS,
    "The PostgreSQL store": POSTGRES,
}
