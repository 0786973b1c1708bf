"""The plan: what is decided from the queues and the nodes, and what a plan remembers of nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.model.doc_types import LostNode, Plan, PoolDoc
from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import PoolConfig, WorkerState
from shiftwork.core.observing.beats import Beat, NodeBeat
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.scaling.demand import WorkerWindow
from shiftwork.core.scaling.plan import (
    DRAIN_REMEMBERED_SECONDS,
    LOST_REMEMBERED_SECONDS,
    PlanFacts,
    PlanMemory,
    Planned,
    is_at_rest,
    next_plan,
    totals,
    with_lost,
)
from shiftwork.core.scaling.size import Floor
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, RateLimit
from shiftwork.core.workers.breaker import BreakerState

NOW = 1_000_000.0


def node(name: str, *, host: str = "", pools: tuple[str, ...] = ("p",), started_at: float = NOW, **more: Any) -> Beat:
    machine = NodeBeat(host=host or name, cores=4.0, memory=8_000_000_000, pools=pools)
    return Beat(instance=name, node=name, pool="", slots=0, machine=machine, started_at=started_at, **more)


def planned(
    before: Plan | None = None, *beats: Beat, memory: PlanMemory | None = None, at: float = NOW, **stats: PoolStats
) -> Planned:
    facts = PlanFacts(
        now=at,
        pools={"p": PoolConfig(name="p", min_workers=1, max_workers=10, scale_up_threshold=10)},
        stats=stats,
        beats=beats,
        priorities={"p": JobPriority.HIGH},
    )
    return next_plan(before or Plan(), facts, memory or PlanMemory())


def test_a_first_plan_places_the_minimum_and_is_no_news() -> None:
    made = planned(None, node("a"))
    assert made.plan == Plan(nodes={"a": {"p": 1}})
    assert (made.decisions["p"][0].target, made.events) == (1, [])


def test_a_pool_that_grows_is_news_with_the_reason() -> None:
    first = planned(None, node("a"))
    made = planned(first.plan, node("a"), memory=first.memory, at=NOW + 1, p=PoolStats(queued=25))
    assert totals(made.plan) == {"p": 4}
    (event,) = made.events
    assert (event.name, event.data) == ("pool.scaled", {"before": 1, "after": 4})
    assert "25 queued" in event.message


def test_deciding_changes_neither_the_plan_nor_the_memory_it_is_given() -> None:
    first = planned(None, node("a"))
    again = [planned(first.plan, node("a"), memory=first.memory, at=NOW + 1, p=PoolStats(queued=25)) for _ in range(2)]
    assert again[0] == again[1]


def test_a_plan_of_which_no_node_is_left_is_begun_again() -> None:
    gone = Plan(nodes={"old": {"p": 7}})
    assert planned(gone, node("new")).plan.nodes == {"new": {"p": 1}}


def test_where_every_node_is_drained_the_plan_says_so() -> None:
    made = planned(Plan(nodes={"a": {"p": 1}}, drained={"a": NOW}), node("a"))
    assert made.plan.unplaced == {"p": "every node is drained or stopping"}
    assert made.plan.nodes == {}
    assert planned(None, node("a", status="draining")).plan.unplaced == made.plan.unplaced


def test_a_drained_node_that_is_gone_is_remembered_for_a_day() -> None:
    ages = {
        "gone": DRAIN_REMEMBERED_SECONDS - 1,
        "long gone": DRAIN_REMEMBERED_SECONDS,
        "a": 9 * DRAIN_REMEMBERED_SECONDS,
    }
    made = planned(Plan(drained={name: NOW - age for name, age in ages.items()}), node("a"))
    assert made.plan.drained.keys() == {"gone", "a"}


@pytest.mark.parametrize(
    ("beat", "age", "missed"),
    [
        (node("a"), 1.0, {"lost"}),
        (node("a"), LOST_REMEMBERED_SECONDS, set()),
        (node("lost"), 1.0, set()),
        (node("a", host="h", started_at=NOW - 2), 1.0, {"lost"}),
        (node("a", host="h", started_at=NOW), 1.0, set()),
    ],
    ids=["missed", "after a while", "it is back", "one was there before", "another has started in its place"],
)
def test_a_lost_node_is_missed_until_something_takes_its_place(beat: Beat, age: float, missed: set[str]) -> None:
    before = with_lost(Plan(), {"lost": LostNode(NOW - age, "h")})
    assert planned(before, beat).plan.lost.keys() == missed


def with_workers(at: float, pool_of: dict[str, str] | None = None, **workers: WorkerStats) -> PlanFacts:
    return PlanFacts(
        now=at,
        pools={"p": PoolConfig(name="p", max_workers=30, target_latency_seconds=20.0)},
        stats={
            "p": PoolStats(
                queued=sum(one.queued for one in workers.values()),
                processing=sum(one.processing for one in workers.values()),
            )
        },
        workers=workers,
        pool_of=dict.fromkeys(workers, "p") if pool_of is None else pool_of,
        beats=[node("a")],
        priorities={},
    )


def test_each_worker_of_a_pool_counts_with_its_own_run_time() -> None:
    """Ten exports of a minute are ten minutes of work, however many pings of 50 ms there were before."""
    ping = WorkerStats(completed=100_000, run_seconds=5_000.0)
    export = WorkerStats(queued=10, processing=1, completed=5, run_seconds=300.0)
    made = next_plan(Plan(nodes={"a": {"p": 1}}), with_workers(NOW, ping=ping, export=export), PlanMemory())
    decision, _ = made.decisions["p"]
    assert decision.target == 11
    assert "10 queued, 10 min of work, need 30 to be done within 20 s" in decision.reason


def test_a_worker_of_another_pool_does_not_count() -> None:
    export = WorkerStats(queued=10, processing=1, completed=5, run_seconds=300.0)
    facts = with_workers(NOW, {"export": "elsewhere"}, export=export)
    assert next_plan(Plan(nodes={"a": {"p": 1}}), facts, PlanMemory()).decisions["p"][0].target == 1


def test_a_new_leader_keeps_what_is_busy_and_waits_before_it_shrinks() -> None:
    busy = WorkerStats(processing=8, completed=1000, run_seconds=1000.0)
    made = next_plan(Plan(nodes={"a": {"p": 12}}), with_workers(NOW, w=busy), PlanMemory())
    for second in range(1, 120):
        made = next_plan(made.plan, with_workers(NOW + second, w=busy), made.memory)
        assert totals(made.plan)["p"] == 12
    assert made.decisions["p"][0].reason == "8 busy on average, so 13 leave room to spare"


def test_bounds_that_hold_are_found_for_every_plan() -> None:
    pool = PoolConfig(name="p", bounds={"* * * * *": (3, 4)})
    facts = PlanFacts(now=NOW, pools={"p": pool}, stats={}, beats=[node("a")], priorities={})
    assert totals(next_plan(Plan(), facts, PlanMemory()).plan) == {"p": 3}
    by_hand = replace(facts, changes={"p": PoolDoc(min_workers=5)})
    assert totals(next_plan(Plan(), by_hand, PlanMemory()).plan) == {"p": 5}
    expected = replace(facts, floors={"p": Floor(9, "yesterday 9 slots were busy")})
    assert totals(next_plan(Plan(), expected, PlanMemory()).plan) == {"p": 4}


class GatedPool:
    """A pool of up to 40 slots and one worker behind a gate, second by second, with the queue that follows."""

    def __init__(
        self, run: float, queued: int, state: BreakerState | None = None, slots: int = 2, **gates: Any
    ) -> None:
        self.run, self.queued, self.ended, self.tokens = run, queued, 0, 0.0
        self.pool = PoolConfig(name="p", min_workers=2, max_workers=40, target_latency_seconds=30.0)
        self.gates = Gates(worker="w", pool="p", **gates)
        self.breaker = state
        self.plan, self.memory = Plan(nodes={"a": {"p": slots}}), PlanMemory()
        self.busy = 0
        self.sizes: list[int] = []
        self.reasons: list[str] = []

    def live(self, seconds: int) -> None:
        for _ in range(seconds):
            now = NOW + len(self.sizes)
            made = next_plan(self.plan, self._facts(now), self.memory)
            self.plan, self.memory = made.plan, made.memory
            decision, _ = made.decisions["p"]
            self.sizes.append(totals(made.plan)["p"])
            self.reasons.append(decision.reason)
            self._work(self.sizes[-1])

    def _work(self, slots: int) -> None:
        """Let a second pass: as many jobs end as slots and the rate limit let through."""
        rate, most = self.gates.rate, slots / self.run
        if rate is not None:
            most = min(most, rate.count / rate.seconds)
        if self.breaker is not None:
            most = 0.0
        self.tokens = min(float(self.queued), self.tokens + most)
        done = int(self.tokens)
        self.tokens, self.queued, self.ended = self.tokens - done, self.queued - done, self.ended + done
        self.busy = min(slots, round(most * self.run))

    def _facts(self, now: float) -> PlanFacts:
        state = WorkerState(worker="w", rate_at=now + 1 if self.gates.rate and self.ended else 0.0)
        head = Head(now - 60, "h", now - 60) if self.queued else None
        waiting = WorkerStats(
            queued=self.queued, processing=self.busy, completed=self.ended, run_seconds=self.ended * self.run
        )
        return PlanFacts(
            now=now,
            pools={"p": self.pool},
            stats={"p": PoolStats(queued=self.queued, processing=self.busy, oldest_run_at=now - 60)},
            workers={"w": waiting},
            pool_of={"w": "p"},
            admission=Facts(
                lanes={"w": Lane(state=state, running=self.busy, head=head, live=True)},
                gates={"w": self.gates},
                breakers={} if self.breaker is None else {"smtp": self.breaker},
                served={"p"},
            ),
            beats=[node("a")],
            priorities={},
        )


def test_a_worker_limited_to_50_a_second_never_takes_its_pool_to_the_maximum() -> None:
    day = GatedPool(run=0.05, queued=20_000, rate=RateLimit(50, 1.0))
    day.live(300)
    assert max(day.sizes) <= 6
    assert day.ended == pytest.approx(300 * 50, rel=0.02), "the limit is used up all the same"
    assert any("but only" in reason and "rate limit of w: 50 in 1 s" in reason for reason in day.reasons)


def test_a_rate_limited_worker_of_slow_jobs_gets_the_slots_that_its_limit_keeps_busy() -> None:
    day = GatedPool(run=2.0, queued=3_000, rate=RateLimit(10, 1.0))
    day.live(120)
    assert 20 <= max(day.sizes) <= 22
    assert day.ended > 100 * 10


@pytest.mark.parametrize(
    ("live_before", "live", "ended", "at_rest"),
    [(0, 0, 5, True), (0, 1, 5, False), (1, 0, 5, False), (0, 0, 6, False)],
    ids=["nothing", "a job was added", "a job went away", "a job came and ended"],
)
def test_the_next_plan_waits_only_if_nothing_has_happened(
    live_before: int, live: int, ended: int, *, at_rest: bool
) -> None:
    def window(live: int, ended: int) -> WorkerWindow:
        return WorkerWindow(at=NOW, live=live, processing=0, ended=ended, run_total=1.0)

    before, seen = ({"w": window(*counts)} for counts in ((live_before, 5), (live, ended)))
    latest = Planned(plan=Plan(), decisions={}, events=[], memory=PlanMemory(windows=seen))
    facts = PlanFacts(now=NOW, pools={}, stats={}, beats=[node("a")], priorities={})
    assert is_at_rest(latest, facts, PlanMemory(windows=before)) is at_rest
    assert not is_at_rest(latest, replace(facts, beats=[node("a"), node("b")]), PlanMemory(windows=before))


def test_max_running_bounds_what_a_backlog_asks_for() -> None:
    day = GatedPool(run=1.0, queued=5_000, max_running=3)
    day.live(60)
    assert max(day.sizes) == 3


def test_a_backlog_behind_an_open_breaker_asks_for_nothing() -> None:
    day = GatedPool(run=1.0, queued=5_000, state=BreakerState(open=True, until=NOW + 9_999), breaker="smtp")
    day.live(90)
    assert set(day.sizes) == {2}
    assert "5,000 queued, all held: breaker smtp is open" in day.reasons[-1]


def test_a_pool_does_not_stay_large_for_a_backlog_that_a_limit_holds() -> None:
    day = GatedPool(run=0.05, queued=20_000, rate=RateLimit(50, 1.0), slots=40)
    day.live(120)
    assert day.sizes[0] == 40
    assert day.sizes[-1] <= 8
    assert day.ended == pytest.approx(120 * 50, rel=0.02), "the limit is used up all the same"


def test_without_a_gate_the_same_backlog_takes_the_pool_to_its_maximum() -> None:
    day = GatedPool(run=1.0, queued=5_000)
    day.live(10)
    assert max(day.sizes) == 40


def test_jobs_behind_a_gate_do_not_hide_those_that_may_start() -> None:
    """300 jobs wait for a breaker, and 30 of another worker for slots: these get theirs."""
    facts = with_workers(NOW, send=WorkerStats(queued=300), resize=WorkerStats(queued=30))
    admission = Facts(
        lanes={name: Lane(state=WorkerState(worker=name), head=Head(NOW, "h", NOW)) for name in ("send", "resize")},
        gates={"send": Gates(worker="send", pool="p", breaker="smtp")},
        breakers={"smtp": BreakerState(open=True, until=NOW + 60)},
        served={"p"},
    )
    made = next_plan(Plan(nodes={"a": {"p": 1}}), replace(facts, admission=admission), PlanMemory())
    decision, load = made.decisions["p"]
    assert (load.depth, load.startable, load.queue_depth) == (30, 30, 330)
    assert decision.reason.startswith("30 queued is above scale_up_threshold 20: 2 more")
