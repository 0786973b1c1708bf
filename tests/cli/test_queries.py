"""status, workers, pools, jobs, job, explain, dead, events, doctor: for people and for programs."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack, to_builtins

from shiftwork import JobStatus, StoreUnavailableError, WorkerOrchestrator
from shiftwork.cli.looking import events as cli_events
from shiftwork.cli.looking import status as cli_status
from shiftwork.control.system.events import EventPages
from shiftwork.control.system.overview import System
from shiftwork.core.doc_kinds import GATES
from shiftwork.core.jobs.flow_drawing import FlowJob, draw
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.jobs import CheckedJobOptions, LogLine, NewJob
from shiftwork.core.observing.beats import Beat, WorkerInstance
from shiftwork.core.workers.admission import Gates
from shiftwork.handles.worker import new_id
from shiftwork.serve.loading import load_app
from shiftwork.store.sqlite import SqliteStore
from shiftwork.transfer.rekeying import Rekeyed
from shiftwork.views.instances import JobStack
from shiftwork.views.shapes.flows import whole_flow_shape
from shiftwork.views.shapes.jobs import StepShape, log_shape, stack_shape
from shiftwork.views.shapes.pools import instance_shape
from tests.cli.terminal import URL, Terminal, in_shop
from tests.ports import free_port

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


async def unchecked(app: WorkerOrchestrator, payload: dict[str, Any]) -> str:
    """A job as a version of the app left it whose function took something else."""
    config, pool = (await app.workers())["resize"], (await app.pools())["images"]
    now = app.control.now()
    job = NewJob.of(config, pool, msgpack.encode(payload), CheckedJobOptions(), id=new_id(now), now=now)
    await (await app.control.store.open()).add([job], app.control.now())
    return job.id


async def guard_resize(app: WorkerOrchestrator) -> None:
    """Give a worker a breaker, as a newer version of the app does."""
    store = await app.control.store.open()
    (there,) = [doc for doc in await store.docs("gates") if doc.name == "resize"]
    gates = Gates(worker="resize", pool="images", breaker="disk")
    assert await store.put([Doc("gates", "resize", GATES.encode(gates), there.version)]) == [True]


def an_instance() -> WorkerInstance:
    return WorkerInstance(
        id="n/images#1",
        pool="images",
        node="n",
        status="busy",
        current_jobs=["j"],
        started_at=0.0,
        last_heartbeat=99.0,
        slots=1,
        completed=0,
        failed=0,
        memory=1,
        pid=1,
        cpu=None,
        lag=None,
    )


@pytest.fixture
def dead(shop: Terminal) -> list[str]:
    """Three dead jobs of two kinds, oldest first."""

    async def work(app: WorkerOrchestrator) -> list[str]:
        await app.start()
        ids = []
        for payload in ({"path": "a\x1b[31m", "width": -1}, {"path": "b", "width": -2}, {"path": "c", "width": 1}):
            job, _ = await app.control.jobs.enqueue("resize", payload)
            await job.ended(30)
            ids.append(job.id)
        broken = await unchecked(app, {"wrong": 1})
        await (await app.get_job(broken)).ended(30)
        await app.stop()
        return [*ids[:2], broken]

    return asyncio.run(work(load_app("shop")))


def waiting(worker: str = "resize", **options: Any) -> str:
    """A job that no node runs."""

    async def add(app: WorkerOrchestrator) -> str:
        return (
            await app.control.jobs.enqueue(
                worker, {"path": "a.png"} if worker == "resize" else {}, CheckedJobOptions(**options)
            )
        )[0].id

    return in_shop(add)


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_says_what_is_wrong_and_what_to_type(shop: Terminal) -> None:
    shop.ok("disable", "fetch", "--reason", "too loud")
    shop.ok("pause", "images", "--reason", "migration")
    waiting()
    told = shop.ok("status")
    assert re.search(r"^sqlite:///.*shop\.db at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$", told, re.MULTILINE)
    assert "FAILING: " in told
    assert "shiftwork run MODULE:NAME" in told
    assert "worker fetch is disabled: too loud\n            remedy: fix the cause, then: shiftwork enable fetch" in told
    assert re.search(r"^            since: \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \((now|\d+ s ago)\)$", told, re.MULTILINE)
    assert "\n            see: docs/how-to/runbook.md#problem-worker_disabled\n" in told
    assert "pool images is paused: migration; 1 queued" in told
    assert "shiftwork resume images" in told
    assert "leader   none" in told
    assert "workers  6, disabled: fetch" in told
    assert re.search(r"^images +0 +1 +0 +0 +\d s +0  paused: migration$", told, re.MULTILINE)


def test_status_in_json(shop: Terminal) -> None:
    seen = shop.json("status")
    assert INSTANT.fullmatch(seen["at"])
    assert seen["status"] == "failing"
    assert seen["leader"] is None
    assert seen["nodes"] == []
    first = seen["problems"][0]
    assert first.keys() == {"severity", "code", "subject", "message", "remedy", "see", "since", "target"}
    assert (first["severity"], first["code"]) == ("critical", "no_leader")
    assert {pool["name"] for pool in seen["pools"]} == {"default", "images"}
    assert len(seen["workers"]) == 6


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_store_that_is_away_is_what_is_wrong(terminal: Terminal, command: str) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    told = terminal.run(command, store=url)
    assert told.exit_code == 3
    assert "FAILING: 1 problem\n  critical  the store does not answer: " in told.stdout
    assert "remedy: check that it runs and can be reached" in told.stdout
    seen = terminal.run(command, "--json", store=url)
    (problem,) = json.loads(seen.stdout)["problems"]
    assert (seen.exit_code, problem["code"], problem["target"]) == (3, "store_unavailable", "store")


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_store_that_says_nothing_is_reported_with_how_long(
    shop: Terminal, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(cli_status, "STATUS_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(System, "overview", silent)
    told = shop.run(command)
    assert told.exit_code == 3
    assert re.search(r"the store has not answered for \d+ s: ", told.stdout)
    assert "since:" not in told.stdout, "the command began to ask then; the store may have been away before"


# ── workers and pools ────────────────────────────────────────────────────────────────────────────────────────────────


def test_workers(shop: Terminal) -> None:
    told = shop.ok("workers")
    assert told.splitlines()[0].split("  ")[0] == "WORKER"
    assert re.search(r"^fetch +scheduled +every hour +yes +0 +0 +0 +\S+( s ago)? +in \d+ min +-$", told, re.MULTILINE)
    assert re.search(r"^nightly .* at 03:00 every day, Europe/Vienna +yes +0 +0 +0 +never +in \d+ ", told, re.MULTILINE)
    assert re.search(r"^resize +triggered +on demand +yes +0 +0 +0 +never +-  +-$", told, re.MULTILINE)


def test_a_disabled_worker_shows_why_and_is_not_due(shop: Terminal) -> None:
    shop.ok("disable", "fetch", "--reason", "too loud")
    assert re.search(r"^fetch .* NO +0 +0 +.* -  +disabled: too loud$", shop.ok("workers"), re.MULTILINE)


def test_workers_in_json(shop: Terminal) -> None:
    workers = {worker["name"]: worker for worker in shop.json("workers")["workers"]}
    assert workers["nightly"]["depends_on"] == {"fetch": "done"}
    assert workers["nightly"]["last_run_at"] is None
    assert INSTANT.fullmatch(workers["fetch"]["last_success_at"])
    assert INSTANT.fullmatch(workers["fetch"]["next_due_at"])
    assert workers["fetch"]["schedule"] == "every hour, counted from the end of the last run"
    assert (
        workers["resize"] | {"mode": "triggered", "enabled": True, "failures": 0, "pool": "images"} == workers["resize"]
    )


def test_pools(shop: Terminal) -> None:
    waiting()
    told = shop.ok("pools")
    assert re.search(r"^default +async +0 +5 +0 +0 +0 +0 +- +0 +0 +0 +1 +0 +no node serves it$", told, re.MULTILINE)
    assert re.search(
        r"^images +thread +0 +1–4 +0 +0 +1 +0 +\d s +0 +0 +0 +0 +0 +no node serves it$", told, re.MULTILINE
    )


def test_pools_in_json(shop: Terminal) -> None:
    shop.ok("pause", "images")
    images = {pool["name"]: pool for pool in shop.json("pools")["pools"]}["images"]
    assert images | {"kind": "thread", "min_workers": 1, "max_workers": 4, "paused": True, "reason": None} == images
    assert INSTANT.fullmatch(images["paused_at"])


def test_a_store_that_knows_nothing_says_so(shop: Terminal) -> None:
    for command in ("workers", "pools"):
        result = shop.run(command, "--namespace", "empty")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "`shiftwork run` publishes" in result.stderr


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_jobs_newest_first(shop: Terminal, dead: list[str]) -> None:
    later = waiting(delay_seconds=7300.0)
    lines = shop.ok("jobs").splitlines()
    assert [line.split()[0] for line in lines[1:3]] == [later, dead[2]]
    assert re.search(r"scheduled +resize +images +0 +\S+.* +due in 2 h$", lines[1])
    assert re.search(r"dead +resize +images .*wrong", lines[2])
    assert re.search(r"completed +resize .*took 0\.\d+ s$", lines[3])


def test_jobs_by_filter(shop: Terminal, dead: list[str]) -> None:
    def found(*options: str) -> list[str]:
        return [job["id"] for job in shop.json("jobs", *options)["jobs"]]

    assert found("--status", "dead") == dead[::-1]
    assert found("--status", "dead", "--error", "negative") == [dead[1], dead[0]]
    assert found("--worker", "fetch") == ["fetch@first"]
    assert found("--pool", "default") == ["fetch@first"]
    assert len(found("--status", "dead", "--status", "completed")) == 5
    assert found("--instance", "nowhere") == []
    assert found("--payload", '"width":1') == [shop.json("jobs", "--status", "completed")["jobs"][0]["id"]]
    assert found("--payload", '"path":') == [
        job["id"] for job in shop.json("jobs", "--worker", "resize")["jobs"] if job["id"] != dead[2]
    ]
    assert found("--since", "1h", "--status", "dead") == dead[::-1]
    assert found("--until", "1h") == []
    assert found("--until", "2100-01-01", "--worker", "fetch") == ["fetch@first"]


def test_pages_of_jobs(shop: Terminal, dead: list[str]) -> None:
    page = shop.json("jobs", "--status", "dead", "--limit", "2")
    assert page["next_after"] == dead[1]
    rest = shop.json("jobs", "--status", "dead", "--limit", "2", "--after", page["next_after"])
    assert [job["id"] for job in rest["jobs"]] == [dead[0]]
    assert rest["next_after"] is None
    assert f"--after {dead[1]}" in shop.run("jobs", "--status", "dead", "--limit", "2").stderr


def test_jobs_in_either_order_with_their_places_and_their_number(shop: Terminal) -> None:
    ids = [waiting() for _ in range(3)]
    assert [job["id"] for job in shop.json("jobs", "--worker", "resize")["jobs"]] == ids[::-1]
    page = shop.json("jobs", "--order", "oldest", "--limit", "2", "--status", "queued", "--worker", "resize")
    assert [(job["id"], job["position"], job["position_exact"]) for job in page["jobs"]] == [
        (ids[0], 1, True),
        (ids[1], 2, True),
    ]
    assert (page["total"], page["next_after"]) == (3, ids[1])
    result = shop.run("jobs", "--order", "oldest", "--limit", "2", "--status", "queued", "--worker", "resize")
    assert "position 2" in result.stdout
    assert result.stderr == f"these are the oldest 2 of 3; for the next ones add: --after {ids[1]}\n"
    rest = shop.json("jobs", "--worker", "resize", "--order", "oldest", "--after", ids[1])
    assert ([job["id"] for job in rest["jobs"]], rest["jobs"][0]["position"]) == ([ids[2]], 3)


def test_no_jobs(shop: Terminal) -> None:
    result = shop.run("jobs", "--worker", "resize")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no jobs match\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("jobs --worker resiez", "there is no worker 'resiez': did you mean 'resize'?"),
        ("jobs --pool imagse", "there is no pool 'imagse': did you mean 'images'?"),
        ("jobs --flow nope", "no flow has the id 'nope'"),
        ("dead --worker resiez", "there is no worker 'resiez': did you mean 'resize'?"),
        ("dead --list --worker resiez", "there is no worker 'resiez': did you mean 'resize'?"),
        ("schedules --worker resiez", "there is no worker 'resiez': did you mean 'resize'?"),
        ("events --worker resiez", "there is no worker 'resiez': did you mean 'resize'?"),
        ("events --pool imagse", "there is no pool 'imagse': did you mean 'images'?"),
        ("events --name worker.disable", "there is no event 'worker.disable': did you mean 'worker.disabled'?"),
        ("cancel --waiting --worker resiez --yes", "there is no worker 'resiez': did you mean 'resize'?"),
        ("retry --dead --pool imagse --yes", "there is no pool 'imagse': did you mean 'images'?"),
        ("discard --dead --worker resiez --yes --json", "there is no worker 'resiez': did you mean 'resize'?"),
        ("breakers close nope", "there is no breaker 'nope': there are none"),
    ],
)
def test_an_unknown_name_in_a_filter_is_an_error(command: str, said: str, shop: Terminal) -> None:
    assert shop.refused(*command.split()).startswith(f"shiftwork: {said}")


def test_jobs_outlive_their_worker_and_are_found_by_it(shop: Terminal) -> None:
    async def leave_behind(app: WorkerOrchestrator) -> None:
        await app.control.jobs.enqueue("resize", {"path": "a.png"}, CheckedJobOptions(job_id="left"))
        store = await app.control.store.open()
        for kind in ("worker", "gates", "schema"):
            await store.erase([doc for doc in await store.docs(kind) if doc.name == "resize"])

    in_shop(leave_behind)
    assert [job["id"] for job in shop.json("jobs", "--worker", "resize")["jobs"]] == ["left"]
    assert shop.ok("cancel", "--waiting", "--worker", "resize", "--yes") == "1 of 1 job: cancelled\n"


def test_a_wrong_status_is_a_wrong_command_line(shop: Terminal) -> None:
    assert "'done' is not one of" in shop.refused("jobs", "--status", "done", code=2)


def test_a_job_whole(shop: Terminal, dead: list[str]) -> None:
    told = shop.ok("job", dead[0])
    assert "  status      dead\n" in told
    assert "  error       ValueError: width -1 is negative\n" in told
    assert '"width": -1' in told
    assert "attempt 1, raised, " in told
    assert 'raise ValueError(f"width {width} is negative")' in told
    assert "\x1b" not in told


def test_a_job_in_json(shop: Terminal, dead: list[str]) -> None:
    job = shop.json("job", dead[0])["job"]
    assert job["payload"] == {"path": "a\x1b[31m", "width": -1}
    assert (job["status"], job["attempt"], job["priority"], job["cause"]) == ("dead", 1, "normal", "enqueued")
    assert job["result"] is None
    (attempt,) = job["attempts"]
    assert attempt["kind"] == "raised"
    assert "in resize" in attempt["traceback"]
    for name in ("created_at", "run_at", "started_at", "ended_at"):
        assert INSTANT.fullmatch(job[name])


def test_a_completed_job_has_its_result(shop: Terminal, dead: list[str]) -> None:
    (job,) = shop.json("jobs", "--status", "completed", "--worker", "resize")["jobs"]
    assert shop.json("job", job["id"])["job"]["result"] == "c at 1"
    assert 'result\n  "c at 1"' in shop.ok("job", job["id"])


def test_a_payload_beyond_json_is_shown_all_the_same(shop: Terminal) -> None:
    async def add(app: WorkerOrchestrator) -> str:
        return await unchecked(app, {"path": {1: b"bytes", 2.5: float("nan")}})

    job_id = in_shop(add)
    assert "payload" in shop.ok("job", job_id)
    assert "path" in shop.json("job", job_id)["job"]["payload"]


def test_a_job_that_is_too_deep_to_show_hides_no_other(shop: Terminal) -> None:
    async def add(app: WorkerOrchestrator) -> tuple[str, str]:
        deep: Any = 0
        for _ in range(480):
            deep = [deep]
        return await unchecked(app, {"path": deep}), await unchecked(app, {"path": "shallow"})

    deep, shallow = in_shop(add)
    shown = {job["id"]: job["payload"] for job in shop.json("jobs")["jobs"]}
    assert shown[deep] == {"not shown": "it is nested more than 100 levels deep"}
    assert shown[shallow] == {"path": "shallow"}
    assert "not shown" in shop.ok("job", deep)


@pytest.mark.parametrize("command", ["job", "explain"])
def test_an_unknown_job(command: str, shop: Terminal) -> None:
    assert shop.refused(command, "nope").startswith("shiftwork: no job has the id 'nope'")


# ── explain ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_explain_why_it_does_not_run(shop: Terminal) -> None:
    job_id = waiting()
    told = shop.ok("explain", job_id)
    assert told.startswith(f"job {job_id} waits: no running process has worker resize in pool images")
    why = shop.json("explain", job_id)
    assert (why["id"], why["status"]) == (job_id, "queued")
    assert [wait["code"] for wait in why["waits"]] == ["unserved"]


def test_where_a_job_is_and_when_it_will_start(shop: Terminal) -> None:
    first, second = waiting(), waiting()
    shop.ok("pause", "images", "--reason", "migration")
    told = shop.ok("job", second)
    assert re.search(r"^  position +2 in pool images$", told, re.MULTILINE)
    assert re.search(r"^  starts +no estimate: pool images is paused: migration$", told, re.MULTILINE)
    assert "it has position 2 in its queue\n" in shop.ok("explain", second)
    seen = shop.json("job", first)["job"]
    assert (seen["position"], seen["position_exact"], seen["estimate"]) == (1, True, None)
    assert shop.json("explain", first)["estimate_basis"] == "no estimate: pool images is paused: migration"


def test_explain_several_reasons(shop: Terminal) -> None:
    job_id = waiting()
    shop.ok("pause", "images", "--reason", "migration")
    shop.ok("disable", "resize", "--reason", "broken")
    told = shop.ok("explain", job_id)
    assert f"job {job_id} is queued and waits for 2 things:" in told
    assert "migration" in told
    assert "broken" in told


def test_explain_how_it_ended(shop: Terminal, dead: list[str]) -> None:
    assert re.match(rf"job {dead[0]} is dead since .*Z after 1 attempts? .*negative", shop.ok("explain", dead[0]))


# ── dead ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_dead_jobs_are_summed_up_by_worker_and_error(shop: Terminal, dead: list[str]) -> None:
    result = shop.run("dead")
    lines = result.stdout.splitlines()
    assert re.match(rf" +2  resize .* {dead[1]}  [0-9a-f]{{24}}  ValueError: width -2 is negative", lines[1])
    assert re.match(rf" +1  resize .* {dead[2]}  [0-9a-f]{{24}}  .*wrong", lines[2])
    assert "3 dead jobs" in result.stderr
    assert "Then retry --dead" in result.stderr


def test_dead_jobs_in_json(shop: Terminal, dead: list[str]) -> None:
    summed = shop.json("dead")
    assert summed["total"] == 3
    assert summed["groups"][0] | {"count": 2, "worker": "resize", "example_id": dead[1]} == summed["groups"][0]
    assert shop.json("dead", "--error", "negative")["total"] == 2
    assert shop.json("dead", "--worker", "fetch") == {"total": 0, "groups": []}


def test_dead_jobs_one_by_one(shop: Terminal, dead: list[str]) -> None:
    listed = shop.json("dead", "--list", "--limit", "2")
    assert [job["id"] for job in listed["jobs"]] == [dead[2], dead[1]]
    assert shop.ok("dead", "--list", "--after", dead[1]).splitlines()[1].startswith(dead[0])


def test_no_dead_jobs(shop: Terminal) -> None:
    result = shop.run("dead")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no dead jobs\n")


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_events_newest_last(shop: Terminal) -> None:
    shop.ok("disable", "fetch")
    shop.ok("enable", "fetch")
    lines = shop.ok("events").splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  worker\.enabled    worker fetch is enabled \(by \S+@\S+\)", lines[-1]
    )
    assert "worker.disabled" in lines[-2]
    assert "node.started" in "\n".join(lines)


def test_events_in_json(shop: Terminal) -> None:
    shop.ok("disable", "fetch")
    everything = shop.json("events")["events"]
    newest = everything[-1]
    assert (newest["name"], newest["subject"]) == ("worker.disabled", "fetch")
    assert INSTANT.fullmatch(newest["at"])
    assert shop.json("events", "--limit", "1")["events"] == [newest]
    assert shop.json("events", "--after", str(newest["seq"] - 1))["events"] == [newest]
    assert shop.json("events", "--after", str(newest["seq"]))["events"] == []


def test_events_are_found_by_who_what_and_when(shop: Terminal, dead: list[str]) -> None:
    def found(*options: str) -> list[str]:
        return [event["name"] for event in shop.json("events", *options)["events"]]

    shop.ok("pause", "images", "--reason", "migration")
    shop.ok("disable", "fetch")
    assert found("--worker", "resize") == ["job.dead", "job.dead"], "two errors, of three jobs"
    assert found("--pool", "images")[-1] == "pool.paused"
    assert found("--name", "pool.paused", "--name", "worker.disabled") == ["pool.paused", "worker.disabled"]
    (me,) = {event["by"] for event in shop.json("events", "--name", "pool.paused")["events"]}
    assert found("--by", me) == found("--by", me.partition("@")[0]) == ["pool.paused", "worker.disabled"]
    assert found("--subject", "images") == ["pool.paused"], "about the pool itself, not its workers"
    assert found("--until", "1h", "--name", "pool.paused") == []
    assert found("--since", "1h", "--name", "pool.paused") == ["pool.paused"]
    assert "is not a time: write how long ago" in shop.refused("events", "--since", "yesterday", code=2)
    assert re.search(
        r"job\.dead +2 jobs of resize died within 1 s; the newest: ValueError: width -2", shop.ok("events")
    )


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_ends_with_one_when_something_is_critical(shop: Terminal) -> None:
    result = shop.run("doctor", "--app", "shop", store=None)
    assert result.exit_code == 1
    assert re.search(r"^durability +synchronous=normal", result.stdout, re.MULTILINE)
    assert re.search(r"^integrity +ok$", result.stdout, re.MULTILINE)
    assert re.search(r"^app +shop, 6 workers in 2 pools, can start$", result.stdout, re.MULTILINE)
    assert "no node leads" in result.stdout


def test_doctor_in_json(shop: Terminal) -> None:
    result = shop.run("doctor", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["status"]) == (1, "failing")
    assert report["findings"]["integrity"] == "ok"
    assert report["findings"]["clock"].startswith("agrees with the store's")
    assert re.fullmatch(r"[\d.]+ ms per round trip, [\d.]+ ms per write \(median of 5\)", report["findings"]["latency"])
    assert report["problems"][0]["code"] == "no_leader"


def test_doctor_reads_an_apps_configuration(shop: Terminal) -> None:
    Path("typo.py").write_text(
        "from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('sqlite:///shop.db')\n"
        "@app.worker(depends_on=['nobody'])\ndef report() -> None: ...\n"
    )
    result = shop.run("doctor", "--app", "typo", store=None)
    assert result.exit_code == 1
    assert "typo cannot start: " in result.stdout
    assert "'nobody'" in result.stdout


def test_doctor_is_content_while_all_is_well(shop: Terminal) -> None:
    shop.node()
    told = shop.ok("doctor")
    assert "OK: nothing is wrong" in told
    assert shop.json("status")["leader"] is not None
    assert JobStatus.DEAD not in told


# ── what is promised ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_field_is_documented(shop: Terminal, dead: list[str], checkout: Path) -> None:
    """`docs/cli.md` has all that `--json` prints, and no more; a user's own names (payloads, findings) aside."""

    def fields(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(fields, value))
        if not isinstance(value, dict):
            return set()
        own = {"payload", "data", "findings", "depends_on", "jobs_by_status"}
        return {*value, *(name for key, inner in value.items() if key not in own for name in fields(inner))}

    running = shop.node()
    (node,) = shop.json("nodes")["nodes"]
    drained = shop.json("drain", node["name"], "--wait")
    running.signal()
    assert running.end() == 0
    job_id = waiting()
    in_shop(guard_resize)
    documents = [
        *(shop.json(*words) for words in (["breakers"], ["breakers", "open", "disk"], ["top"])),
        {"instances": [to_builtins(instance_shape(an_instance()))]},
        {"nodes": [node | {"failing": [{"pool": "", "error": ""}]}], "failing": [{"node": "", "error": ""}]},
        drained,
        *(shop.json(*words) for words in (["status"], ["jobs"], ["dead"], ["events"], ["explain", job_id])),
        shop.json("send", job_id, "go", "1"),
        *(shop.json("job", one) for one in (job_id, dead[0])),
        {"steps": [dict.fromkeys(StepShape.__struct_fields__)]},
        to_builtins(
            whole_flow_shape(FlowRecord("", 0.0, {}), draw([FlowJob(id="", worker="", status=JobStatus.DEAD)]))
        ),
        shop.json("flows"),
        json.loads(shop.run("doctor", "--json").stdout),
        shop.json("deploy", "shop:app", store=None),
        shop.json("enqueue", "fetch"),
        shop.json("disable", "fetch"),
        shop.json("schedule", "put", "s", "fetch", "--every", "5m"),
        shop.json("schedules"),
        shop.json("schedule", "preview", "--cron", "0 3 * * *"),
        shop.json("schedule", "delete", "s"),
        shop.json("reschedule", "fetch", "--every", "30"),
        shop.json("pause", "images"),
        shop.json("scale", "images", "--max", "3"),
        shop.json("cancel", job_id),
        shop.json("token", "create", "ci", "--role", "read", "--valid", "1d"),
        shop.json("token", "list"),
        json.loads(shop.run("retry", "nope", "--json").stdout),
        shop.json("discard", "--dead", "--yes"),
        shop.json("move", URL, "--abandon", store=None),
        shop.json("move", URL, "sqlite:///new.db", store=None),
        {"progress": {"done": 1, "total": 2, "message": "", "at": ""}},
        {"legal": True, "lines": 0, "processes": 0, "jobs": 0, "runs": 0, "rules": ""},
        {"first": 1, "seeds": 1, "virtual_seconds": 0, "seconds": 0, "runs": 0, "interrupted": 0},
        {"failed": [{"seed": 0, "faults": 0, "findings": []}]},
        {"refutations": [{"rule": "", "sentence": "", "lines": [{"file": "", "line": 0}]}]},
        to_builtins(stack_shape(JobStack(job_id="", at=0.0, instance="", pid=0, stack=""))),
        {"logs": [to_builtins(log_shape(LogLine(0.0, "info", "", 1)))]},
        *(shop.json("db", command) for command in ("status", "upgrade", "sql")),
        to_builtins(Rekeyed(key="", jobs=0, rewritten=0, unreadable=0, changing=0)) | {"cancelled": 0},
        {"steps": [{"number": 1, "name": "", "phase": "", "done": True}]},
        json.loads(shop.run("probe", "live", "--probe-file", "nowhere", "--json", store=None).stdout),
    ]
    page = (checkout / "docs" / "cli.md").read_text().partition("What `--json` prints")[2]
    documented = set(re.findall(r"`([a-z0-9_]+)`", page)) - {"at", "_at", "_seconds"}
    assert fields(documents) - {"at", "not shown"} == documented


