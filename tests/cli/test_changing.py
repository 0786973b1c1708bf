"""enable, disable, forget, pause, resume, cancel, retry, discard: by name or id, and in bulk."""

import json

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.cli.changing import changes
from shiftwork.control.access.audit import current_actor
from shiftwork.core.doc_kinds import WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal, in_shop


def add(n: int = 1, *, delay: float = 0.0) -> list[str]:
    """Jobs that no node runs."""

    async def work(app: WorkerOrchestrator) -> list[str]:
        options = CheckedJobOptions(delay_seconds=delay)
        return [
            (await app.control.jobs.enqueue("resize", {"path": f"{number}.png"}, options))[0].id for number in range(n)
        ]

    return in_shop(work)


def bury(n: int) -> None:
    """Dead jobs, of errors that differ."""

    async def work(app: WorkerOrchestrator) -> None:
        node = load_app("shop")
        await node.start()
        for number in range(n):
            job, _ = await app.control.jobs.enqueue("resize", {"path": "x", "width": -1 - number})
            await job.ended(30)
        await node.stop()

    in_shop(work)


def status(terminal: Terminal, job_id: str) -> str:
    return str(terminal.json("job", job_id)["job"]["status"])


# ── workers and pools ────────────────────────────────────────────────────────────────────────────────────────────────


def test_disable_and_enable(shop: Terminal) -> None:
    assert "worker fetch is disabled: too loud" in shop.ok("disable", "fetch", "--reason", "too loud")
    fetch = next(worker for worker in shop.json("workers")["workers"] if worker["name"] == "fetch")
    assert (fetch["enabled"], fetch["reason"], fetch["next_due_at"]) == (False, "too loud", None)
    assert "worker fetch is enabled" in shop.ok("enable", "fetch")
    assert shop.json("disable", "fetch") == {"worker": "fetch", "enabled": False, "reason": "disabled by hand"}
    assert shop.json("enable", "fetch") == {"worker": "fetch", "enabled": True, "reason": None}


def test_forget(shop: Terminal) -> None:
    async def leave_behind(app: WorkerOrchestrator) -> None:
        store = await app.control.store.open()
        await store.put([Doc("worker", name, WORKER.encode(WorkerConfig(name=name))) for name in ("gone", "lost")])

    in_shop(leave_behind)
    assert "worker gone is forgotten; its ended jobs stay" in shop.ok("forget", "gone")
    assert shop.json("forget", "lost") == {"worker": "lost"}
    assert {"gone", "lost"}.isdisjoint(worker["name"] for worker in shop.json("workers")["workers"])
    assert "there is no worker 'gone'" in shop.refused("forget", "gone")


def test_pause_and_resume(shop: Terminal) -> None:
    assert "pool images is paused" in shop.ok("pause", "images", "--reason", "migration")
    assert shop.json("pause", "images", "--reason", "again") == {"pool": "images", "paused": True, "reason": "again"}
    assert "pool images is resumed" in shop.ok("resume", "images")
    assert shop.json("resume", "images") == {"pool": "images", "paused": False, "reason": None}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("disable fetc", "there is no worker 'fetc': did you mean 'fetch'?"),
        ("enable fetc", "there is no worker 'fetc': did you mean 'fetch'?"),
        ("pause imagse", "there is no pool 'imagse': did you mean 'images'?"),
        ("resume imagse", "there is no pool 'imagse': did you mean 'images'?"),
    ],
)
def test_unknown_names(command: str, said: str, shop: Terminal) -> None:
    assert shop.refused(*command.split()) == f"shiftwork: {said}\n"


# ── jobs by id ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cancel_retry_discard(shop: Terminal) -> None:
    (job_id,) = add()
    assert shop.ok("cancel", job_id) == f"job {job_id} of resize is cancelled\n"
    assert shop.ok("retry", job_id) == f"job {job_id} of resize is queued again\n"
    assert shop.json("cancel", job_id) == {"changed": [job_id], "refused": []}
    assert shop.ok("discard", job_id) == f"job {job_id} is discarded\n"
    assert "no job has the id" in shop.refused("job", job_id)
    told = [event for event in shop.json("events")["events"] if event["data"].get("id") == job_id]
    assert [event["subject"] for event in told] == ["cancelled", "retried", "cancelled", "discarded"]
    assert {event["data"]["by"] for event in told} == {current_actor()}


def test_retry_with_another_payload(shop: Terminal) -> None:
    (job_id,) = add(delay=60)
    shop.ok("retry", job_id, "--payload", '{"path": "b.png", "width": 5}')
    assert shop.json("job", job_id)["job"]["payload"] == {"path": "b.png", "width": 5}


def test_a_payload_is_checked_where_the_app_is_known(shop: Terminal) -> None:
    (job_id,) = add(delay=60)
    said = shop.refused("retry", job_id, "--payload", '{"width": "wide"}', "--app", "shop", store=None)
    assert said.startswith("shiftwork: resize ")
    assert status(shop, job_id) == "scheduled"


