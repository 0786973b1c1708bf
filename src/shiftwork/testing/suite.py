"""The whole suite: every check, and two ways to run them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from shiftwork.testing.checks import (
    adding,
    claiming,
    crowds,
    durable,
    expiring,
    finishing,
    flows,
    gates,
    keys,
    leading,
    leases,
    life,
    limits,
    many_workers,
    originals,
    people,
    positions,
    racing,
    ranks,
    records,
    restoring,
    rewriting,
    ringing,
    schedules,
    stranded,
    surveys,
)
from shiftwork.testing.lab import Lab, StoreFactory

Check = Callable[[Lab], Awaitable[None]]
TOPICS: Final = (
    life,
    adding,
    claiming,
    many_workers,
    keys,
    gates,
    finishing,
    ranks,
    originals,
    leases,
    leading,
    records,
    restoring,
    rewriting,
    people,
    surveys,
    positions,
    ringing,
    expiring,
    flows,
    stranded,
    durable,
    limits,
    schedules,
    racing,
    crowds,
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
