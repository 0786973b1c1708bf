"""A day in virtual time: simulated queues and slots under the real planning rules of `core.scaling.plan`.

The leader's look is `decide_pools` and `placed`, the two halves of `next_plan`, with facts made from the simulated
queues, at the leader's real cadence: every `PLAN_SECONDS`, and already after `SOON_SECONDS` if a pool below its maximum
has no free slot for its jobs. Between two looks pools do not touch each other, so each one advances alone.

Left out is what cannot change anything (`SimPool.look` has the conditions):

* a look at a pool of a fixed size, or at one that was idle at the last look, is idle still, and has its minimum: no
  rule makes it grow without jobs, and its windows see the idle time as a whole at the next look, with the same result;
* a look that comes soon because another pool has no free slot;
* the decision about a pool that can neither grow nor shrink: the look only sees how busy it is;
* placing slots while every pool has as many as it should have: `place` keeps them where they are.

Not simulated: the milliseconds of a claim, a slot that moves from one node to another, and failures of processes, nodes
and the store.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.doc_types import Plan
from shiftwork.core.scaling.plan import PLAN_SECONDS, SOON_SECONDS, PlanFacts, PlanMemory, placed, totals
from shiftwork.sim.hosting import beats
from shiftwork.sim.scenario import Configuration, Scenario
from shiftwork.sim.sim_pool import HOUR, SimPool
from shiftwork.sim.simulated import PoolCourse, ScalingStep, Simulated, missed, waits_of
from shiftwork.sim.traffic import SimJob, jobs_of

Report = Callable[[float], None]
"""Called now and then with the share of the scenario that has been simulated, from 0 to 1."""
POINTS: Final = 288
"""How many values a curve has: one for every five minutes of a day."""
_TICKS_A_LOOK: Final = round(PLAN_SECONDS / SOON_SECONDS)


def simulate(scenario: Scenario, configuration: str, *, load: float = 1.0, report: Report | None = None) -> Simulated:
    """Run one configuration of a scenario from start to end. `load` multiplies its traffic.

    The result depends on the arguments alone: arrivals and run times are drawn from the scenario's seed.
    """
    chosen = scenario.configurations[configuration]
    jobs = {name: jobs_of(scenario, name, traffic, load=load) for name, traffic in chosen.workers.items()}
    day = Day(scenario, chosen, jobs)
    day.run(report)
    return day.result(configuration, load)


class Day:
    """One configuration while it is simulated."""

    def __init__(self, scenario: Scenario, configuration: Configuration, jobs: Mapping[str, list[SimJob]]) -> None:
        self._scenario = scenario
        self._pools = [
            SimPool(
                pool,
                {worker: jobs[worker] for worker, traffic in configuration.workers.items() if traffic.pool == name},
                configuration,
                start=scenario.start,
            )
            for name, pool in configuration.pools.items()
        ]
        self._plan = Plan()
        self._facts = PlanFacts(
            now=scenario.start,
            pools=configuration.pools,
            stats={},
            beats=beats(scenario.nodes, configuration.pools),
            priorities={pool.pool.name: pool.priority for pool in self._pools},
        )
        self._deepest = self._fewest = self._most = 0

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, report: Report | None = None, *, hopeless: Callable[[], bool] | None = None) -> bool:
        """Simulate from start to end. Return False if it was given up: `hopeless` is asked now and then."""
        length = self._scenario.length
        self._open()
        marks, looked = 0, 0
        queues = [pool.queue for pool in self._pools]
        for tick in range(1, round(length / SOON_SECONDS) + 1):
            now = tick * SOON_SECONDS
            for queue in queues:
                if queue.next_at <= now:
                    queue.advance(now)
            if tick - looked >= _TICKS_A_LOOK or self._crowded(now):
                self._look(now, soon=tick - looked < _TICKS_A_LOOK)
                looked = tick
            if now >= (marks + 1) * length / POINTS:
                marks += 1
                self._mark(now)
                if report is not None:
                    report(marks / POINTS)
                if hopeless is not None and hopeless():
                    return False
        return True

    def _crowded(self, now: float) -> bool:
        return any(pool.queue.full and pool.crowded(now) for pool in self._pools)

    def _mark(self, now: float) -> None:
        for pool in self._pools:
            pool.recorder.mark(now)

    # ── the leader ───────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> None:
        """Begin with the minimum of every pool, ready."""
        for pool in self._pools:
            pool.decide(0.0)
        self._place(0.0)
        for pool in self._pools:
            pool.queue.open(pool.current)
            pool.recorder.steps.clear()
        self._fewest = self._most = sum(pool.current for pool in self._pools)

    def _look(self, now: float, *, soon: bool) -> None:
        changed, depth = False, 0
        for pool in self._pools:
            decision = pool.look(now, soon=soon)
            changed = changed or (decision is not None and decision.target != pool.current)
            depth += pool.queue.depth
        self._deepest = max(self._deepest, depth)
        if changed:
            self._place(now)
            slots = sum(pool.current for pool in self._pools)
            self._fewest, self._most = min(self._fewest, slots), max(self._most, slots)

    def _place(self, now: float) -> None:
        facts = replace(self._facts, now=self._scenario.start + now)
        decided = {pool.pool.name: pool.decided for pool in self._pools}
        planned = placed(self._plan, facts, decided, PlanMemory())
        self._plan = planned.plan
        counts = totals(planned.plan)
        for pool in self._pools:
            name = pool.pool.name
            after = counts[name]
            pool.recorder.unplaced = planned.plan.unplaced.get(name, pool.recorder.unplaced)
            if after != pool.current:
                reason = planned.decisions[name][0].reason
                pool.recorder.steps.append(ScalingStep(self._scenario.start + now, pool.current, after, reason))
                pool.current = after
                if now > 0:
                    pool.queue.resize(now, after)

    # ── what was seen so far ─────────────────────────────────────────────────────────────────────────────────────

    def slot_hours(self) -> float:
        """Return how long all slots have existed, until the last mark."""
        return sum(sum(pool.recorder.slots) for pool in self._pools) * self._scenario.length / POINTS / HOUR

    def started(self, worker: str) -> list[float]:
        """Return how long the jobs of a worker have waited that have started so far."""
        pool = next(pool for pool in self._pools if worker in pool.workers)
        return pool.queue.waits[pool.workers.index(worker)]

    def courses(self) -> dict[str, PoolCourse]:
        """Return how each pool fared."""
        end, price = self._scenario.length, self._scenario.price_per_core_hour
        return {pool.pool.name: pool.recorder.course(end, price) for pool in self._pools}

    def waited(self) -> dict[str, list[float]]:
        """Return how long each job waited, by worker."""
        return {
            worker: pool.queue.waits_until(self._scenario.length, place)
            for pool in self._pools
            for place, worker in enumerate(pool.workers)
        }

    def result(self, configuration: str, load: float) -> Simulated:
        """Return what was seen."""
        scenario = self._scenario
        courses = self.courses()
        waited = self.waited()
        groups = {
            name: waits_of(wait for worker in workers for wait in waited[worker])
            for name, workers in scenario.groups.items()
        }
        return Simulated(
            configuration=configuration,
            load=load,
            start=scenario.start,
            step=scenario.length / POINTS,
            pools=courses,
            deepest=max(self._deepest, *(course.deepest for course in courses.values())),
            fewest_slots=self._fewest,
            most_slots=self._most,
            workers={worker: waits_of(waits) for worker, waits in waited.items()},
            groups=groups,
            missed=missed(scenario, groups, {name: course.deepest for name, course in courses.items()}),
        )
