"""An app with a durable function in a process pool, which kills its process once."""

import os
from pathlib import Path

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator(os.environ["ORDERS_STORE"])
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)
FOLDER = Path(os.environ["ORDERS_FOLDER"])


def note(what: str) -> str:
    """What has happened, and must happen once."""
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{what}\n")
    return what.upper()


@app.task(pool="apart")
def order(ctx: Context, n: int) -> str:
    charged = ctx.blocking.step("charge", note, f"charge {n}")
    if not (FOLDER / "killed").exists():
        (FOLDER / "killed").touch()
        os._exit(9)
    ctx.blocking.sleep(0.05)
    approval = ctx.blocking.wait_for("approval")
    ctx.blocking.enqueue_flow(pack.call(what=f"{charged} {approval}"))
    return charged


@app.task(pool="apart")
async def pack(ctx: Context, what: str) -> None:
    await ctx.step("pack", note, f"pack {what}")


@app.task
async def ship(charged: str) -> str:
    return f"{charged}: {(FOLDER / 'notes').read_text().splitlines()}"
