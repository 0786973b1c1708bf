"""Secret arguments on the command line."""

import asyncio

from shiftwork import JobStatus
from shiftwork.handles.redaction import MASK
from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal

HUSH = "hunter2"

APP = """
from typing import Annotated
from shiftwork import Context, Secret, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")

@app.task(max_retries=0)
async def sign_in(site: str, token: Annotated[str, Secret]) -> int:
    return len(token)

def issue() -> Annotated[str, Secret]:
    return "hunter2"

@app.task
async def enrol(ctx: Context) -> str:
    return "the key is " + await ctx.step("issue", issue)
"""


def test_the_command_line_never_shows_them(terminal: Terminal) -> None:
    (terminal.folder / "keeper.py").write_text(APP)

    async def run() -> str:
        app = load_app("keeper:app")
        await app.start()
        job, _ = await app.control.jobs.enqueue("sign_in", {"site": "bank", "token": HUSH})
        assert await job.ended(30) is JobStatus.COMPLETED
        await app.stop()
        return job.id

    job = asyncio.run(run())
    later = terminal.json("enqueue", "sign_in", "site=shop", f"token={HUSH}", "--delay", "1h")["job"]
    assert later["payload"] == {"site": "shop", "token": MASK}
    for words in (("job", job), ("job", job, "--json"), ("jobs", "--json"), ("job", later["id"]), ("events",)):
        assert HUSH not in terminal.ok(*words)
    assert MASK in terminal.ok("job", job)
    assert terminal.json("job", job)["job"]["result"] == len(HUSH)


def test_a_command_that_waits_for_a_run_hides_what_its_steps_keep_secret(terminal: Terminal) -> None:
    (terminal.folder / "keeper.py").write_text(APP)
    terminal.start("run", "keeper:app").wait_for("runs 2 workers")
    assert f"the key is {MASK}" in terminal.ok("trigger", "enrol")
