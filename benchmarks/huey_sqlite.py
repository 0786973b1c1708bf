"""Huey on SQLite, at its best reasonable settings: one thread, no fsync, the shortest delays."""

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles

from huey import SqliteHuey

SINGLE = 4_000
SAMPLES = 300


def main(jobs: int, path: str) -> dict[str, float]:
    """Measure everything on one fresh store."""
    huey = SqliteHuey("bench", filename=path, results=False, fsync=False)
    starts: list[float] = []
    left = 0
    done = threading.Event()

    @huey.task()  # type: ignore[misc, untyped-decorator, unused-ignore]
    def noop() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            done.set()

    @huey.task()  # type: ignore[misc, untyped-decorator, unused-ignore]
    def stamp() -> None:
        starts.append(time.perf_counter())
        done.set()

    figures: dict[str, float] = {}
    begun = time.perf_counter()
    for _ in range(SINGLE):
        noop()
    figures["enqueue"] = SINGLE / (time.perf_counter() - begun)
    for _ in range(jobs - SINGLE):
        noop()

    left = jobs
    consumer = huey.create_consumer(workers=1, periodic=False, initial_delay=0.001, backoff=1.05, max_delay=0.005)
    begun = time.perf_counter()
    consumer.start()
    done.wait()
    figures["drain"] = jobs / (time.perf_counter() - begun)

    waits: list[float] = []
    for _ in range(SAMPLES):
        done.clear()
        time.sleep(0.002)
        begun = time.perf_counter()
        stamp()
        done.wait()
        waits.append((starts[-1] - begun) * 1000)
    figures["latency_p50"] = median(waits)
    figures["latency_p99"] = quantiles(waits, n=100)[-1]
    consumer.stop(graceful=True)
    return figures


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(main(int(sys.argv[1]), str(Path(folder) / "bench.db"))))
