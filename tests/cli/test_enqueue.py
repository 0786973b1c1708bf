"""enqueue and trigger: what people type becomes a payload, and a run."""

import asyncio
import gc
import json
import re
import signal

import pytest

from shiftwork import Job, JobStatus, StoreUnavailableError
from shiftwork.cli.running import trigger
from shiftwork.cli.terminal.typed_values import arguments_of
from shiftwork.control.access.audit import current_actor
from shiftwork.control.jobs.jobs import Jobs
from tests.cli.terminal import Terminal, until


def test_enqueue_with_words(shop: Terminal) -> None:
    told = shop.ok("enqueue", "resize", "path=a.png", "width=320")
    found = re.fullmatch(r"job (\S+) of resize is queued, in pool images\n", told)
    assert found
    assert shop.json("job", found[1])["job"]["payload"] == {"path": "a.png", "width": 320}


def test_what_reads_as_json_is_json() -> None:
    words = ('text="007"', "zip=01234", "list=[1, 2]", "no=null", "empty=", "equation=a=b", "yes=true", "f=1.5")
    assert arguments_of(words, None).read(None) == {
        "text": "007",
        "zip": "01234",
        "list": [1, 2],
        "no": None,
        "empty": "",
        "equation": "a=b",
        "yes": True,
        "f": 1.5,
    }


def test_enqueue_with_a_document(shop: Terminal) -> None:
    assert shop.json("enqueue", "resize", "--payload", '{"path": "é"}')["job"]["payload"] == {"path": "é"}
    shop.ok("enqueue", "resize", "--payload", "-", stdin='{"path": "from stdin"}')
    assert shop.json("jobs", "--limit", "1")["jobs"][0]["payload"] == {"path": "from stdin"}


def test_enqueue_with_options(shop: Terminal) -> None:
    words = ("enqueue", "resize", "path=a", "--priority", "high", "--delay", "2h", "--unique-key", "a", "--id", "mine")
    first = shop.json(*words)
    assert first["created"] is True
    assert first["job"] | {"id": "mine", "status": "scheduled", "priority": "high", "unique_key": "a"} == first["job"]
    assert shop.json(*words)["created"] is False
    assert (
        shop.ok("enqueue", "resize", "path=b", "--unique-key", "a") == "job mine of resize exists already: scheduled\n"
    )
    assert "for later" in shop.ok("enqueue", "resize", "path=c", "--delay", "90")


def test_a_job_with_tags_limits_and_an_expiry_is_added_shown_found_and_changed(shop: Terminal) -> None:
    limits = ("--max-retries", "7", "--timeout", "2m", "--expires", "1h")
    job = shop.json("enqueue", "resize", "path=a", *limits, "--tag", "red", "--tag", "acme")["job"]
    shop.ok("enqueue", "resize", "path=b", "--tag", "blue")
    assert (job["tags"], job["expires_at"] > job["created_at"]) == (["red", "acme"], True)
    whole = shop.json("job", job["id"])["job"]
    assert (whole["max_retries"], whole["timeout_seconds"]) == (7, 120.0)
    told = shop.ok("job", job["id"])
    for line in ("red, acme", "7 at most, for this job", "120 s, for this job", "if it has not started"):
        assert line in told
    assert re.search(r"it expires in \d+ min if it has not started", shop.ok("explain", job["id"]))
    assert [one["id"] for one in shop.json("jobs", "--tag", "acme")["jobs"]] == [job["id"]]
    assert shop.json("cancel", "--waiting", "--tag", "red", "--yes")["changed_count"] == 1
    assert shop.json("jobs", "--tag", "blue")["jobs"][0]["status"] == "queued"
    assert "tags has the tag ' red'" in shop.refused("enqueue", "resize", "path=c", "--tag", " red")
    assert "timeout_seconds must be a time above 0" in shop.refused("enqueue", "resize", "path=c", "--timeout", "0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("enqueue resize path", "'path' is not an argument: write name=value"),
        ("enqueue resize =1", "'=1' is not an argument"),
        ("enqueue resize a=1 a=2", "'a' is given twice"),
        ("enqueue resize a=1 --payload {}", "not both"),
        ("enqueue resize --delay soon", "not a duration"),
        ("enqueue resize --delay -5", "not a duration"),
        ("enqueue resize --delay nan", "not a duration"),
        ("enqueue resize --priority urgent", "'urgent' is not one of"),
    ],
)
def test_wrong_words(words: str, said: str, shop: Terminal) -> None:
    assert said in " ".join(shop.refused(*words.split(), code=2).split())


def test_an_unknown_worker(shop: Terminal) -> None:
    assert shop.refused("enqueue", "resiz") == "shiftwork: there is no worker 'resiz': did you mean 'resize'?\n"
    assert shop.refused("trigger", "resiz") == "shiftwork: there is no worker 'resiz': did you mean 'resize'?\n"


