"""An app in two versions: the new one has one more argument."""

import os
import time
from pathlib import Path
from typing import Any

from shiftwork import WorkerOrchestrator
from shiftwork.handles.worker import Worker

app = WorkerOrchestrator(os.environ["VERSIONED_STORE"])
POOLS = ("threads", "apart")
RESIZE: dict[str, Worker[..., Any]] = {}
HOLD: dict[str, Worker[..., Any]] = {}


def resize(width: int) -> int:
    return width


def resize_or_crop(width: int, *, crop: bool = False) -> int:
    return -width if crop else width


def hold(until: str) -> None:
    """Keep a slot until a file exists."""
    while not Path(until).exists():
        time.sleep(0.02)


for pool in POOLS:
    app.register_pool(pool, kind="process" if pool == "apart" else "thread", min_workers=1, max_workers=2, cpu=0.1)
    if os.environ["VERSION"] == "new":
        HOLD[pool] = app.task(name=f"hold {pool}", pool=pool)(hold)
        RESIZE[pool] = app.task(name=f"resize {pool}", pool=pool)(resize_or_crop)
    else:
        RESIZE[pool] = app.task(name=f"resize {pool}", pool=pool)(resize)
