"""A study of a scenario: every configuration simulated, compared with fixed pools, and loaded until it breaks."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from shiftwork.errors import ConfigurationError, nearest
from shiftwork.sim.breaking import Breaking, breaking
from shiftwork.sim.fixed_size import fixed_sizes
from shiftwork.sim.scenario import Configuration, Scenario
from shiftwork.sim.scenario_limits import refuse_size
from shiftwork.sim.simulate import simulate
from shiftwork.sim.simulated import Simulated
from shiftwork.sim.suggest import SUGGESTED, Suggestion, suggest

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is done."""


class ScenarioStudy(Struct, frozen=True, kw_only=True):
    """What was found out about a scenario."""

    scenario: Scenario
    simulated: dict[str, Simulated]
    fixed: dict[str, dict[str, int]]
    """How many fixed slots each pool of an elastic configuration would need to be as good."""
    breaks: dict[str, Breaking]
    suggestion: Suggestion | None = None


def study_scenario(
    scenario: Scenario,
    names: Sequence[str] = (),
    *,
    search: bool = False,
    headroom: float = 1.0,
    progress: Progress = lambda _, __: None,
) -> ScenarioStudy:
    """Simulate these configurations, by default all of them. With `search`, also search for a cheaper one."""
    for name in names:
        if name not in scenario.configurations:
            message = f"there is no configuration {name!r}; {nearest(name, scenario.configurations)}"
            raise ConfigurationError(message)
    refuse_size(scenario, load=headroom if search else 1.0)
    simulated: dict[str, Simulated] = {}
    for name in names or scenario.configurations:
        simulated[name] = simulate(scenario, name, report=lambda done: progress(name, done))  # noqa: B023 - called at once
    suggestion = None
    if search:
        suggestion = suggest(
            scenario,
            cheapest(simulated),
            headroom=headroom,
            progress=lambda pool, done: progress(f"searching {pool}", done),
        )
        scenario = suggestion.scenario
        simulated[SUGGESTED] = suggestion.simulated
    fixed, breaks = {}, {}
    for place, (name, one) in enumerate(simulated.items()):
        progress("comparing", place / len(simulated))
        if _elastic(scenario.configurations[name]):
            fixed[name] = fixed_sizes(scenario, name, one)
        breaks[name] = breaking(scenario, name, one)
    progress("comparing", 1.0)
    return ScenarioStudy(scenario=scenario, simulated=simulated, fixed=fixed, breaks=breaks, suggestion=suggestion)


def cheapest(simulated: dict[str, Simulated]) -> str:
    """Return the cheapest configuration of those that miss the fewest targets."""
    return min(simulated, key=lambda name: (len(simulated[name].missed), simulated[name].slot_hours))


def _elastic(configuration: Configuration) -> bool:
    return any(pool.bounds or pool.min_workers < pool.max_workers for pool in configuration.pools.values())
