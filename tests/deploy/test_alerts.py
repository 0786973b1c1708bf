"""The alerts, tried by Prometheus' own tool on series as `/metrics` has them."""

import subprocess
from pathlib import Path

import pytest
import yaml

HOUR = 60
"""In minutes, one for each value of a series."""

pytestmark = pytest.mark.needs("promtool")


def firing(checkout: Path, folder: Path, alert: str, at: int, series: dict[str, str]) -> bool:
    """Whether the alert fires after this many minutes, with these series."""
    file = folder / "test.yaml"
    tried = {
        "rule_files": [str(checkout / "deploy" / "grafana" / "alerts.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": f"{at}m", "alertname": f"Shiftwork{alert}", "exp_alerts": []}],
            }
        ],
    }
    file.write_text(yaml.safe_dump(tried))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert ("SUCCESS" in told) == (done.returncode == 0)
    assert done.returncode == 0 or f'alertname="Shiftwork{alert}"' in told, told
    return done.returncode != 0


def constant(value: float) -> str:
    return f"{value}x{2 * HOUR}"


@pytest.mark.parametrize(
    ("nodes", "waited", "wanted"),
    [
        ("3x30 2x90", 2_100, True),
        ("3x30 2x90", 20, False),
        ("3x120", 2_100, False),
    ],
    ids=["a node died and jobs wait", "a node left and nothing waits", "jobs wait on live nodes"],
)
def test_a_node_that_died_is_critical_while_jobs_wait(
    checkout: Path, tmp_path: Path, nodes: str, waited: float, *, wanted: bool
) -> None:
    series = {"shiftwork_nodes": nodes, 'shiftwork_oldest_wait_seconds{pool="images"}': constant(waited)}
    assert firing(checkout, tmp_path, "NodeDiedAndJobsWait", 60, series) is wanted


@pytest.mark.parametrize(("queued", "instances", "wanted"), [(5, 0, True), (0, 0, False), (5, 1, False)])
def test_queued_jobs_that_nothing_serves_are_critical(
    checkout: Path, tmp_path: Path, queued: int, instances: int, *, wanted: bool
) -> None:
    series = {
        'shiftwork_jobs{pool="images",status="queued"}': constant(queued),
        'shiftwork_instances{pool="images"}': constant(instances),
    }
    assert firing(checkout, tmp_path, "NothingServes", 10, series) is wanted


@pytest.mark.parametrize(
    ("waited", "target", "wanted"),
    [(400, 30, True), (200, 30, False), (400, None, False), (2_000, None, True), (2_000, 3_600, True)],
)
def test_a_wait_of_ten_times_the_target_or_half_an_hour_is_critical(
    checkout: Path, tmp_path: Path, waited: float, target: float | None, *, wanted: bool
) -> None:
    series = {'shiftwork_oldest_wait_seconds{pool="images"}': constant(waited)}
    if target is not None:
        series['shiftwork_target_latency_seconds{pool="images"}'] = constant(target)
    assert firing(checkout, tmp_path, "JobsWaitFarTooLong", 20, series) is wanted


@pytest.mark.parametrize(("succeeded", "wanted"), [(900, True), (1_100, False)])
def test_a_last_success_before_the_last_run_should_have_ended_is_too_old(
    checkout: Path, tmp_path: Path, succeeded: float, *, wanted: bool
) -> None:
    series = {
        'shiftwork_worker_last_success_timestamp_seconds{worker="report"}': constant(succeeded),
        'shiftwork_worker_success_expected_timestamp_seconds{worker="report"}': constant(1_000),
    }
    assert firing(checkout, tmp_path, "LastSuccessTooOld", 30, series) is wanted


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [("-360+60x120", True), (constant(-86_400), False), ("_x20 900x100", False)],
    ids=["it was due and had its time", "it was due before it existed", "it is new"],
)
def test_a_worker_that_has_never_succeeded_is_reported_once_it_should_have(
    checkout: Path, tmp_path: Path, expected: str, *, wanted: bool
) -> None:
    series = {'shiftwork_worker_success_expected_timestamp_seconds{worker="report"}': expected}
    assert firing(checkout, tmp_path, "LastSuccessTooOld", 60, series) is wanted


@pytest.mark.parametrize(
    ("slots", "held", "wanted"),
    [(8, 0, True), (8, 250, False), (8, 150, True), (4, 0, False), (8, None, True)],
    ids=["all wait for slots", "a breaker holds most", "a breaker holds some", "it can still grow", "no gate"],
)
def test_a_full_pool_is_reported_only_while_jobs_wait_that_no_gate_holds(
    checkout: Path, tmp_path: Path, slots: int, held: int | None, *, wanted: bool
) -> None:
    series = {
        'shiftwork_jobs{pool="mail",status="queued"}': constant(300),
        'shiftwork_slots{pool="mail"}': constant(slots),
        'shiftwork_slots_max{pool="mail"}': constant(8),
    }
    if held is not None:
        series['shiftwork_backlog_held_jobs{pool="mail",gate="breaker",by="bank"}'] = constant(held)
    assert firing(checkout, tmp_path, "PoolIsFull", 30, series) is wanted


@pytest.mark.parametrize(("longest", "wanted"), [(29, False), (31, True)])
def test_no_interpolation_above_the_longest_wait_raises_an_alarm(
    checkout: Path, tmp_path: Path, longest: float, *, wanted: bool
) -> None:
    """All waits are in the bucket from 30 to 45 s: the interpolated p95 is 44 s, and the target 30 s."""
    series = {
        f'shiftwork_wait_seconds_bucket{{pool="images",le="{edge}"}}': f"0+{rate}x{2 * HOUR}"
        for edge, rate in (("20", 0), ("30", 0), ("45", 600), ("+Inf", 600))
    }
    series['shiftwork_longest_wait_seconds{pool="images"}'] = constant(longest)
    series['shiftwork_target_latency_seconds{pool="images"}'] = constant(30)
    assert firing(checkout, tmp_path, "JobsBeginLate", 40, series) is wanted


def problem(code: str, subject: str, severity: str = "critical") -> dict[str, str]:
    return {f'shiftwork_problem{{code="{code}",subject="{subject}",severity="{severity}"}}': constant(1)}


HEALTHY = {
    "shiftwork_info": constant(1),
    "shiftwork_leader": constant(1),
    "shiftwork_nodes": constant(2),
    'shiftwork_breaker_state{breaker="bank"}': constant(0),
    'shiftwork_oldest_wait_seconds{pool="mail"}': constant(1),
    'shiftwork_target_latency_seconds{pool="mail"}': constant(5),
}
STAGED: dict[str, tuple[str, dict[str, str]]] = {
    "store away": ("MetricsAbsent", {}),
    "breaker": ("BreakerOpen", {'shiftwork_breaker_state{breaker="bank"}': constant(2)}),
    "rate limit": ("JobsWaitFarTooLong", {'shiftwork_oldest_wait_seconds{pool="mail"}': constant(110)}),
    "hung slots": ("Problem", problem("pool_stuck", "images")),
    "killed node": ("NodeSilent", problem("node_lost", "a")),
    "backlog": ("Problem", problem("pool_starved", "reports")),
}


@pytest.mark.parametrize("fault", STAGED)
def test_each_fault_of_the_worst_hour_has_an_alert(checkout: Path, tmp_path: Path, fault: str) -> None:
    """The faults of `make worst`, as `/metrics` shows them."""
    alert, series = STAGED[fault]
    assert firing(checkout, tmp_path, alert, 15, HEALTHY | series if series else {}) is True
    assert firing(checkout, tmp_path, alert, 15, HEALTHY) is False
