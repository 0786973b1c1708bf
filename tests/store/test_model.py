"""Random histories, against every store."""

from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from windlass.testing import StoreFactory
from windlass.testing.model import Histories

QUICK: Final = settings(
    max_examples=40,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=set(Phase) - {Phase.explain},  # it would take minutes to say what the steps of a short history say
)
THOROUGH: Final = settings(QUICK, max_examples=3_000, derandomize=False)


@pytest.mark.timeout(300)  # a history that fails is made shorter, again and again
def test_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=QUICK)  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_random_histories(factory: StoreFactory) -> None:
    run_state_machine_as_test(lambda: Histories(factory), settings=THOROUGH)  # type: ignore[arg-type]
