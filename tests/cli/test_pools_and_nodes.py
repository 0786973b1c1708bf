"""nodes, drain, scale, pools: of a node that really runs."""

import re
from typing import Any

import pytest

from shiftwork import JobStatus
from tests.cli.terminal import URL, Terminal, in_shop, until
from tests.polling import wait_until

LONG = 40.0


def pool(terminal: Terminal, name: str = "images") -> dict[str, Any]:
    """A pool as `shiftwork pools` has it."""
    (found,) = [one for one in terminal.json("pools")["pools"] if one["name"] == name]
    return dict(found)


def node(terminal: Terminal) -> dict[str, Any]:
    """The one node there is."""
    (found,) = terminal.json("nodes")["nodes"]
    return dict(found)


def test_no_nodes(shop: Terminal) -> None:
    result = shop.run("nodes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "shiftwork run MODULE:NAME" in result.stderr
    assert shop.json("nodes") == {"nodes": []}
    assert "there is no live node 'x': there are none" in shop.refused("drain", "x")


def test_a_node_is_seen_drained_and_taken_back(shop: Terminal) -> None:
    shop.node("--label", "gpu", "--label", "ssd")
    wait_until(lambda: len(node(shop)["runs"]) == 2)
    seen = node(shop)
    assert (seen["leads"], seen["status"], seen["labels"]) == (True, "serving", ["gpu", "ssd"])
    assert seen["hosts"] == ["default", "images"]
    assert [(run["pool"], run["workers"]) for run in seen["runs"]] == [("default", 5), ("images", 1)]
    name = seen["name"]
    told = shop.ok("nodes")
    assert re.search(
        rf"^{name} .* yes .* GiB +\d+ MiB +gpu, ssd +.* serving +default 5 slots; images 1 slot$",
        told,
        re.MULTILINE,
    )

    job = shop.json("enqueue", "linger", "name=rude")["job"]["id"]
    until(job, JobStatus.PROCESSING)
    draining = shop.start("drain", name[:-1], "--wait", "--reason", "new kernel", "--store", URL)
    draining.wait_for(f"node {name} still runs default 1 slot, 1 busy", within=LONG)
    waiting = shop.json("enqueue", "resize", "path=a.png")["job"]["id"]
    assert node(shop)["status"] == "draining"
    assert re.search(rf"^{name} .* draining for \d+ s ", shop.ok("nodes"), re.MULTILINE)
    shop.ok("cancel", job)
    assert draining.end(within=LONG) == 0
    assert draining.lines[-1].startswith(f"node {name} is drained and empty")
    assert node(shop)["runs"] == []
    assert in_shop(lambda app: app.get_job(waiting)).status is JobStatus.QUEUED
    told = shop.ok("status")
    assert "every node that could serve pool images is drained or stopping; 1 queued" in told
    assert "shiftwork drain NODE --undo" in told

    assert shop.ok("drain", name, "--undo") == f"node {name} takes work again\n"
    until(waiting, JobStatus.COMPLETED, within=LONG)
    drained = [event for event in shop.json("events")["events"] if event["name"] == "node.drained"]
    assert [(event["data"]["drained"], event["data"].get("reason")) for event in drained] == [
        (True, "new kernel"),
        (False, None),
    ]


def test_waiting_for_an_empty_node_has_an_end(shop: Terminal) -> None:
    shop.node()
    job = shop.json("enqueue", "linger", "name=rude")["job"]["id"]
    until(job, JobStatus.PROCESSING)
    told = shop.refused("drain", node(shop)["name"], "--wait", "--timeout", "0.2")
    assert "was not empty in time: it still runs default" in told
    assert node(shop)["status"] == "draining"


@pytest.mark.parametrize(
    "words", [["--undo", "--wait"], ["--undo", "--reason", "x"], ["--timeout", "5"], ["--wait", "--timeout", "soon"]]
)
def test_options_that_do_not_go_together(shop: Terminal, words: list[str]) -> None:
    assert "Usage: shiftwork drain" in shop.refused("drain", "n", *words, code=2)


def test_bounds_are_set_followed_kept_and_reset(shop: Terminal) -> None:
    first = shop.node()
    wait_until(lambda: pool(shop)["workers"] == 1)
    told = shop.ok("scale", "images", "--min", "3")
    assert told == "pool images may have 3 to 4 slots, until: shiftwork scale images --reset\n"
    wait_until(lambda: pool(shop)["workers"] == 3)
    seen = pool(shop)
    assert (seen["min_workers"], seen["max_workers"], seen["wanted"], seen["bounds_changed"]) == (3, 4, 3, True)
    assert seen["instances"] == 1
    assert re.search(r"^images +thread +3 +3–4\* +1 ", shop.ok("pools"), re.MULTILINE)
    first.signal()
    assert first.end() == 0
    shop.node()
    wait_until(lambda: pool(shop)["workers"] == 3)

    assert shop.ok("scale", "images", "--reset") == "pool images may have 1 to 4 slots, as registered\n"
    seen = pool(shop)
    assert (seen["min_workers"], seen["max_workers"], seen["bounds_changed"]) == (1, 4, False)
    events = [event["message"] for event in shop.json("events")["events"] if event["name"] == "pool.bounds"]
    assert events == [
        "pool images may have 3 to 4 slots, set by hand; it was 1 to 4",
        "pool images may have 1 to 4 slots, as registered; it was 3 to 4",
    ]


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (["images", "--min", "5"], "min_workers (5) must not be above max_workers (4 as registered); set both", 1),
        (["images", "--min", "9", "--max", "2"], "min_workers (9) must not be above max_workers (2)", 1),
        (["images", "--min", "-1"], "min_workers must be at least 0, not -1", 1),
        (["images", "--max", "0"], "max_workers must be at least 1, not 0", 1),
        (["image", "--max", "3"], "there is no pool 'image': did you mean 'images'?", 1),
        (["images", "--max", "many"], "'many' is not a valid integer", 2),
        (["images"], "nothing to change: give --min N, --max N or --reset", 2),
    ],
)
def test_wrong_bounds(shop: Terminal, words: list[str], says: str, code: int) -> None:
    assert says in shop.refused("scale", *words, code=code)
    assert pool(shop)["bounds_changed"] is False


