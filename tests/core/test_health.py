"""What is wrong now: each problem by its name, with a remedy."""

from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.health.health_values import (
    HealthFacts,
    InstanceFacts,
    NodeFacts,
    PoolFacts,
    StrandedFacts,
    UnknownFacts,
    WorkerFacts,
    WriteFault,
)
from shiftwork.core.health.pool_problems import DEFAULT_LATENCY_SECONDS, STARTING_SECONDS
from shiftwork.core.health.verdict import SCHEDULE_GRACE_SECONDS, judge
from shiftwork.core.model.doc_types import LostNode
from shiftwork.core.model.workers import Breaker, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.scaling.backlog import Gate
from shiftwork.core.workers.breaker import BreakerState

NOW = 1000.0


def worker(
    next_due: float | None = None,
    *,
    live: bool = False,
    retrying: int = 0,
    mode: WorkerExecutionMode = WorkerExecutionMode.SCHEDULED,
    **state: object,
) -> HealthFacts:
    config = WorkerConfig(name="w", execution_mode=mode)
    known = WorkerState(worker="w", **state)  # type: ignore[arg-type]
    facts = WorkerFacts(config=config, state=known, next_due=next_due, live=live, retrying=retrying)
    return HealthFacts(workers=[facts])


def pair(demand: str = "done", mode: str = "scheduled", *, live: bool = False, **needed: object) -> HealthFacts:
    """`b` depends on `a`, whose state is given."""
    b = WorkerConfig(name="b", depends_on={"a": demand}, execution_mode=WorkerExecutionMode(mode))
    a = WorkerState(worker="a", **needed)  # type: ignore[arg-type]
    return HealthFacts(
        workers=[
            WorkerFacts(config=b, state=WorkerState(worker="b"), live=live),
            WorkerFacts(config=WorkerConfig(name="a"), state=a),
        ]
    )


def instance(age: float, stuck: int = 0) -> HealthFacts:
    facts = InstanceFacts(id="i", node="n", pool="p", last_beat_at=NOW - age, ttl=15, stuck_threads=stuck)
    return HealthFacts(instances=[facts])


def node(age: float) -> HealthFacts:
    """With an instance that has been silent for as long."""
    silent = instance(age)
    silent.nodes = [NodeFacts(name="n", host="h", last_beat_at=NOW - age, ttl=15)]
    return silent


def stranded(jobs: int, *, all_counted: bool = True) -> StrandedFacts:
    return StrandedFacts(flow="f", jobs=jobs, all_counted=all_counted, job_id="7", worker="fetch", status="dead")


def pool(**facts: object) -> HealthFacts:
    return HealthFacts(pools=[PoolFacts(name="p", **facts)])  # type: ignore[arg-type]


FINE = [
    HealthFacts(),
    worker(),
    worker(next_due=NOW + 5),
    worker(next_due=NOW - SCHEDULE_GRACE_SECONDS),
    worker(next_due=NOW - 9999, live=True),
    worker(last_error="boom", last_error_at=NOW - 9, last_success=NOW - 8),
    worker(mode=WorkerExecutionMode.TRIGGERED, last_error="boom", last_error_at=NOW - 9),
    pair(last_success=1.0),
    instance(age=15),
    node(age=12),
    pool(queued=5, oldest_wait_seconds=DEFAULT_LATENCY_SECONDS),
    pool(served=False, min_workers=0),
    pool(queued=0, oldest_wait_seconds=9999.0),
    pool(served=False, hosting="ready"),
    pool(served=False, hosting="ready", queued=3, oldest_wait_seconds=STARTING_SECONDS),
    pool(served=False, hosting="unknown"),
    pool(served=False, hosting="drained"),
    pool(served=False, hosting="labels", labels=("gpu",), min_workers=0),
    HealthFacts(breakers={"smtp": BreakerState(failed_at=(1.0, 2.0))}),
    pool(queued=9, slots=4, running=4, newest_start=NOW - 10, usual_seconds=0.2),
    pool(queued=9, slots=4, running=4, newest_start=NOW - 299, usual_seconds=60.0),
    pool(queued=9, slots=4, running=4, newest_start=NOW - 600, usual_seconds=6.0, long_seconds=600.0),
    pool(queued=9, slots=4, running=4, newest_start=NOW - 45, untimed=True),
    pool(queued=9, slots=4, running=3, newest_start=NOW - 999, usual_seconds=0.2),
    pool(queued=0, slots=4, running=4, newest_start=NOW - 999, usual_seconds=0.2),
]


