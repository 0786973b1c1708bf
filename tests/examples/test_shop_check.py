"""The shop's summary is verified, so every one of its checks must be able to fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.shop import check, journal
from examples.shop.check import Ended, Evidence, Finding
from examples.shop.journal import FOREVER, Journal, Mark, Run
from shiftwork import JobStatus, PoolConfig

DONE = Ended(JobStatus.COMPLETED)
DEAD = Ended(JobStatus.DEAD, "ValueError: no")
POOLS = {name: PoolConfig(name=name, min_workers=1, max_workers=2) for name in ("images", "mail")}


def ran(worker: str, job: str, began: float, ended: float, how: str = "ok", *, node: int = 1) -> Run:
    return Run(worker=worker, job=job, attempt=1, node=node, process=100 + node, began=began, ended=ended, how=how)


def evidence(
    *runs: Run, marks: list[tuple[str, str, float]] | None = None, jobs: dict[str, Ended] | None = None, **more: Any
) -> Evidence:
    in_order = sorted(runs, key=lambda run: run.began)
    return Evidence(Journal(in_order, [Mark(*mark) for mark in marks or []]), jobs or {}, POOLS, **more)


OWED = [("owed", "a", 0.0)]
FETCHED = ran("fetch-data", "f1", 0, 1)
PROCESSED = ran("process-data", "p1", 1, 2)
KILLED = [("killed", "1", 5.0)]
SWITCHED = [("disabled", "call_partner", 4.0), ("enabled", "call_partner", 6.0)]
CALLS = [ran("call_partner", f"c{n}", n, n + 0.5, "failed") for n in range(3)]
CALLED = [ran("call_partner", f"c{n}", 7 + n, 7.5 + n) for n in range(3)]
FLAKY = [ran("charge_card", check.FLAKY, n, n + 0.5, "failed") for n in range(2)]
BROKEN = [ran("image_resize", check.BROKEN, n, n + 0.5, "failed") for n in range(3)]
QUEUE = [("owed", "a", 0.0), ("owed", "b", 0.0), ("owed", check.URGENT, 1.0)]
PEAK = [ran(worker, f"{worker}{n}", 0, 1) for worker in ("image_resize", "send_mail") for n in range(2)]

RIGHT: list[tuple[Callable[[Evidence], Finding], Evidence]] = [
    (check.nothing_lost, evidence(ran("send_mail", "a", 0, 1), marks=OWED, jobs={"a": DONE})),
    (check.nothing_lost, evidence(marks=OWED, jobs={"a": DEAD})),
    (check.nothing_lost, evidence(marks=OWED, jobs={"a": Ended(JobStatus.QUEUED)}, whole=False)),
    (check.never_beside_itself, evidence(ran("send_mail", "a", 0, 1, "failed"), ran("send_mail", "a", 1, 2))),
    (check.never_beside_itself, evidence(ran("w", "a", 0, 1), ran("w", "a", 6, 7, node=2), marks=KILLED)),
    (check.never_overlapped, evidence(ran("cleanup", "c1", 2, 3), PROCESSED)),
    (check.never_overlapped, evidence(whole=False)),
    (check.dependency_held, evidence(FETCHED, PROCESSED, ran("fetch-data", "f2", 1.5, 2.5))),
    (check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), ran("w", "a", 8, 9), marks=KILLED, jobs={"a": DONE})),
    (
        check.disabled_and_enabled,
        evidence(*CALLS, *CALLED, marks=SWITCHED, jobs={f"c{n}": DONE for n in range(3)}),
    ),
    (check.retried, evidence(*FLAKY, ran("charge_card", check.FLAKY, 3, 4), jobs={check.FLAKY: DONE})),
    (check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DEAD, "a": DONE})),
    (
        check.critical_overtook,
        evidence(
            ran("image_resize", check.URGENT, 1.1, 2),
            ran("image_resize", "a", 2, 3),
            ran("image_resize", "b", 3, 4),
            marks=QUEUE,
        ),
    ),
    (check.letters_answered, evidence(marks=[("letter", "7", 0.0)], jobs={"reply-7": DONE})),
    (check.pools_scaled, evidence(*PEAK)),
]

WRONG: list[tuple[str, Callable[[Evidence], Finding], Evidence]] = [
    ("no jobs", check.nothing_lost, evidence()),
    ("gone from the store", check.nothing_lost, evidence(ran("send_mail", "a", 0, 1), marks=OWED)),
    ("completed, it is said", check.nothing_lost, evidence(marks=OWED, jobs={"a": DONE})),
    ("still waiting", check.nothing_lost, evidence(marks=OWED, jobs={"a": Ended(JobStatus.QUEUED)})),
    ("twice at once", check.never_beside_itself, evidence(ran("w", "a", 0, 2), ran("w", "a", 1, 3))),
    ("again after success", check.never_beside_itself, evidence(ran("w", "a", 0, 1), ran("w", "a", 2, 3))),
    ("overlap", check.never_overlapped, evidence(ran("cleanup", "c1", 1.5, 3), PROCESSED)),
    ("inside", check.never_overlapped, evidence(ran("cleanup", "c1", 1.2, 1.3), PROCESSED)),
    ("never ended", check.never_overlapped, evidence(ran("cleanup", "c1", 0, FOREVER, "open"), PROCESSED)),
    ("no clean-up", check.never_overlapped, evidence(PROCESSED)),
    ("before", check.dependency_held, evidence(PROCESSED, ran("fetch-data", "f1", 3, 4))),
    ("after a failure only", check.dependency_held, evidence(PROCESSED, ran("fetch-data", "f1", 0, 1, "failed"))),
    (
        "during",
        check.dependency_held,
        evidence(FETCHED, ran("fetch-data", "f2", 1.1, 3), ran("process-data", "p", 2, 3)),
    ),
    ("no kill", check.killed_ran_again, evidence(PROCESSED)),
    ("not again", check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), marks=KILLED, jobs={"a": DONE})),
    ("again, in vain", check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), ran("w", "a", 8, 9), marks=KILLED)),
    ("not disabled", check.disabled_and_enabled, evidence(*CALLS, *CALLED)),
    (
        "ran while disabled",
        check.disabled_and_enabled,
        evidence(*CALLS, ran("call_partner", "c9", 5, 6), marks=SWITCHED),
    ),
    ("not completed", check.disabled_and_enabled, evidence(*CALLS, *CALLED, marks=SWITCHED)),
    ("no failure", check.retried, evidence(ran("charge_card", check.FLAKY, 3, 4), jobs={check.FLAKY: DONE})),
    ("no success", check.retried, evidence(*FLAKY, jobs={check.FLAKY: DEAD})),
    ("no dead letter", check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DONE})),
    ("another one", check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DEAD, "a": DEAD})),
    (
        "last",
        check.critical_overtook,
        evidence(*(ran("image_resize", j, 2, 3) for j in (check.URGENT, "a")), marks=QUEUE),
    ),
    ("unanswered", check.letters_answered, evidence(marks=[("letter", "7", 0.0)])),
    ("left", check.letters_answered, evidence(marks=[("letter", "7", 0.0)], jobs={"reply-7": DONE}, letters=1)),
    ("did not grow", check.pools_scaled, evidence(ran("image_resize", "a", 0, 1), ran("send_mail", "b", 0, 1))),
    ("grew too far", check.pools_scaled, evidence(*PEAK, ran("send_mail", "b", 0, 1))),
]


@pytest.mark.parametrize(("verify", "facts"), RIGHT, ids=lambda part: getattr(part, "__name__", ""))
def test_what_is_right_passes(verify: Callable[[Evidence], Finding], facts: Evidence) -> None:
    finding = verify(facts)
    assert finding.ok, finding
    assert str(finding).startswith("✔ ")


@pytest.mark.parametrize(("verify", "facts"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_found(verify: Callable[[Evidence], Finding], facts: Evidence) -> None:
    finding = verify(facts)
    assert not finding.ok, finding
    assert str(finding).startswith("✘ ")


def test_every_check_is_tried_both_ways() -> None:
    every = {*check.ALWAYS, *check.IN_THE_END}
    assert {row[0] for row in RIGHT} == every
    assert {row[1] for row in WRONG} == every


def test_a_show_that_was_stopped_is_judged_by_what_always_holds() -> None:
    assert len(check.verify(evidence(whole=False))) == len(check.ALWAYS)
    assert len(check.verify(evidence())) == len(check.ALWAYS) + len(check.IN_THE_END)


def test_a_run_that_was_cut_ends_when_its_process_was_killed(tmp_path: Path) -> None:
    lines = [
        {
            "at": 1.0,
            "what": "begin",
            "subject": "cleanup",
            "job": "c1",
            "attempt": 1,
            "fence": 1,
            "node": 7,
            "process": 17,
        },
        {
            "at": 2.0,
            "what": "begin",
            "subject": "send_mail",
            "job": "m1",
            "attempt": 1,
            "fence": 2,
            "node": 7,
            "process": 17,
        },
        {
            "at": 3.0,
            "what": "end",
            "subject": "send_mail",
            "job": "m1",
            "attempt": 1,
            "fence": 2,
            "node": 7,
            "process": 17,
            "how": "ok",
        },
        {"at": 4.0, "what": "killed", "subject": "7"},
        {
            "at": 5.0,
            "what": "begin",
            "subject": "cleanup",
            "job": "c1",
            "attempt": 1,
            "fence": 3,
            "node": 8,
            "process": 18,
        },
    ]
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    written = journal.read(path)
    assert [(run.job, run.ended, run.how) for run in written.runs] == [
        ("c1", 4.0, "cut"),
        ("m1", 3.0, "ok"),
        ("c1", FOREVER, "open"),
    ]
    assert written.marks == [Mark("killed", "7", 4.0)]