CLINIC = """
from pathlib import Path

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")
app.register_pool("images", kind="process", min_workers=1, max_workers=1, max_jobs_per_instance=1)
app.register_pool("vast", cpu=4000.0)
app.register_pool("gpu", labels=["gpu"])
if Path("broken").exists():
    raise RuntimeError("the pillow is missing")


@app.task(pool="images")
def resize() -> None:
    Path("broken").touch()
"""


def test_what_is_wrong_with_pools_is_shown(terminal: Terminal) -> None:
    (terminal.folder / "clinic.py").write_text(CLINIC)
    running = terminal.start("run", "clinic:app")
    running.wait_for("runs 1 worker in 3 pools")
    terminal.ok("enqueue", "resize")
    running.wait_for("pool images is failing", within=LONG)
    wait_until(lambda: pool(terminal)["failing"] != [], within=LONG)
    told = terminal.ok("status")
    assert re.search(
        r"critical +the processes of pool images cannot be started on node \S+: "
        r".*RuntimeError: the pillow is missing\n"
        r" +remedy: fix the cause and restart the node",
        told,
    )
    assert re.search(r"warning +pool vast should have more slots than fit on any node: .*4000 cores", told)
    assert re.search(r"warning +no live node has the labels of pool gpu \(gpu\); 0 queued\n.*--label gpu", told)
    table = terminal.ok("pools")
    assert re.search(r"^images .* failing: .*RuntimeError: the pillow is missing$", table, re.MULTILINE)
    assert re.search(r"^vast .* 0 .* full: no suitable node has 4000 cores", table, re.MULTILINE)
    assert re.search(r"^gpu .* no node has its labels$", table, re.MULTILINE)
    assert "cannot start images" in terminal.ok("nodes")
    doctor = terminal.run("doctor")
    assert doctor.exit_code == 1
    assert "the pillow is missing" in doctor.stdout
