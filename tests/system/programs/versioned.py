"""An app in two versions. The new one has one more argument, a task more, and another name for a task."""

import os
import time
from pathlib import Path
from typing import Any

from shiftwork import WorkerOrchestrator

NEW = os.environ["VERSIONED"] == "new"
app = WorkerOrchestrator(os.environ["VERSIONED_STORE"])
kind: Any = os.environ["VERSIONED_KIND"]
app.register_pool("images", kind=kind, min_workers=1, max_workers=2, cpu=0.1, scale_down_after_seconds=600)

if NEW:

    @app.task(pool="images")
    def resize(width: int, *, crop: bool = False) -> int:
        return -width if crop else width

    @app.task(pool="images", timeout_seconds=None)
    def hold(until: str) -> None:
        """Keep a slot until a file exists."""
        while not Path(until).exists():
            time.sleep(0.02)

    @app.task(pool="images", aliases=["shrink"])
    def make_thumbnail(path: str) -> str:
        return f"thumbnail of {path}"

else:

    @app.task(pool="images")
    def resize(width: int) -> int:
        return width

    @app.task(pool="images")
    def shrink(path: str) -> str:
        return f"shrunk {path}"
