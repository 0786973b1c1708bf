"""Since when each problem has been there: every code has a time of its own, or the one when the leader noticed it."""

from typing import Any

import pytest

from shiftwork.core.health.health_values import (
    CODES,
    Health,
    HealthFacts,
    InstanceFacts,
    NodeFacts,
    Noticed,
    PoolFacts,
    Problem,
    StrandedFacts,
    UnknownFacts,
    WorkerFacts,
    WriteFault,
)
from shiftwork.core.health.verdict import judge, store_away
from shiftwork.core.model.doc_types import LostNode
from shiftwork.core.model.workers import WorkerConfig, WorkerState
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition

NOW = 1000.0


def pool(**facts: Any) -> HealthFacts:
    return HealthFacts(pools=[PoolFacts(name="p", **facts)])


def worker(next_due: float | None = None, **state: Any) -> HealthFacts:
    facts = WorkerFacts(config=WorkerConfig(name="w"), state=WorkerState(worker="w", **state), next_due=next_due)
    return HealthFacts(workers=[facts])


def instance(age: float, **more: Any) -> HealthFacts:
    return HealthFacts(instances=[InstanceFacts(id="i", node="n", pool="p", last_beat_at=NOW - age, ttl=15, **more)])


def node(age: float, **more: Any) -> HealthFacts:
    return HealthFacts(nodes=[NodeFacts(name="n", host="h", last_beat_at=NOW - age, ttl=15)], **more)


STARVED = HealthFacts(
    workers=[
        WorkerFacts(config=WorkerConfig(name="b", depends_on={"a": "done"}), state=WorkerState(worker="b")),
        WorkerFacts(
            config=WorkerConfig(name="a"), state=WorkerState(worker="a", enabled=False, changed_at=NOW - 10, failures=3)
        ),
    ]
)
BUSY: dict[str, Any] = {"queued": 9, "slots": 4, "running": 4, "max_workers": 4}

DATED: dict[str, tuple[HealthFacts, float]] = {
    "worker_disabled": (worker(enabled=False, changed_at=NOW - 50), NOW - 50),
    "worker_failing": (worker(last_error="boom", last_error_at=NOW - 3), NOW - 3),
    "worker_starved": (STARVED, NOW - 10),
    "worker_unknown": (HealthFacts(unknown={"w": UnknownFacts(3, NOW - 40)}), NOW - 40),
    "schedule_missed": (worker(next_due=NOW - 11), NOW - 11),
    "pool_unhosted": (pool(served=False, hosting="unknown", queued=3, oldest_wait_seconds=7.0), NOW - 7),
    "pool_unplaced": (pool(hosting="ready", unplaced="cpu", queued=3, oldest_wait_seconds=7.0), NOW - 7),
    "pool_unserved": (pool(served=False, queued=3, oldest_wait_seconds=7.0), NOW - 7),
    "pool_stuck": (pool(newest_start=NOW - 60, usual_seconds=0.1, **BUSY), NOW - 60),
    "pool_starved": (pool(oldest_wait_seconds=400.0, **BUSY), NOW - 100),
    "pool_paused": (pool(paused=True, paused_at=NOW - 5), NOW - 5),
    "node_silent": (node(age=13), NOW - 13),
    "node_lost": (HealthFacts(lost={"n": LostNode(NOW - 40, "h")}), NOW - 40),
    "instance_silent": (instance(age=16), NOW - 16),
    "breaker_open": (HealthFacts(breakers={"b": BreakerState(open=True, until=NOW + 9, opened_at=NOW - 5)}), NOW - 5),
    "no_leader": (HealthFacts(leader=False, leaderless_since=NOW - 8), NOW - 8),
    "jobs_expired": (pool(expired=12, expired_since=NOW - 120), NOW - 120),
    "jobs_stranded": (
        HealthFacts(
            stranded=[
                StrandedFacts(flow="f", jobs=2, all_counted=True, job_id="7", worker="w", status="dead", since=NOW - 70)
            ]
        ),
        NOW - 70,
    ),
    "thread_stuck": (instance(age=1, stuck_threads=1, stuck_since=NOW - 30), NOW - 30),
    "store_failing": (HealthFacts(store_faults={"node n": WriteFault("disk full", NOW - 4)}), NOW - 4),
    "store_emptied": (HealthFacts(edition=Edition("token", NOW - 90, "the store was emptied")), NOW - 90),
}
NOTICED: dict[str, HealthFacts] = {
    "dead_letters": pool(dead=4),
    "key_missing": node(age=1, keys_in_use={"k1"}),
    "pool_failing": pool(failing={"n": "ImportError: no module"}),
}
"""What only the leader can date: it records when it first saw that."""


def problem_of(facts: HealthFacts, code: str) -> Problem:
    return next(problem for problem in judge(facts, NOW).problems if problem.code == code)


def test_every_code_is_dated_by_its_facts_or_by_the_leader() -> None:
    assert store_away("refused", NOW - 20, NOW).since == NOW - 20
    assert {*DATED, *NOTICED, "store_unavailable"} == {*CODES}


@pytest.mark.parametrize("code", DATED)
def test_a_problem_says_since_when_it_has_been_there(code: str) -> None:
    facts, since = DATED[code]
    assert problem_of(facts, code).since == since


@pytest.mark.parametrize("code", NOTICED)
def test_a_problem_without_a_time_has_the_one_at_which_the_leader_first_saw_it(code: str) -> None:
    problem = problem_of(NOTICED[code], code)
    assert problem.since is None
    verdict = Health("degraded", [problem])
    assert Noticed().dated(verdict).problems[0].since is None, "the leader has not looked yet"
    noticed = Noticed().after([problem], NOW)
    later = noticed.after(noticed.dated(verdict).problems, NOW + 15)
    assert later == noticed, "a look that finds nothing new changes nothing"
    assert later.dated(verdict).problems[0].since == NOW


@pytest.mark.parametrize("hosting", ["no_node", "drained"])
def test_a_pool_is_unserved_since_its_last_instance_went_and_jobs_wait(hosting: str) -> None:
    facts: dict[str, Any] = {"served": False, "hosting": hosting, "queued": 3, "oldest_wait_seconds": 60.0}
    assert problem_of(pool(served_until=NOW - 20, **facts), "pool_unserved").since == NOW - 20
    assert problem_of(pool(served_until=NOW - 90, **facts), "pool_unserved").since == NOW - 60
    assert problem_of(pool(**facts), "pool_unserved").since == NOW - 60


def test_what_is_gone_and_comes_back_is_dated_again() -> None:
    problem = problem_of(NOTICED["dead_letters"], "dead_letters")
    noticed = Noticed().after([problem], NOW).after([], NOW + 15).after([problem], NOW + 30)
    assert noticed.dated(Health("degraded", [problem])).problems[0].since == NOW + 30


def test_what_has_a_time_of_its_own_is_not_recorded() -> None:
    facts, _ = DATED["node_lost"]
    assert Noticed().after(judge(facts, NOW).problems, NOW) == Noticed()


def test_a_dated_problem_takes_its_place_by_age() -> None:
    new, old = Problem("dead_letters", "a", "m", "r"), Problem("pool_paused", "b", "m", "r", since=NOW - 5)
    dated = Noticed({"dead_letters a": NOW - 60}).dated(Health("degraded", [old, new]))
    assert [one.code for one in dated.problems] == ["dead_letters", "pool_paused"]
