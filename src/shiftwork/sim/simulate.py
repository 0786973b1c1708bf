"""A day in virtual time: simulated queues and slots under the real planning rules of `core.plan`."""

from collections.abc import Callable

from shiftwork.sim.scenario import Scenario
from shiftwork.sim.simulated import Simulated

Report = Callable[[float], None]
"""Called now and then with the share of the scenario that has been simulated, from 0 to 1."""


def simulate(scenario: Scenario, configuration: str, *, load: float = 1.0, report: Report | None = None) -> Simulated:
    """Run one configuration of a scenario from start to end. `load` multiplies its traffic.

    The result depends on the arguments alone: arrivals and run times are drawn from the scenario's seed.
    """
    raise NotImplementedError