def test_each_of_several_is_answered(shop: Terminal) -> None:
    first, second = add(2)
    shop.ok("cancel", first)
    result = shop.run("cancel", first, "nope", second)
    assert result.exit_code == 1
    assert result.stdout == f"job {second} of resize is cancelled\n"
    assert f"shiftwork: job {first} is cancelled: it has ended already" in result.stderr
    assert "shiftwork: no job has the id 'nope'" in result.stderr
    answer = json.loads(shop.run("retry", first, "nope", "--json").stdout)
    assert answer["changed"] == [first]
    assert [refused["id"] for refused in answer["refused"]] == ["nope"]


def test_a_live_job_is_not_discarded(shop: Terminal) -> None:
    (job_id,) = add()
    assert "only ended jobs can be discarded" in shop.refused("discard", job_id)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("retry", "No jobs selected: give IDs, or --dead"),
        ("cancel", "No jobs selected: give IDs, or --waiting, --all or --flow"),
        ("discard --worker resize", "No jobs selected: give IDs, or --dead"),
        ("retry x --dead", "name jobs by ID, or select them with --dead, --group or --flow, not both"),
        ("retry x --rate 1/s", "--rate is for many jobs"),
        ("cancel x --worker resize", "name jobs by ID, or select them"),
        ("retry a b --payload {}", "--payload is for one job"),
        ("retry a --payload [1]", "a payload is a JSON object"),
        ("retry a --payload {", "a payload is a JSON object"),
    ],
)
def test_a_selection_must_be_clear(command: str, said: str, shop: Terminal) -> None:
    assert said in " ".join(shop.refused(*command.split(), code=2).split())


# ── in bulk ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bulk_counts_and_asks_first(shop: Terminal) -> None:
    bury(3)
    result = shop.run("retry", "--dead", stdin="n\n")
    assert result.exit_code == 1
    assert "retry 3 jobs? [y/N]" in result.stderr
    assert "nothing was changed" in result.stderr
    assert shop.json("dead")["total"] == 3
    result = shop.run("retry", "--dead", stdin="y\n")
    assert (result.exit_code, result.stdout) == (0, "3 of 3 jobs: queued again\n")
    assert shop.json("dead")["total"] == 0


def test_bulk_without_anybody_to_ask_changes_nothing(shop: Terminal) -> None:
    bury(1)
    result = shop.run("discard", "--dead", stdin="")
    assert result.exit_code == 1
    assert "use --yes to skip the confirmation" in result.stderr
    assert shop.json("dead")["total"] == 1


def test_a_reason_is_kept_with_the_change(shop: Terminal) -> None:
    soon, later = add(2), add(1, delay=60)
    shop.ok("cancel", soon[0], "--reason", "wrong picture")
    shop.ok("cancel", "--waiting", "--worker", "resize", "--yes", "--reason", "wrong batch")
    events = shop.json("events", "--name", "jobs.amended")["events"]
    assert [event["data"]["reason"] for event in events] == ["wrong picture", "wrong batch"]
    assert events[0]["text"] == f"job {soon[0]} of resize was cancelled: wrong picture"
    assert events[1]["text"].startswith(
        "2 jobs were cancelled (status waiting, scheduled, queued, failed, worker resize)"
    )
    assert events[1]["text"].endswith(": wrong batch")
    assert {status(shop, job_id) for job_id in [*soon, *later]} == {"cancelled"}


def test_a_person_at_a_terminal_is_asked_for_the_reason(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    add(2)
    monkeypatch.setattr(changes, "at_terminal", lambda: True)
    result = shop.run("cancel", "--waiting", stdin="y\nwrong batch\n")
    assert (result.exit_code, "reason, for the event" in result.stderr) == (0, True)
    assert shop.json("events")["events"][-1]["data"]["reason"] == "wrong batch"


def test_bulk_by_error_and_worker(shop: Terminal) -> None:
    bury(3)
    assert shop.ok("retry", "--dead", "--error", "width -2", "--yes") == "1 of 1 job: queued again\n"
    assert shop.json("discard", "--dead", "--worker", "resize", "--yes") == {
        "matched": 2,
        "changed_count": 2,
        "until_at": None,
    }
    result = shop.run("discard", "--dead", "--worker", "resize")
    assert (result.exit_code, result.stderr) == (0, "no jobs match; nothing was changed\n")


def test_bulk_by_group_at_a_rate(shop: Terminal) -> None:
    bury(3)
    (group,) = shop.json("dead")["groups"]
    refused = shop.run("retry", "--group", group["key"], "--rate", "fast", "--yes")
    assert (refused.exit_code, "rate must be a count per time" in refused.stderr) == (1, True)
    assert shop.json("discard", "--group", "0" * 24, "--yes")["matched"] == 0
    said = shop.ok("retry", "--group", group["key"], "--rate", "1/h", "--yes")
    assert said.startswith("3 of 3 jobs: queued again, the last one due at ")
    assert sorted(job["status"] for job in shop.json("jobs", "--worker", "resize")["jobs"]) == [
        "queued",
        "scheduled",
        "scheduled",
    ]


def test_cancel_all_that_wait(shop: Terminal) -> None:
    soon, later = add(2), add(1, delay=60)
    assert shop.ok("cancel", "--waiting", "--worker", "fetch", "-y") == ""
    assert shop.ok("cancel", "--waiting", "--pool", "images", "-y") == "3 of 3 jobs: cancelled\n"
    assert {status(shop, job_id) for job_id in [*soon, *later]} == {"cancelled"}
    assert shop.json("events")["events"][-1]["name"] == "jobs.amended"