@pytest.mark.parametrize("facts", FINE)
def test_nothing_is_wrong(facts: HealthFacts) -> None:
    verdict = judge(facts, NOW)
    assert (verdict.status, verdict.problems) == ("ok", [])


WRONG = [
    (worker(enabled=False, failures=5, reason="5 runs failed"), "worker_disabled", "w", "degraded", "5 runs failed"),
    (worker(enabled=False, reason="by hand"), "worker_disabled", "w", "degraded", "by hand"),
    (worker(next_due=NOW - 11), "schedule_missed", "w", "degraded", "11 s ago"),
    (
        worker(next_due=NOW - 11, mode=WorkerExecutionMode.CONTINUOUS),
        "schedule_missed",
        "w",
        "degraded",
        "no job was created",
    ),
    (
        worker(last_error="ValueError: boom", last_error_at=NOW - 3, last_success=NOW - 60, retrying=1),
        "worker_failing",
        "w",
        "degraded",
        "failed 3 s ago with ValueError: boom; 1 job to be retried",
    ),
    (
        worker(last_error="boom", last_error_at=NOW - 3, retrying=2, mode=WorkerExecutionMode.TRIGGERED),
        "worker_failing",
        "w",
        "degraded",
        "2 jobs to be retried",
    ),
    (
        HealthFacts(unknown={"renamed": UnknownFacts(3)}),
        "worker_unknown",
        "renamed",
        "degraded",
        "3 jobs wait for worker renamed, which no running node has",
    ),
    (
        HealthFacts(store_faults={"node n": WriteFault("writing outcomes fails: disk full", NOW - 4)}),
        "store_failing",
        "store",
        "failing",
        "writing to the store has failed for 4 s, as seen by node n: writing outcomes fails: disk full",
    ),
    (node(age=13), "node_silent", "n", "failing", "node n on h has not renewed its lease for 13 s"),
    (node(age=16), "node_silent", "n", "failing", "16 s"),
    (HealthFacts(lost={"n": LostNode(NOW - 40, "h")}), "node_lost", "n", "failing", "node n on h vanished 40 s ago"),
    (instance(age=16), "instance_silent", "i", "failing", "16 s"),
    (instance(age=1, stuck=2), "thread_stuck", "i", "degraded", "2 threads of i still running"),
    (pool(paused=True, reason="deploy", queued=7), "pool_paused", "p", "degraded", "deploy; 7 queued"),
    (pool(served=False, queued=3), "pool_unserved", "p", "failing", "3 queued"),
    (pool(served=False), "pool_unserved", "p", "degraded", "no live instance"),
    (
        pool(served=False, queued=3, hosting="ready", oldest_wait_seconds=STARTING_SECONDS + 1),
        "pool_unserved",
        "p",
        "failing",
        "no slot, and its oldest job has waited 31 s",
    ),
    (pool(served=False, queued=3, hosting="drained"), "pool_unserved", "p", "failing", "drained or stopping; 3 queued"),
    (pool(served=False, queued=3, hosting="unknown"), "pool_unhosted", "p", "failing", "no live node knows pool p"),
    (
        pool(served=False, hosting="labels", labels=("gpu", "ssd")),
        "pool_unhosted",
        "p",
        "degraded",
        "the labels of pool p (gpu, ssd); 0 queued",
    ),
    (
        pool(served=False, queued=3, hosting="labels", labels=("gpu",), unplaced="no node has gpu"),
        "pool_unhosted",
        "p",
        "failing",
        "3 queued",
    ),
    (
        pool(hosting="ready", unplaced="no suitable node has 4 cores free"),
        "pool_unplaced",
        "p",
        "degraded",
        "more slots than fit on any node: no suitable node has 4 cores free",
    ),
    (
        pool(served=False, queued=1, hosting="ready", unplaced="no memory"),
        "pool_unplaced",
        "p",
        "failing",
        "1 queued",
    ),
    (
        pool(served=False, queued=9, hosting="ready", failing={"n1": "Traceback\n  File\nImportError: no pillow\n"}),
        "pool_failing",
        "p",
        "failing",
        "cannot be started on node n1: ImportError: no pillow",
    ),
    (
        pool(hosting="ready", failing={"n1": "module shop cannot be imported: no pillow\n  File shop.py\n    import"}),
        "pool_failing",
        "p",
        "failing",
        "on node n1: module shop cannot be imported: no pillow",
    ),
    (
        pool(hosting="ready", failing={"n2": "B", "n1": "A"}),
        "pool_failing",
        "p",
        "failing",
        "on 2 nodes (n1, n2): A",
    ),
    (pool(queued=1, oldest_wait_seconds=301.0), "pool_starved", "p", "degraded", "waited 301 s, more than 300 s"),
    (
        pool(queued=1, oldest_wait_seconds=11.0, target_latency_seconds=10.0),
        "pool_starved",
        "p",
        "degraded",
        "more than 10 s",
    ),
    (
        HealthFacts(stranded=[stranded(jobs=12)]),
        "jobs_stranded",
        "f",
        "degraded",
        "12 jobs of flow f cannot run: job 7 of fetch is dead",
    ),
    (
        HealthFacts(stranded=[stranded(jobs=900, all_counted=False)]),
        "jobs_stranded",
        "f",
        "degraded",
        "900 or more jobs of flow f cannot run",
    ),
    (
        pool(queued=300, slots=4, running=4, newest_start=NOW - 11, usual_seconds=0.2, eldest="7"),
        "pool_stuck",
        "p",
        "failing",
        "all 4 slots of pool p are busy and nothing has ended for 11 s (usual: 200 ms); 300 queued",
    ),
    (
        pool(queued=9, slots=4, running=4, newest_start=NOW - 601, usual_seconds=6.0, long_seconds=600.0),
        "pool_stuck",
        "p",
        "failing",
        "nothing has ended for 601 s (usual: 6 s, long ones 10 min); 9 queued",
    ),
    (
        pool(queued=1, slots=4, running=4, newest_start=NOW - 46, untimed=True),
        "pool_stuck",
        "p",
        "degraded",
        "46 s (no run has ended before)",
    ),
    (pool(expired=10), "jobs_expired", "p", "degraded", "10 jobs of pool p expired within 10 minutes"),
    (pool(dead=4), "dead_letters", "dead letters", "degraded", "4 jobs of pool p in the dead-letter queue"),
    (HealthFacts(leader=False), "no_leader", "leader", "failing", "no node leads"),
    (
        HealthFacts(breakers={"smtp": BreakerState(open=True, until=NOW + 20, failed_at=(1.0,))}),
        "breaker_open",
        "smtp",
        "degraded",
        "is open after 1 failure; one run probes it in 20 s",
    ),
    (
        HealthFacts(breakers={"smtp": BreakerState(open=True, until=NOW)}),
        "breaker_open",
        "smtp",
        "degraded",
        "half-open",
    ),
]


