"""`shiftwork job ID --logs`."""

import asyncio

from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal

TALKER = """
from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")

@app.task(max_retries=0)
def pack(ctx: Context, order: int) -> None:
    if order:
        ctx.logger.warning("order %d has no\\x1b[31m address", order)
        raise ValueError(order)
"""


def packed(order: int) -> str:
    async def run() -> str:
        app = load_app("talker:app")
        await app.start()
        job, _ = await app.control.jobs.enqueue("pack", {"order": order})
        await job.ended(30)
        await app.stop()
        return job.id

    return asyncio.run(run())


def test_what_a_job_logged(terminal: Terminal) -> None:
    (terminal.folder / "talker.py").write_text(TALKER)
    job = packed(7)
    told = terminal.ok("job", job, "--logs")
    assert "WARNING order 7 has no" in told
    assert "\x1b" not in told
    (line,) = terminal.json("job", job)["job"]["logs"]
    assert (line["level"], line["attempt"], line["message"]) == ("warning", 1, "order 7 has no\x1b[31m address")


def test_nothing(terminal: Terminal) -> None:
    (terminal.folder / "talker.py").write_text(TALKER)
    result = terminal.run("job", packed(0), "--logs")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "has logged nothing through ctx.logger" in result.stderr
