"""The whole conformance suite: every check, and two ways to run them.

`tests/store/test_conformance.py` runs it against the stores of this repository (`STORES` in
`tests/store/conftest.py`); docs/testing.md says how the author of another store runs it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from tests.store.conformance.checks import (
    adding,
    bells,
    claim_cost,
    claiming,
    concurrency_keys,
    core_rules,
    docs_and_events,
    durable,
    expiring,
    explaining,
    finding_and_amending,
    finishing,
    flows,
    gates,
    job_limits,
    leading,
    leases,
    opening_and_closing,
    racing,
    ranks,
    restoring,
    rewriting,
    schedules,
    stranded,
)
from tests.store.conformance.lab import Lab, StoreFactory

Check = Callable[[Lab], Awaitable[None]]
TOPICS: Final = (
    opening_and_closing,
    adding,
    claiming,
    concurrency_keys,
    gates,
    finishing,
    ranks,
    core_rules,
    leases,
    leading,
    docs_and_events,
    restoring,
    rewriting,
    finding_and_amending,
    explaining,
    bells,
    expiring,
    flows,
    stranded,
    durable,
    job_limits,
    schedules,
    racing,
    claim_cost,
)
CHECKS: Final[list[Check]] = [
    value for topic in TOPICS for name, value in vars(topic).items() if name.startswith("check_")
]
"""Every check. Each is one obligation: it gets a `Lab`, and raises AssertionError if the store breaks the
obligation."""
LONGEST: Final = 120.0
"""How many seconds a check may take."""


async def run_check(check: Check, factory: StoreFactory) -> None:
    """Run one check against a fresh store."""
    async with asyncio.timeout(LONGEST), Lab(factory) as lab:
        await check(lab)


async def check_store(factory: StoreFactory) -> None:
    """Run every check. Raises one ExceptionGroup that names each check that failed."""
    failures: dict[str, Exception] = {}
    for check in CHECKS:
        name = check.__name__
        try:
            await run_check(check, factory)
        except Exception as error:  # noqa: BLE001 - the other checks are worth running, whatever it is
            error.add_note(name)
            failures[name] = error
    if failures:
        names = ", ".join(failures)
        raise ExceptionGroup(f"{len(failures)} of {len(CHECKS)} checks failed: {names}", [*failures.values()])