@pytest.mark.parametrize(("facts", "code", "subject", "status", "says"), WRONG, ids=[row[1] for row in WRONG])
def test_a_problem_has_a_name_a_subject_and_a_remedy(
    facts: HealthFacts, code: str, subject: str, status: str, says: str
) -> None:
    verdict = judge(facts, NOW)
    (problem,) = verdict.problems
    assert (problem.code, problem.subject, verdict.status) == (code, subject, status)
    assert says in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    ("facts", "starved"),
    [
        (pair(enabled=False, reason="broken"), "has never succeeded"),
        (pair(enabled=False, last_success=1.0), None),
        (pair("fresh", enabled=False, last_success=1.0), "cannot succeed again"),
        (pair(mode="triggered", enabled=False), None),
        (pair(mode="triggered", live=True, enabled=False), "has never succeeded"),
    ],
)
def test_a_worker_that_waits_for_a_disabled_one_is_named_with_the_remedy(
    facts: HealthFacts, starved: str | None
) -> None:
    problems = {problem.code: problem for problem in judge(facts, NOW).problems}
    assert problems.keys() == {"worker_disabled"} | ({"worker_starved"} if starved else set())
    if starved:
        assert problems["worker_starved"].subject == "b"
        assert f"depends on a, which is disabled and {starved}" in problems["worker_starved"].message
        assert "enable_worker('a')" in problems["worker_starved"].remedy


