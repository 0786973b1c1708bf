"""Every store keeps every obligation of the contract."""

from collections.abc import Iterator

import pytest

from tests.store.conformance.checks import claim_cost
from tests.store.conformance.lab import StoreFactory
from tests.store.conformance.suite import CHECKS, Check, run_check
from tests.store.conftest import kept_by_twins
from tests.store.servers.sessions import end_kept_sessions, keep_sessions

CROWD = 15_000
"""Enough to notice a scan; the soak tests have the whole crowd."""
COUNTED = ("sqlite", "postgres")
"""Here test_sqlite_cost and test_postgres_plans count what a claim reads, so a small crowd will do."""


@pytest.fixture(scope="module", autouse=True)
def sessions() -> Iterator[None]:
    yield
    end_kept_sessions()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(
    check: Check,
    factory: StoreFactory,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = request.node.callspec.params["factory"].__name__
    if request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(claim_cost, "CROWD", claim_cost.BATCH if place.startswith(COUNTED) else CROWD)
    if place.startswith("postgres") and not kept_by_twins(check):
        keep_sessions(monkeypatch)
    await run_check(check, factory)