def test_a_job_is_read_once(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []
    get = SqliteStore.get

    async def counted(store: SqliteStore, ids: Sequence[str]) -> Any:
        asked.append(ids)
        return await get(store, ids)

    monkeypatch.setattr(SqliteStore, "get", counted)
    assert shop.ok("job", "fetch@first").startswith("job fetch@first\n")
    assert asked == [["fetch@first"]]


def test_following_events_continues_after_an_outage_and_in_a_store_that_was_emptied(
    shop: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def event(seq: int) -> Event:
        return Event(at=0.0, name="n", subject="s", message=f"event {seq}", seq=seq)

    kept, asked = [event(7), event(8)], 0

    async def events(_: EventPages, after: int = 0, limit: int = 100) -> list[Event]:
        nonlocal asked
        asked += 1
        if asked == 3:
            kept[:] = [event(1)]
        if asked in {2, 3}:
            raise StoreUnavailableError("nothing listens there.")
        if asked > 7:
            raise KeyboardInterrupt
        return [one for one in kept if one.seq > after][-limit:]

    monkeypatch.setattr(EventPages, "newest", events)
    monkeypatch.setattr(cli_events, "FOLLOW_SECONDS", 0.0)
    monkeypatch.setattr(cli_events, "FOLLOW_RETRY_SECONDS", 0.0)
    followed = shop.run("events", "--follow")
    assert [line.split()[-1] for line in followed.stdout.splitlines()] == ["7", "8", "1"]
    assert followed.stderr.count("nothing listens there. Waiting until it is back.") == 1


def test_a_pool_has_no_more_busy_slots_than_slots(shop: Terminal) -> None:
    async def claim_ahead(app: WorkerOrchestrator) -> None:
        store, now = await app.control.store.open(), app.control.now()
        for _ in range(3):
            await app.control.jobs.enqueue("linger", {"name": "n"})
        await store.beat([Beat(instance="n/d#1", node="n", pool="default", slots=2, busy=2, status="busy")], 60, now)
        assert len((await store.claim("n/d#1", "default", 3, now + 1, ["linger"])).jobs) == 3

    in_shop(claim_ahead)
    assert re.search(r"^default +async +2 → 0 +5 +1 +2 ", shop.ok("pools"), re.MULTILINE), "slots, bounds, one, busy"
    assert re.search(r"^default +2 +0 +0 +2 ", shop.ok("status"), re.MULTILINE), "slots, queued, waiting, running"
    top = shop.ok("top", "--once")
    assert re.search(r"^default +async +2 → 0 +5 +2 ", top, re.MULTILINE), "slots, bounds, busy"
    assert len(re.findall(r" linger +default .* n/d#1 ", top)) == 2, "the running jobs, without the one claimed ahead"
