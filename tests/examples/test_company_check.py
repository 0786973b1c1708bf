"""The day's summary is verified, so every one of its checks must be able to fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.company import check, documents, effects, journal, orders, pictures, place
from examples.company.evidence import Ended, Evidence, Finding, Step
from examples.company.journal import FOREVER, Journal, Mark, Run
from examples.company.outcome import Outcome
from shiftwork import JobStatus, PoolConfig

DONE = Ended(JobStatus.COMPLETED)
DEAD = Ended(JobStatus.DEAD, "ValueError: no")
POOLS = {name: PoolConfig(name=name, min_workers=1, max_workers=2) for name in check.POOLS}


def ran(worker: str, job: str, began: float, ended: float, how: str = "ok", *, node: int = 1) -> Run:
    return Run(worker=worker, job=job, attempt=1, node=node, process=100 + node, began=began, ended=ended, how=how)


def evidence(
    *runs: Run, marks: list[tuple[str, str, float]] | None = None, jobs: dict[str, Ended] | None = None, **more: Any
) -> Evidence:
    in_order = sorted(runs, key=lambda run: run.began)
    return Evidence(Journal(in_order, [Mark(*mark) for mark in marks or []]), jobs or {}, POOLS, **more)


def made(worker: str, id: str = "a", **payload: Any) -> dict[str, Ended]:
    """A completed job of one of the five kinds."""
    return {id: Ended(JobStatus.COMPLETED, None, worker, payload)}


def fixed(owed: int, completed: int, waiting: int) -> Outcome:
    return Outcome(owed=owed, completed=completed, waiting=waiting, samples=[])


OWED = [("owed", "a", 0.0)]
FETCHED = ran("fetch-data", "f1", 0, 1)
PROCESSED = ran("process-data", "p1", 1, 2)
KILLED = [("killed", "1", 5.0)]
SWITCHED = [("disabled", "book_order", 4.0), ("enabled", "book_order", 6.0)]
CALLS = [ran("book_order", f"c{n}", n, n + 0.5, "failed") for n in range(3)]
CALLED = [ran("book_order", f"c{n}", 7 + n, 7.5 + n) for n in range(3)]
OPEN = [("opened", "partner", 1.0), ("up", "partner", 5.0), ("closed", "partner", 7.0)]
PROBES = [ran("call_webhook", "w", n, n + 0.5, "failed") for n in (0, 2, 4)]
FLAKY = [ran("charge_card", check.FLAKY, n, n + 0.5, "failed") for n in range(2)]
BROKEN = [ran("resize_image", check.BROKEN, n, n + 0.5, "failed") for n in range(3)]
LATE = [ran("resize_image", check.LATE, n, n + 0.5, "failed") for n in range(3)]
QUEUE = [("owed", "a", 0.0), ("owed", "b", 0.0), ("owed", check.URGENT, 1.0)]
FLOOD = [ran("resize_image", f"i{n}", 2 + n, 3 + n) for n in range(10)]
FLOODED = [*(("owed", f"i{n}", 0.0) for n in range(10)), ("owed", "m", 1.0)]
GREW = tuple(Step(pool, 1, 2) for pool in check.POOLS)
SHRANK = tuple(Step(pool, 2, 1) for pool in check.POOLS)

RIGHT: list[tuple[Callable[[Evidence], Finding], Evidence]] = [
    (check.nothing_lost, evidence(ran("send_email", "a", 0, 1), marks=OWED, jobs={"a": DONE})),
    (check.nothing_lost, evidence(marks=OWED, jobs={"a": DEAD})),
    (check.nothing_lost, evidence(marks=OWED, jobs={"a": Ended(JobStatus.QUEUED)}, whole=False)),
    (check.never_beside_itself, evidence(ran("send_email", "a", 0, 1, "failed"), ran("send_email", "a", 1, 2))),
    (check.never_beside_itself, evidence(ran("w", "a", 0, 1), ran("w", "a", 6, 7, node=2), marks=KILLED)),
    (check.never_overlapped, evidence(ran("cleanup", "c1", 2, 3), PROCESSED)),
    (check.never_overlapped, evidence(whole=False)),
    (check.dependency_held, evidence(FETCHED, PROCESSED, ran("fetch-data", "f2", 1.5, 2.5))),
    (effects.mail_delivered, evidence(marks=[("mail", "a", 1.0)], jobs=made("send_email"))),
    (
        effects.mail_delivered,
        evidence(
            *(ran("send_email", "a", 4, 5, "cut"), ran("send_email", "a", 6, 7, node=2)),
            marks=[*KILLED, ("mail", "a", 4.9), ("mail", "a", 7.0)],
            jobs=made("send_email"),
        ),
    ),
    (effects.webhooks_delivered, evidence(marks=[("/webhooks 200", "a", 1.0)], jobs=made("call_webhook"))),
    (check.fixed_piled_up, evidence(fixed=fixed(10, 7, 3))),
    (check.mail_not_behind_images, evidence(*FLOOD, ran("send_email", "m", 5, 6, node=2), marks=FLOODED)),
    (check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), ran("w", "a", 8, 9), marks=KILLED, jobs={"a": DONE})),
    (check.disabled_and_enabled, evidence(*CALLS, *CALLED, marks=SWITCHED, jobs={f"c{n}": DONE for n in range(3)})),
    (
        check.breaker_opened_and_closed,
        evidence(*PROBES, ran("call_webhook", "w", 6, 6.5), marks=OPEN, jobs={"w": DONE}),
    ),
    (check.retried, evidence(*FLAKY, ran("charge_card", check.FLAKY, 3, 4), jobs={check.FLAKY: DONE})),
    (check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DEAD, "a": DONE})),
    (
        check.dead_letter_retried,
        evidence(
            *LATE, ran("resize_image", check.LATE, 6, 7), marks=[("repaired", check.LATE, 5.0)], jobs={check.LATE: DONE}
        ),
    ),
    (
        check.critical_overtook,
        evidence(
            ran("resize_image", check.URGENT, 1.1, 2),
            ran("resize_image", "a", 2, 3),
            ran("resize_image", "b", 3, 4),
            marks=QUEUE,
        ),
    ),
    (check.letters_answered, evidence(marks=[("letter", "7", 0.0)], jobs={"reply-7": DONE})),
    (check.pools_grew, evidence(steps=GREW)),
    (check.pools_shrank, evidence(steps=(*GREW, *SHRANK))),
]

WRONG: list[tuple[str, Callable[[Evidence], Finding], Evidence]] = [
    ("no jobs", check.nothing_lost, evidence()),
    ("gone from the store", check.nothing_lost, evidence(ran("send_email", "a", 0, 1), marks=OWED)),
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
    ("no mail", effects.mail_delivered, evidence()),
    ("not delivered", effects.mail_delivered, evidence(jobs=made("send_email"))),
    ("twice", effects.mail_delivered, evidence(marks=[("mail", "a", 1.0)] * 2, jobs=made("send_email"))),
    ("refused", effects.webhooks_delivered, evidence(marks=[("/webhooks 503", "a", 1.0)], jobs=made("call_webhook"))),
    ("not played", check.fixed_piled_up, evidence()),
    ("lost", check.fixed_piled_up, evidence(fixed=fixed(10, 6, 3))),
    ("no pile", check.fixed_piled_up, evidence(fixed=fixed(10, 10, 0))),
    ("behind", check.mail_not_behind_images, evidence(*FLOOD, ran("send_email", "m", 20, 21, node=2), marks=FLOODED)),
    ("shared", check.mail_not_behind_images, evidence(*FLOOD, ran("send_email", "m", 5, 6), marks=FLOODED)),
    ("no flood", check.mail_not_behind_images, evidence(ran("send_email", "m", 5, 6), marks=FLOODED)),
    ("no kill", check.killed_ran_again, evidence(PROCESSED)),
    ("not again", check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), marks=KILLED, jobs={"a": DONE})),
    ("again, in vain", check.killed_ran_again, evidence(ran("w", "a", 4, 5, "cut"), ran("w", "a", 8, 9), marks=KILLED)),
    ("not disabled", check.disabled_and_enabled, evidence(*CALLS, *CALLED)),
    ("ran while disabled", check.disabled_and_enabled, evidence(*CALLS, ran("book_order", "c9", 5, 6), marks=SWITCHED)),
    ("not completed", check.disabled_and_enabled, evidence(*CALLS, *CALLED, marks=SWITCHED)),
    ("never open", check.breaker_opened_and_closed, evidence(*PROBES, jobs={"w": DONE})),
    (
        "hammered",
        check.breaker_opened_and_closed,
        evidence(*PROBES, ran("call_webhook", "v", 2.2, 2.4, "failed"), marks=OPEN, jobs={"w": DONE, "v": DONE}),
    ),
    ("never out", check.breaker_opened_and_closed, evidence(*PROBES, marks=OPEN)),
    ("no failure", check.retried, evidence(ran("charge_card", check.FLAKY, 3, 4), jobs={check.FLAKY: DONE})),
    ("no success", check.retried, evidence(*FLAKY, jobs={check.FLAKY: DEAD})),
    ("no dead letter", check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DONE})),
    ("another one", check.only_the_broken_job_is_dead, evidence(*BROKEN, jobs={check.BROKEN: DEAD, "a": DEAD})),
    ("never repaired", check.dead_letter_retried, evidence(*LATE, jobs={check.LATE: DONE})),
    ("still dead", check.dead_letter_retried, evidence(*LATE, marks=[("repaired", check.LATE, 5.0)])),
    (
        "last",
        check.critical_overtook,
        evidence(*(ran("resize_image", j, 2, 3) for j in (check.URGENT, "a")), marks=QUEUE),
    ),
    ("unanswered", check.letters_answered, evidence(marks=[("letter", "7", 0.0)])),
    ("left", check.letters_answered, evidence(marks=[("letter", "7", 0.0)], jobs={"reply-7": DONE}, letters=1)),
    ("did not grow", check.pools_grew, evidence(steps=GREW[1:])),
    ("grew too far", check.pools_grew, evidence(steps=(*GREW, Step("mail", 2, 3)))),
    ("ran too many", check.pools_grew, evidence(*(ran("send_email", f"{n}", 0, 1) for n in range(3)), steps=GREW)),
    ("did not shrink", check.pools_shrank, evidence(steps=GREW)),
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


FROM_FILES = {effects.pictures_open, effects.documents_open, effects.exports_complete}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A company that has made one picture, one document and one export."""
    for folder in ("PICTURES", "DOCUMENTS", "EXPORTS"):
        monkeypatch.setattr(place, folder, tmp_path)
    orders.make(tmp_path / "orders.db")
    (photo,) = pictures.make_originals(tmp_path, 1)
    pictures.resize(photo, 320, tmp_path / "a.jpg")
    documents.write(tmp_path / "a.pdf", ["Statement of customer 3", *(f"line {n} (of 60)" for n in range(60))])
    orders.export(tmp_path / "orders.db", 3, tmp_path / "a.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("verify", "jobs", "file"),
    [
        (effects.pictures_open, made("resize_image", width=320), "a.jpg"),
        (effects.documents_open, made("write_pdf", customer=3), "a.pdf"),
        (effects.exports_complete, made("export_rows", customer=3), "a.csv"),
    ],
    ids=["picture", "document", "export"],
)
def test_what_was_made_is_opened(
    verify: Callable[[Evidence], Finding], jobs: dict[str, Ended], file: str, home: Path
) -> None:
    assert verify(evidence(jobs=jobs)).ok
    assert not verify(evidence()).ok, "nothing was made"
    content = (home / file).read_bytes()
    (home / file).write_bytes(content[: len(content) // 2])
    assert not verify(evidence(jobs=jobs)).ok, "half a file"
    (home / file).unlink()
    finding = verify(evidence(jobs=jobs))
    assert not finding.ok
    assert "; a does not open: " in finding.text


def test_what_was_made_must_be_what_was_asked_for(home: Path) -> None:
    assert not effects.pictures_open(evidence(jobs=made("resize_image", width=640))).ok
    assert not effects.documents_open(evidence(jobs=made("write_pdf", customer=4))).ok


def test_every_check_is_tried_both_ways() -> None:
    every = {*check.ALWAYS, *check.IN_THE_END} - FROM_FILES
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