@pytest.mark.parametrize(
    ("waits", "needed", "starved"),
    [
        (11.0, {}, True),
        (9.0, {}, False),
        (None, {}, False),
        (11.0, {"live": True}, False),
        (11.0, {"mode": "scheduled"}, False),
        (11.0, {"last_success": 1.0}, False),
    ],
)
def test_a_job_that_waits_for_a_worker_that_nothing_runs_is_a_problem(
    waits: float | None, needed: dict[str, Any], *, starved: bool
) -> None:
    mode = WorkerExecutionMode(needed.pop("mode", "triggered"))
    live, state = needed.pop("live", False), WorkerState(worker="a", **needed)
    a = WorkerFacts(config=WorkerConfig(name="a", execution_mode=mode), state=state, live=live)
    since = None if waits is None else NOW - waits
    config = WorkerConfig(name="b", depends_on=["a"])
    b = WorkerFacts(config=config, state=WorkerState(worker="b"), live=True, waits_since=since)
    problems = judge(HealthFacts(workers=[a, b]), NOW).problems
    assert [(problem.code, problem.subject) for problem in problems] == ([("worker_starved", "b")] if starved else [])
    assert all("trigger_worker('a')" in problem.remedy for problem in problems)


def test_without_a_leader_a_late_schedule_is_not_a_second_problem_at_once() -> None:
    facts = worker(next_due=NOW - 30)
    facts.leader = False
    assert [problem.code for problem in judge(facts, NOW).problems] == ["no_leader"]
    facts = worker(next_due=NOW - 61)
    facts.leader = False
    assert [problem.code for problem in judge(facts, NOW).problems] == ["no_leader", "schedule_missed"]


def test_the_critical_come_first_and_decide() -> None:
    facts = HealthFacts(
        pools=[PoolFacts(name="a", dead=1), PoolFacts(name="b", served=False, queued=1)],
        instances=[InstanceFacts(id="i", node="n", pool="p", last_beat_at=0, ttl=15)],
    )
    verdict = judge(facts, NOW)
    assert verdict.status == "failing"
    assert [problem.code for problem in verdict.problems] == ["instance_silent", "pool_unserved", "dead_letters"]


def test_a_store_that_rejects_writes_comes_before_what_follows_from_it() -> None:
    facts = HealthFacts(
        lost={"a": LostNode(NOW - 60, "h")},
        store_faults={"this process": WriteFault("it is read-only", NOW - 5)},
        leader=False,
        leaderless_since=NOW - 40,
    )
    assert [one.code for one in judge(facts, NOW).problems] == ["store_failing", "node_lost", "no_leader"]


def test_a_paused_pool_is_not_also_starved_or_unserved() -> None:
    verdict = judge(pool(paused=True, served=False, queued=3, oldest_wait_seconds=9999.0), NOW)
    assert [problem.code for problem in verdict.problems] == ["pool_paused"]


def gate(code: str, by: str, jobs: int = 290, **more: Any) -> Gate:
    return Gate(code=code, by=by, worker="send", why=f"{code} of {by}", jobs=jobs, **more)


LATE: dict[str, Any] = {"queued": 300, "oldest_wait_seconds": 301.0, "slots": 8, "running": 8, "max_workers": 8}

REMEDIES = [
    (gate("rate_limit", "send", per_second=5.0), "worker:send", "raise rate_limit of send"),
    (gate("max_running", "send"), "worker:send", "raise max_running of send"),
    (gate("concurrency_key", "send"), "worker:send", "spread the keys"),
    (gate("breaker", "smtp"), "breaker:smtp", "fix what breaker smtp guards"),
    (gate("disabled", "send"), "worker:send", "shiftwork enable send"),
    (gate("dependency", "login"), "worker:login", "why login does not succeed"),
    (gate("blocked", "backup"), "worker:backup", "see what backup does"),
    (gate("paused", "p"), "pool:p", "shiftwork resume p"),
    (gate("unserved", "send"), "worker:send", "start a node whose app registers send"),
]


@pytest.mark.parametrize(("held", "target", "remedy"), REMEDIES, ids=[row[0].code for row in REMEDIES])
def test_a_backlog_behind_a_gate_names_the_gate_and_its_remedy(held: Gate, target: str, remedy: str) -> None:
    (problem,) = judge(pool(gate=held, **LATE), NOW).problems
    assert (problem.code, problem.target) == ("pool_starved", target)
    assert f"of 300 queued, 290 are held: {held.why}" in problem.message
    assert remedy in problem.remedy
    assert "more slots help at most the other 10" in problem.remedy
    assert "raise max_workers" not in problem.remedy
    (problem,) = judge(pool(gate=held, **{**LATE, "running": 7}), NOW).problems
    assert "more slots do not help" in problem.remedy, "one is free"


