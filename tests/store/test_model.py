"""Random histories, against every store."""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.store.conformance.histories import Histories
from tests.store.conformance.lab import StoreFactory

QUICK: Final = settings(
    max_examples=5,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases={Phase.explicit, Phase.generate},  # making a history that fails shorter takes minutes: the soak test does it
)
MANY: Final = int(os.environ.get("SHIFTWORK_TEST_HISTORIES", "1000"))
THOROUGH: Final = settings(
    QUICK, max_examples=MANY, derandomize=False, phases={Phase.explicit, Phase.generate, Phase.shrink}
)


@pytest.mark.timeout(300)  # a history that fails is made shorter, again and again
def test_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=QUICK)  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.timeout(max(3_600, 4 * MANY))
def test_many_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=THOROUGH)  # type: ignore[arg-type]
