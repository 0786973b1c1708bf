"""May this job start now? Each gate by itself, then the turn, then conflicts."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.admission import (
    JUST_STARTED_SECONDS,
    Facts,
    Gates,
    Head,
    Lane,
    Obstacle,
    RateLimit,
    Running,
    choose,
    explain,
    may_start,
    neighbours,
)
from shiftwork.core.workers.breaker import BreakerState

NOW = 1000.0
HEAD = Head(900.0, "b1", 900.0)


def lane(worker: str, *, head: Head | None = None, running: int = 0, retrying: bool = False, **state: Any) -> Lane:
    eldest = Running("r", "i-1", 950.0) if running else None
    return Lane(
        state=WorkerState(worker=worker, **state),
        running=running,
        eldest=eldest,
        head=head,
        retrying=retrying,
        live=True,
    )


def facts(*lanes: Lane, gates: list[Gates], served: set[str] | None = None, **more: Any) -> Facts:
    return Facts(
        lanes={lane.state.worker: lane for lane in lanes},
        gates={gate.worker: gate for gate in gates},
        served={"default"} if served is None else served,
        **more,
    )


def wait(worker: str, known: Facts, head: Head = HEAD, now: float = NOW) -> Obstacle | None:
    first = may_start(worker, head, known, now)
    assert (first is None) == (not explain(worker, head, known, now))
    return first


def code(worker: str, known: Facts, head: Head = HEAD, now: float = NOW) -> str | None:
    found = wait(worker, known, head, now)
    return found.code if found else None


def test_a_worker_without_gates_may_start() -> None:
    assert wait("b", Facts()) is None
    assert Gates(worker="b").open


class TestGates:
    """What holds a worker back by itself."""

    def test_a_paused_pool(self) -> None:
        known = facts(gates=[Gates(worker="b")], pools={"default": PoolDoc(paused=True, reason="deploy", since=5.0)})
        assert wait("b", known) == Obstacle("paused", "default", "pool default is paused: deploy", since=5.0)

    def test_a_disabled_worker(self) -> None:
        found = wait("b", facts(lane("b", enabled=False, reason="5 failures"), gates=[]))
        assert found is not None
        assert (found.code, found.why) == ("disabled", "worker b is disabled: 5 failures")

    @pytest.mark.parametrize(("running", "held"), [(1, None), (2, "max_running"), (3, "max_running")])
    def test_as_many_as_may_run(self, running: int, held: str | None) -> None:
        assert code("b", facts(lane("b", running=running), gates=[Gates(worker="b", max_running=2)])) == held

    def test_a_rate_limit_says_until_when(self) -> None:
        known = facts(lane("b", rate_at=NOW + 5), gates=[Gates(worker="b", rate=RateLimit(1, 10))])
        found = wait("b", known)
        assert found is not None
        assert (found.code, found.until) == ("rate_limit", NOW + 5)
        assert wait("b", known, now=NOW + 5) is None


class TestBreakers:
    """An open breaker holds every job back; a half-open one lets exactly one through."""

    gates = (Gates(worker="a", breaker="smtp"), Gates(worker="b", breaker="smtp"), Gates(worker="c"))

    def known(self, *lanes: Lane, until: float) -> Facts:
        state = BreakerState(open=True, until=until, opened_at=NOW - 50)
        return facts(*lanes, gates=[*self.gates], breakers={"smtp": state})

    def test_open(self) -> None:
        found = wait("b", self.known(until=NOW + 1))
        assert found == Obstacle("breaker", "smtp", "breaker smtp is open", until=NOW + 1, since=NOW - 50)
        assert wait("c", self.known(until=NOW + 1)) is None

    def test_closed(self) -> None:
        assert wait("b", facts(gates=[*self.gates], breakers={"smtp": BreakerState(failed_at=(1.0,))})) is None

    def test_half_open_without_a_probe(self) -> None:
        assert wait("b", self.known(until=NOW)) is None

    def test_half_open_with_a_probe_of_another_worker(self) -> None:
        probe = lane("a", running=1)
        probe.newest_started_at = NOW - 1
        found = wait("b", self.known(probe, until=NOW - 1))
        assert found is not None
        assert (found.code, found.until) == ("breaker", None)
        assert "a probe of a is running" in found.why

    def test_a_straggler_is_not_a_probe(self) -> None:
        straggler = lane("a", running=1)
        straggler.newest_started_at = NOW - 2
        assert wait("b", self.known(straggler, until=NOW - 1)) is None

    @given(st.lists(st.sampled_from("ab"), min_size=1, max_size=12), st.integers(1, 12))
    def test_one_claim_takes_exactly_one_probe(self, workers: list[str], limit: int) -> None:
        candidates = heads(*enumerate(workers))
        known = self.known(until=NOW)
        assert len(choose(candidates, known, limit=limit, now=NOW).ids) == 1
        assert choose(candidates, known, limit=limit, now=NOW + 1).ids == []


class TestDependencies:
    """B does not start while A runs or is queued to run, nor before A has succeeded once."""

    def held(self, demand: str = "done", *, b: dict[str, Any] | None = None, **a: Any) -> str | None:
        gates = [Gates(worker="a", before=("b",)), Gates(worker="b", after={"a": demand})]
        found = wait("b", facts(lane("a", **a), lane("b", **(b or {})), gates=gates))
        assert found is None or (found.code, found.by) == ("dependency", "a")
        return found.why if found else None

    def test_never_succeeded(self) -> None:
        assert self.held() == "depends on a, which has not succeeded yet"
        assert self.held(last_ended=950.0) == "depends on a, which has not succeeded yet"

    def test_succeeded_once_is_enough(self) -> None:
        assert self.held(last_success=1.0, last_ended=1.0) is None

    def test_running(self) -> None:
        assert self.held(last_success=950.0, last_ended=950.0, running=1) == "depends on a, which is running"

    def test_queued_when_both_are_due(self) -> None:
        queued = Head(999.0, "a1", 999.0)
        assert (
            self.held(last_success=1.0, last_ended=899.0, head=queued) == "depends on a, which is queued to run first"
        )

    def test_queued_again_after_b_became_due_does_not_count(self) -> None:
        assert self.held(last_success=1.0, last_ended=900.0, head=Head(0.0, "a1", 0.0)) is None

    def test_waiting_to_be_retried(self) -> None:
        found = self.held(last_success=1.0, last_ended=899.0, retrying=True)
        assert found == "depends on a, which is to be retried first"

    def test_queued_but_disabled_says_so(self) -> None:
        found = self.held(last_success=1.0, last_ended=1.0, head=HEAD, enabled=False, reason="by hand")
        assert found == "depends on a, which is queued to run first, but is disabled: by hand"

    @pytest.mark.parametrize(
        ("success", "started", "held"),
        [(500.0, 501.0, True), (501.0, 501.0, True), (502.0, 501.0, False), (5.0, None, False)],
    )
    def test_fresh(self, success: float, started: float | None, held: bool) -> None:  # noqa: FBT001 - a column
        found = self.held("fresh", b={"last_started": started}, last_success=success, last_ended=success)
        assert (found is not None) == held
        assert found is None or "fresh" in found


class TestTurn:
    """Once A has ended, workers that waited for it go before its next run."""

    gates = (Gates(worker="a", before=("b",), pool="p"), Gates(worker="b", after={"a": "done"}, pool="q"))

    def held(self, b: Lane, *, served: set[str] | None = None, running: int = 0, **a: Any) -> str | None:
        known = {"last_ended": 950.0, "last_success": 950.0, **a}
        served = {"p", "q"} if served is None else served
        return code("a", facts(lane("a", running=running, **known), b, gates=[*self.gates], served=served))

    def test_it_gives_way_to_the_one_that_waited(self) -> None:
        assert self.held(lane("b", head=HEAD)) == "turn"

    def test_not_to_one_that_became_due_later(self) -> None:
        assert self.held(lane("b", head=Head(951.0, "b1", 951.0))) is None

    def test_not_to_one_that_cannot_start_anyway(self) -> None:
        assert self.held(lane("b", head=HEAD, enabled=False)) is None
        assert self.held(lane("b")) is None

    def test_not_to_one_that_would_not_run(self) -> None:
        assert self.held(lane("b", head=HEAD), served={"p"}) is None

    def test_not_before_its_first_success(self) -> None:
        assert self.held(lane("b", head=HEAD), last_success=None) is None

    def test_also_while_another_run_of_it_continues(self) -> None:
        """Or b, which waits for all of them to end, would never find a moment without one."""
        assert self.held(lane("b", head=HEAD), running=1) == "turn"


class TestConflicts:
    """Never beside one it blocks, and not before one of the other side that has waited longer."""

    gates = (Gates(worker="a", conflicts=("b",), pool="p"), Gates(worker="b", conflicts=("a",), pool="q"))

    def held(self, a: Lane, *, served: set[str] | None = None) -> str | None:
        return code("b", facts(a, lane("b"), gates=[*self.gates], served={"p", "q"} if served is None else served))

    def test_beside_a_running_one(self) -> None:
        found = wait("b", facts(lane("a", running=1), gates=[*self.gates]))
        assert found == Obstacle("blocked", "a", "blocked by a, which is running on i-1", since=950.0)

    @pytest.mark.parametrize(
        ("ahead", "held"),
        [
            (Head(899.0, "a1", 899.0), "precedence"),
            (Head(900.0, "a1", 900.0), "precedence"),
            (Head(900.0, "b2", 900.0), None),
            (Head(901.0, "a1", 0.0), None),
        ],
    )
    def test_before_one_that_ranks_ahead(self, ahead: Head, held: str | None) -> None:
        assert self.held(lane("a", head=ahead)) == held

    def test_one_that_cannot_start_is_passed(self) -> None:
        assert self.held(lane("a", head=Head(1.0, "a1", 1.0), enabled=False)) is None

    def test_one_that_would_not_run_is_passed(self) -> None:
        assert self.held(lane("a", head=Head(1.0, "a1", 1.0)), served={"q"}) is None

    def test_everything_that_holds_a_job_back_is_reported(self) -> None:
        known = facts(lane("a", running=1), lane("b", enabled=False), gates=[*self.gates])
        assert [found.code for found in explain("b", HEAD, known, NOW)] == ["disabled", "blocked"]


def heads(*ranked: tuple[float, str]) -> dict[str, list[Head]]:
    """Candidates from (rank, worker)."""
    candidates: dict[str, list[Head]] = {}
    for rank, worker in sorted(ranked):
        candidates.setdefault(worker, []).append(Head(rank, f"{worker}-{rank:g}", rank))
    return candidates


class TestChoosing:
    """Several at a time, in rank order, as if one after the other."""

    def test_in_rank_order_up_to_the_limit(self) -> None:
        candidates = heads((3, "a"), (1, "b"), (2, "a"), (4, "b"))
        assert choose(candidates, Facts(), limit=3, now=NOW).ids == ["b-1", "a-2", "a-3"]
        assert choose(candidates, Facts(), limit=0, now=NOW).ids == []

    def test_the_second_sees_the_first_running(self) -> None:
        known = facts(gates=[Gates(worker="a", conflicts=("b",)), Gates(worker="b", conflicts=("a",))])
        choice = choose(heads((1, "a"), (2, "b"), (3, "a")), known, limit=9, now=NOW)
        assert choice.ids == ["a-1"]  # the second a gives way to b, which has waited longer
        assert choice.started == {"a": 1}

    def test_a_rate_limit_moves_on_and_says_when_it_opens(self) -> None:
        known = facts(gates=[Gates(worker="a", rate=RateLimit(30, 30))])
        choice = choose(heads(*((n, "a") for n in range(9))), known, limit=9, now=NOW)
        assert len(choice.ids) == RateLimit(30, 30).burst == 3
        assert choice.rate_at == {"a": pytest.approx(NOW + 3 * 30 / 28)}
        assert choice.next_at == pytest.approx(NOW + 30 / 28)

    def test_one_that_gave_way_waits_until_the_other_has_had_a_moment_to_begin(self) -> None:
        gates = [Gates(worker="a", before=("b",)), Gates(worker="b", after={"a": "done"})]
        known = facts(
            lane("a", last_ended=950.0, last_success=950.0), lane("b", head=Head(900.0, "b-900", 900.0)), gates=gates
        )
        choice = choose(heads((1, "a"), (900, "b")), known, limit=9, now=NOW)
        assert (choice.ids, choice.next_at) == (["b-900"], NOW + JUST_STARTED_SECONDS)
        assert choose(heads((1, "a")), known, limit=9, now=NOW + JUST_STARTED_SECONDS).ids == ["a-1"]

    def test_a_fresh_dependency_is_used_up_by_one_start(self) -> None:
        gates = [Gates(worker="a", before=("b",)), Gates(worker="b", after={"a": "fresh"})]
        known = facts(lane("a", last_ended=950.0, last_success=950.0), gates=gates)
        assert choose(heads((1, "b"), (2, "b")), known, limit=9, now=NOW).ids == ["b-1"]


def test_neighbours_are_all_that_gates_tie_together() -> None:
    gates = [
        Gates(worker="a", conflicts=("b",)),
        Gates(worker="b", conflicts=("a",), before=("c",)),
        Gates(worker="c", after={"b": "done"}, breaker="smtp"),
        Gates(worker="d", breaker="smtp"),
        Gates(worker="e", breaker="other"),
    ]
    by_name = {gate.worker: gate for gate in gates}
    assert neighbours(["a"], by_name) == {"a", "b", "c", "d"}
    assert neighbours(["e", "x"], by_name) == {"e", "x"}


@settings(max_examples=200, deadline=None)
@given(
    st.builds(RateLimit, st.integers(1, 60), st.sampled_from([1.0, 7.0, 60.0, 3600.0])),
    st.lists(st.tuples(st.floats(0, 1.2), st.integers(1, 40)), min_size=1, max_size=8),
)
def test_a_rate_limit_is_never_exceeded_in_any_window(rate: RateLimit, bursts: list[tuple[float, int]]) -> None:
    """Not even by one that, after any pause, takes all it can get as soon as it can get it."""
    rate_at, now, starts = 0.0, NOW, list[float]()
    for pause, greed in bursts:
        now += pause * rate.seconds
        for _ in range(greed):
            now = max(now, rate.opens_at(rate_at))
            starts.append(now)
            rate_at = rate.after_start(rate_at, now)
    for first, start in enumerate(starts):
        window = [at for at in starts[first:] if at < start + rate.seconds * (1 - 1e-9)]
        assert len(window) <= rate.count


@given(st.builds(RateLimit, st.integers(1, 1000), st.floats(0.1, 1e5)))
def test_a_rate_limit_is_nearly_reached(rate: RateLimit) -> None:
    """A worker that starts whenever it may gets at least nine tenths of the limit."""
    assert rate.seconds / rate.spacing >= 0.9 * rate.count
    assert rate.opens_at(0.0) <= 0.0