def test_the_time_that_a_rate_limit_takes_for_the_queue_is_reported() -> None:
    (problem,) = judge(pool(gate=gate("rate_limit", "send", per_second=5.0), **LATE), NOW).problems
    assert "the queue takes about 58 s at this rate" in problem.remedy


def test_a_backlog_that_waits_for_slots_asks_for_slots() -> None:
    (problem,) = judge(pool(**LATE), NOW).problems
    assert (problem.code, problem.target, problem.since) == ("pool_starved", "pool:p", NOW - 1)
    assert "300 queued, 8 of 8 slots are busy" in problem.message
    assert "raise max_workers, 8 now (shiftwork scale p --max" in problem.remedy


LATE_IN_A_SHORT_TIME: dict[str, Any] = {**LATE, "target_latency_seconds": 5.0, "oldest_wait_seconds": 6.0}


def test_more_slots_are_not_advised_before_it_is_known_that_runs_do_not_hang() -> None:
    hung = pool(newest_start=NOW - 6, usual_seconds=0.06, eldest="7", **LATE_IN_A_SHORT_TIME)
    (problem,) = judge(hung, NOW).problems
    assert problem.code == "pool_starved", "too early to call it stuck"
    assert "8 of 8 slots are busy; nothing has ended for 6 s (usual: 60 ms)" in problem.message
    assert problem.remedy.startswith("see whether its runs hang: shiftwork stack 7")
    assert "max_workers" not in problem.remedy
    (first,) = judge(pool(newest_start=NOW - 6, untimed=True, eldest="7", **LATE_IN_A_SHORT_TIME), NOW).problems
    assert "no run has ended before" in first.message
    assert "shiftwork stack 7" in first.remedy


def test_a_silent_node_hands_its_jobs_only_to_nodes_that_are_there() -> None:
    def known(name: str, age: float) -> NodeFacts:
        return NodeFacts(name=name, host="h", last_beat_at=NOW - age, ttl=15)

    (alone,) = judge(HealthFacts(nodes=[known("a", 13)]), NOW).problems
    assert "no other node is there to run them: start one" in alone.remedy
    (one,) = judge(HealthFacts(nodes=[known("a", 13), known("b", 1)]), NOW).problems
    assert "other nodes run them once its lease has ended" in one.remedy


def test_slots_whose_runs_end_as_usual_are_too_few() -> None:
    (problem,) = judge(pool(newest_start=NOW - 6, usual_seconds=2.0, **LATE_IN_A_SHORT_TIME), NOW).problems
    assert "nothing has ended" not in problem.message
    assert problem.remedy.startswith("raise max_workers")


def test_a_pool_that_can_still_grow_needs_no_larger_bound() -> None:
    (problem,) = judge(pool(**{**LATE, "max_workers": 20}), NOW).problems
    assert problem.remedy == "wait while the pool grows by itself, to at most 20 slots; if it does not, add a node"


def test_jobs_that_wait_although_slots_are_free_do_not_need_slots() -> None:
    (problem,) = judge(pool(**{**LATE, "running": 3}), NOW).problems
    assert problem.remedy.startswith("find out why they wait although slots are free: shiftwork jobs --status queued")


def test_jobs_that_wait_ten_times_their_target_are_critical() -> None:
    late = {**LATE, "target_latency_seconds": 5.0}
    assert judge(pool(**{**late, "oldest_wait_seconds": 50.0}), NOW).status == "degraded"
    assert judge(pool(**{**late, "oldest_wait_seconds": 51.0}), NOW).status == "failing"
    paused = pool(**{**late, "oldest_wait_seconds": 51.0, "paused": True, "paused_at": NOW - 60})
    assert [(one.severity, one.since) for one in judge(paused, NOW).problems] == [("critical", NOW - 60)]


