"""A rolling restart: start the new node, SIGTERM the old one. Nothing is lost; what can finish does."""

import signal

import pytest

from shiftwork import JobStatus
from tests.deploy.conftest import Nodes
from tests.polling import wait_until

GRACE = 60.0
"""Far more than any of the short jobs takes, also on a slow machine."""


def length(number: int) -> float:
    """50 to 300 ms; the second fifty take longer, so that some run when the old node is stopped."""
    return 0.05 + (number * 37 % 26) / 100 + (0.4 if 50 <= number < 100 else 0.0)


@pytest.fixture(
    params=[
        pytest.param("nodes", id="sqlite"),
        pytest.param("nodes_on_valkey", id="valkey", marks=pytest.mark.soak),
        pytest.param("nodes_on_postgres", id="postgres", marks=pytest.mark.soak),
    ]
)
def fleet(request: pytest.FixtureRequest) -> Nodes:
    found: Nodes = request.getfixturevalue(request.param)
    return found


def load(fleet: Nodes, first: int, last: int) -> list[str]:
    """Two thirds in coroutines, a third in processes."""
    return fleet.enqueue(
        *(fleet.nap(n, length(n)) if n % 3 else fleet.call(n, length(n)) for n in range(first, last)),
    )


def test_under_load_every_job_runs_exactly_once(fleet: Nodes) -> None:
    old = fleet.up("--stop-timeout", str(GRACE))
    ids = load(fleet, 0, 50)
    wait_until(lambda: fleet.ended_on(old) >= 10)

    new = fleet.up("--stop-timeout", str(GRACE))
    ids += load(fleet, 50, 100)
    wait_until(lambda: fleet.running_on(old) >= 2)
    old.signal(signal.SIGTERM)
    assert old.end(within=GRACE) == 0, old.log()
    ids += load(fleet, 100, 120)

    fleet.completed(ids)
    jobs = fleet.jobs(ids)
    assert {job.status for job in jobs} == {JobStatus.COMPLETED}
    assert {job.attempt for job in jobs} == {1}
    once = dict.fromkeys(range(120), 1)
    assert fleet.times("start") == once
    assert fleet.times("end") == once
    assert fleet.ended_on(old) > 0
    assert fleet.ended_on(new) > 0
    new.signal(signal.SIGTERM)
    assert new.end() == 0


@pytest.mark.parametrize("kind", ["process", pytest.param("async", marks=pytest.mark.soak)])
def test_a_job_that_outlasts_the_grace_period_is_handed_over_uncounted(kind: str, nodes: Nodes) -> None:
    old = nodes.up("--stop-timeout", "1")
    [job_id] = nodes.enqueue(nodes.call(1, 60.0) if kind == "process" else nodes.nap(1, 60.0))
    wait_until(lambda: nodes.running_on(old) == 1)

    new = nodes.up("--stop-timeout", "30")
    old.signal(signal.SIGTERM)
    assert old.end(within=30) == 0, old.log()
    nodes.completed([job_id])
    [job] = nodes.jobs([job_id])
    assert job.attempt == 1, "the run that was cut off was counted"
    assert nodes.runs("start") == {(1, old.pid): 1, (1, new.pid): 1}
    assert nodes.runs("end") == {(1, new.pid): 1}
    new.signal(signal.SIGTERM)
    assert new.end() == 0


def test_a_second_signal_hands_over_now(nodes: Nodes) -> None:
    old = nodes.up("--stop-timeout", "600")
    [job_id] = nodes.enqueue(nodes.call(1, 60.0))
    wait_until(lambda: nodes.running_on(old) == 1)
    new = nodes.up()
    old.signal(signal.SIGTERM)
    old.wait_for("a second signal stops them now")
    old.signal(signal.SIGTERM)
    assert old.end(within=30) == 0
    nodes.completed([job_id])
    assert nodes.runs("end") == {(1, new.pid): 1}
    assert nodes.jobs([job_id])[0].attempt == 1
