"""Random histories, against every store."""

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from shiftwork.testing import StoreFactory
from shiftwork.testing.model import Histories
from tests.store.conftest import TWINS

QUICK: Final = settings(
    max_examples=25,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases={Phase.explicit, Phase.generate},  # making a history that fails shorter takes minutes: the soak test does it
)
TWIN: Final = settings(QUICK, max_examples=10)
"""For a store that runs the same code as another one, on another server."""
THOROUGH: Final = settings(
    QUICK, max_examples=3_000, derandomize=False, phases={Phase.explicit, Phase.generate, Phase.shrink}
)


@pytest.mark.timeout(300)  # a history that fails is made shorter, again and again
def test_random_histories(factory: StoreFactory, request: pytest.FixtureRequest) -> None:
    twin = any(f"[{store}]" in request.node.name for store in TWINS)
    run_state_machine_as_test(lambda: Histories(factory), settings=TWIN if twin else QUICK)  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=THOROUGH)  # type: ignore[arg-type]