def test_one_cause_is_one_row_and_that_has_the_backlog() -> None:
    opened = BreakerState(open=True, until=NOW + 20, failed_at=(1.0,), opened_at=NOW - 400)
    facts = pool(gate=gate("breaker", "smtp"), **{**LATE, "target_latency_seconds": 5.0})
    facts.breakers = {"smtp": opened}
    (problem,) = judge(facts, NOW).problems
    assert (problem.code, problem.severity, problem.target, problem.since) == (
        "breaker_open",
        "critical",
        "breaker:smtp",
        NOW - 400,
    )
    assert "the oldest job of pool p has waited 301 s, more than 5 s; of 300 queued, 290 are held" in problem.message
    facts.pools = pool(**LATE).pools
    assert [one.code for one in judge(facts, NOW).problems] == ["breaker_open", "pool_starved"], "another cause"
    gone = pool(gate=gate("unserved", "gone", 300), **{**LATE, "running": 0, "target_latency_seconds": 5.0})
    gone.unknown = {"gone": UnknownFacts(300, NOW - 301)}
    (problem,) = judge(gone, NOW).problems
    assert (problem.code, problem.severity, problem.since) == ("worker_unknown", "critical", NOW - 301)
    assert problem.message.startswith("300 jobs wait for worker gone, which no running node has; the oldest job of")
    stuck = pool(newest_start=NOW - 200, usual_seconds=0.1, **LATE)
    assert [one.code for one in judge(stuck, NOW).problems] == ["pool_stuck"]


def test_a_worker_that_fails_behind_its_open_breaker_is_part_of_the_breakers_row() -> None:
    facts = worker(last_error="ValueError: 503", last_error_at=NOW - 3, retrying=1)
    (alone,) = judge(facts, NOW).problems
    assert alone.code == "worker_failing"
    known = facts.workers[0]
    for breaker, name in ((Breaker(name="bank"), "bank"), (Breaker(), "w")):
        facts.workers = [replace(known, config=replace(known.config, breaker=breaker))]
        facts.breakers = {name: BreakerState(open=True, until=NOW + 20, failed_at=(1.0,))}
        (problem,) = judge(facts, NOW).problems
        assert (problem.code, problem.target) == ("breaker_open", f"breaker:{name}")
        assert problem.message.endswith("; w fails with ValueError: 503")


def test_expired_jobs_lead_to_the_cancelled_jobs_of_their_pool() -> None:
    (problem,) = judge(pool(expired=12, gate=gate("breaker", "smtp"), queued=3), NOW).problems
    assert (problem.code, problem.target) == ("jobs_expired", "cancelled:p")
    assert "fix what breaker smtp guards" in problem.remedy


def test_dead_letters_of_several_pools_are_one_row() -> None:
    facts = HealthFacts(pools=[PoolFacts(name="a", dead=1), PoolFacts(name="b", dead=1200)])
    (problem,) = judge(facts, NOW).problems
    assert (problem.code, problem.target) == ("dead_letters", "dead")
    assert problem.message == "1,201 jobs of 2 pools in the dead-letter queue: b (1,200), a (1)"
    (alone,) = judge(pool(dead=4), NOW).problems
    assert (alone.subject, alone.target) == (problem.subject, "dead:p"), "the same row, however many pools it is about"


def test_without_any_node_all_pools_are_one_row() -> None:
    idle = PoolFacts(name="a", served=False)
    waiting = PoolFacts(name="b", served=False, queued=7, oldest_wait_seconds=20.0)
    (problem,) = judge(HealthFacts(pools=[idle, waiting]), NOW).problems
    assert problem.message == "no live instance serves 2 pools: b (7 queued), a (0 queued)"
    assert (problem.severity, problem.target, problem.since) == ("critical", "pool:b", NOW - 20)


def test_the_older_comes_first_among_the_equally_severe_and_what_has_no_time_last() -> None:
    facts = HealthFacts(
        lost={"b": LostNode(NOW - 40, "h"), "a": LostNode(NOW - 20, "h")},
        breakers={"x": BreakerState(open=True, until=NOW, opened_at=NOW - 5)},
        pools=[PoolFacts(name="p", dead=1, paused=True, paused_at=NOW - 500)],
    )
    problems = judge(facts, NOW).problems
    assert [(one.code, one.subject, one.since) for one in problems] == [
        ("node_lost", "b", NOW - 40),
        ("node_lost", "a", NOW - 20),
        ("pool_paused", "p", NOW - 500),
        ("breaker_open", "x", NOW - 5),
        ("dead_letters", "dead letters", None),
    ]


@pytest.mark.parametrize("facts", [row[0] for row in WRONG], ids=[row[1] for row in WRONG])
def test_every_problem_leads_to_where_it_is_solved(facts: HealthFacts) -> None:
    kinds = {"pool", "worker", "node", "flow", "breaker", "cancelled", "dead", "store", "leader"}
    assert {problem.target.partition(":")[0] for problem in judge(facts, NOW).problems} <= kinds