def test_the_app_checks_types(shop: Terminal) -> None:
    def said(*words: str) -> str:
        return shop.refused("enqueue", "resize", *words, "--app", "shop", store=None)

    assert "'width'" in said("path=a", "width=wide")
    assert "takes no argument 'pth': did you mean 'path'?" in said("pth=a")
    assert "needs the argument 'path'" in said()
    assert shop.json("jobs", "--worker", "resize")["jobs"] == []


def test_a_scheduled_worker_takes_no_arguments(shop: Terminal) -> None:
    assert "takes no arguments" in shop.refused("enqueue", "fetch", "a=1")
    shop.ok("enqueue", "fetch")


def test_a_number_beyond_the_encoding(shop: Terminal) -> None:
    assert "cannot be encoded" in shop.refused("enqueue", "resize", "path=a.png", f"width={10**30}")


# ── trigger ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_trigger_waits_and_shows_how_it_ended(shop: Terminal) -> None:
    shop.node()
    told = shop.ok("trigger", "resize", "path=a.png", "width=5")
    assert re.fullmatch(r'job \S+ of resize completed in 0\.\d+ s\n"a\.png at 5"\n', told)
    job = shop.json("trigger", "fetch")["job"]
    assert (job["status"], job["cause"], job["priority"]) == ("completed", "triggered", "critical")


def test_trigger_ends_with_one_when_the_job_failed(shop: Terminal) -> None:
    shop.node()
    said = shop.refused("trigger", "resize", "path=a.png", "width=-5")
    assert re.search(r"shiftwork: job \S+ of resize is dead: ValueError: width -5 is negative", said)
    result = shop.run("trigger", "resize", "path=a.png", "width=-5", "--json")
    assert (result.exit_code, json.loads(result.stdout)["job"]["status"]) == (1, "dead")


def test_trigger_without_waiting(shop: Terminal) -> None:
    assert re.fullmatch(r"job \S+ of fetch is queued, in pool default\n", shop.ok("trigger", "fetch", "--no-wait"))
    event = shop.json("events")["events"][-1]
    assert (event["name"], event["data"]) == ("job.triggered", {"by": current_actor(), "worker": "fetch"})


def test_trigger_says_why_nothing_happens(shop: Terminal) -> None:
    said = shop.refused("trigger", "fetch", "--timeout", "1.2")
    assert "waits: no running process has worker " in said
    assert re.search(r"is not finished after 1\.2 s: no running process .*; see: shiftwork explain \S+", said)


def test_a_disabled_worker_is_not_triggered(shop: Terminal) -> None:
    shop.ok("disable", "fetch", "--reason", "too loud")
    assert "is disabled: too loud; enable it first: shiftwork enable fetch" in shop.refused("trigger", "fetch")
    assert shop.json("jobs", "--status", "queued")["jobs"] == []


def test_what_runs_already_is_not_triggered_again(shop: Terminal) -> None:
    node = shop.node()
    shop.ok("trigger", "watch", "--no-wait")
    node.wait_for("watching")
    assert "worker watch is already running; see: shiftwork jobs --worker watch" in shop.refused("trigger", "watch")


def test_what_is_triggered_may_be_cancelled(shop: Terminal) -> None:
    node = shop.node()
    trigger = shop.start("trigger", "linger", "name=one", "--store", "sqlite:///shop.db")
    node.wait_for("lingering one")
    (job,) = shop.json("jobs", "--status", "processing")["jobs"]
    shop.ok("cancel", job["id"])
    assert trigger.end() == 1
    assert trigger.lines[-1] == f"shiftwork: job {job['id']} of linger was cancelled"


def test_an_interrupted_trigger_leaves_its_job_alone(shop: Terminal) -> None:
    node = shop.node()
    trigger = shop.start("trigger", "linger", "name=two", "--store", "sqlite:///shop.db")
    node.wait_for("lingering two")
    (job,) = shop.json("jobs", "--status", "processing")["jobs"]
    trigger.wait_for(job["id"])  # it has its answer, and waits
    trigger.signal(signal.SIGINT)
    assert trigger.end() == 130
    assert f"the job continues: shiftwork job {job['id']}" in trigger.lines[-1]
    shop.ok("cancel", job["id"])
    until(job["id"], JobStatus.CANCELLED)


def test_a_trigger_whose_store_goes_away_names_its_job(
    shop: Terminal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailableError("nothing listens there")

    async def away_later(*_: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await away()

    monkeypatch.setattr(trigger, "EXPLAIN_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(Jobs, "get_explained", away)
    monkeypatch.setattr(Job, "ended", away_later)
    said = shop.refused("trigger", "fetch", code=3)
    assert re.search(r"the job continues: shiftwork job \S+.*\nshiftwork: nothing listens there", said)
    gc.collect()
    assert "never retrieved" not in caplog.text
