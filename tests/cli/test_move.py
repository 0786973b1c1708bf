"""move: what is said, refused and printed. That everything arrives is tested in tests/store/test_moving.py."""

import asyncio
import signal
import subprocess
import sys

import pytest

from shiftwork import JobStatus, MoveError, WorkerOrchestrator
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal, in_shop

OLD, NEW = "sqlite:///shop.db", "sqlite:///new.db"


def add(n: int) -> None:
    async def work(app: WorkerOrchestrator) -> None:
        for number in range(n):
            await app.control.jobs.enqueue("resize", {"path": f"{number}.png"})

    in_shop(work)


def test_everything_moves_and_it_says_so(shop: Terminal) -> None:
    add(3)
    shop.ok("pause", "images", "--reason", "move")
    shop.ok("disable", "nightly", "--reason", "too loud")
    said = shop.ok("move", OLD, NEW, store=None)
    rows = [line.split() for line in said.splitlines()]
    assert rows[:4] == [
        ["JOBS", "SOURCE", "DESTINATION"],
        ["queued", "3", "3"],
        ["completed", "1", "1"],
        ["all", "4", "4"],
    ]
    assert "on both sides" in said
    assert "run this command again" in said
    for command in ("pools", "workers", "jobs"):
        there, here = shop.json(command, store=OLD), shop.json(command, store=NEW)
        for one in (*there.get("pools", ()), *here.get("pools", ())):
            one.pop("oldest_wait_seconds")
        assert there == here, command
    assert shop.ok("move", OLD, NEW, store=None) == "everything had moved before; nothing was added since\n"
    assert "new.db" in shop.refused("run", "shop:app", store=None), "a node would begin where nothing is any more"


def test_json(shop: Terminal) -> None:
    add(2)
    told = shop.json("move", OLD, NEW, store=None)
    assert {name: told[name] for name in ("late", "copied", "handed_back", "jobs_by_status")} == {
        "late": False,
        "copied": 3,
        "handed_back": 0,
        "jobs_by_status": {"queued": 2, "completed": 1},
    }
    assert told["source"].endswith("/shop.db")
    assert told["destination"].endswith("/new.db")
    assert len(told["checksum"]) == 32
    again = shop.json("move", OLD, NEW, store=None)
    assert (again["late"], again["copied"], again["checksum"]) == (True, 0, None)


def test_refused_while_a_node_runs(shop: Terminal) -> None:
    add(1)
    node = shop.node()
    said = shop.refused("move", OLD, NEW, store=None)
    assert said.startswith(f"shiftwork: nodes run on sqlite:///{shop.folder}/shop.db: ")
    assert "/images" in said
    assert said.endswith("Stop them, then run this again\n")
    node.signal()
    assert node.end() == 0
    shop.ok("move", OLD, NEW, store=None)


def test_what_moved_is_left_alone_and_the_new_place_is_named(shop: Terminal) -> None:
    add(1)
    shop.ok("move", OLD, NEW, store=None)
    refusal = f"shiftwork: sqlite:///{shop.folder}/shop.db has moved to sqlite:///{shop.folder}/new.db: use that one\n"
    assert shop.refused("enqueue", "resize", "path=a.png") == refusal
    assert shop.refused("cancel", "--all", "--yes") == refusal
    node = shop.start("run", "shop:app")
    assert node.end() == 1
    assert refusal.strip() in node.lines
    told = shop.json("doctor")
    assert [(one["code"], one["severity"]) for one in told["problems"]] == [("moved", "warning")]


def test_a_process_with_the_old_url_loses_nothing(shop: Terminal) -> None:
    async def untold() -> None:
        old = WorkerOrchestrator(OLD)
        await old.control.jobs.enqueue("resize", {"path": "before.png"})
        await asyncio.to_thread(shop.ok, "move", OLD, NEW, store=None)
        await old.control.jobs.enqueue("resize", {"path": "after.png"})
        await old.close()

    asyncio.run(untold())
    doctor = shop.run("doctor")
    assert doctor.exit_code == 1
    assert "added here since, and not moved: 1 job" in doctor.stdout
    assert shop.ok("move", OLD, NEW, store=None) == "everything had moved before; 1 job added since: carried over\n"
    paths = {job["payload"]["path"] for job in shop.json("jobs", "--status", "queued", store=NEW)["jobs"]}
    assert paths == {"before.png", "after.png"}


KILLED_WHILE_COPYING = """
import os, signal
from shiftwork.cli import main
from shiftwork.cli.changing import stores as move

def show(bar, step, done, total):
    if step == "copying":
        os.kill(os.getpid(), signal.SIGKILL)

move.ProgressBar.show = show
main()
"""


def test_given_up(shop: Terminal) -> None:
    add(3)
    command = [sys.executable, "-c", KILLED_WHILE_COPYING, "move", OLD, NEW]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert "is moving to" in shop.refused("cancel", "--all", "--yes")
    with pytest.raises(MoveError, match="is moving to"):
        asyncio.run(load_app("shop:app").start())
    with pytest.raises(MoveError, match="is moving to"):
        in_shop(lambda app: app.pause_schedule("nightly"))
    assert "is abandoned" in shop.ok("move", OLD, "--abandon", store=None)
    assert shop.ok("move", OLD, "--abandon", store=None) == "no move was started; nothing is changed\n"
    node = shop.node()
    node.signal()
    assert node.end() == 0
    assert in_shop(lambda app: app.find_jobs(status=JobStatus.COMPLETED, limit=1))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((OLD,), 2, "DST is missing: shiftwork move SRC DST"),
        (("sqlite:///none.db", NEW), 3, "there is no database"),
        (("memory://", NEW), 2, "a memory:// store lives inside one process"),
        ((OLD, "memory://"), 2, "a memory:// store lives inside one process"),
        ((OLD, "mysql://x"), 2, "unknown store scheme 'mysql'"),
        ((OLD, OLD), 1, "cannot move to itself"),
    ],
)
def test_refused(words: tuple[str, ...], code: int, said: str, shop: Terminal) -> None:
    assert said in shop.refused("move", *words, code=code, store=None)


def test_only_the_namespace_that_is_named(shop: Terminal) -> None:
    add(2)
    assert shop.json("move", OLD, NEW, "--namespace", "other", store=None)["copied"] == 0
    assert shop.json("move", OLD, NEW, store=None)["copied"] == 3


def test_a_bar_on_a_terminal_and_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressBar(terminal=True)
    for done in (0, 50, 100):
        progress.show("copying", done, 100)
    progress.end()
    told = capsys.readouterr().err
    assert "\rcopying" in told
    assert told.endswith(f"{'█' * 30} 100%  100 of 100 jobs\n")
    progress = ProgressBar(terminal=False)
    for done in (10, 50, 100):
        progress.show("copying", done, 100)
    progress.end()
    assert capsys.readouterr().err == "copying: 10 of 100 jobs\ncopying: 100 of 100 jobs\n"
