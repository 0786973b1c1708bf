"""windlass on its embedded store: what a program that uses it sees."""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from windlass import WorkerOrchestrator

SLOTS = 200
SINGLE = 4_000
CALLERS = 100
SAMPLES = 300


async def main(jobs: int, url: str) -> dict[str, float]:
    """Measure everything on one fresh store."""
    app = WorkerOrchestrator(url, max_concurrent=SLOTS)
    starts: list[float] = []
    left = 0
    done = asyncio.Event()

    @app.task(keep_completed_seconds=60)
    async def noop() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            done.set()

    @app.task()
    async def stamp() -> None:
        starts.append(time.perf_counter())
        done.set()

    figures: dict[str, float] = {}
    begun = time.perf_counter()
    for _ in range(SINGLE):
        await noop.enqueue()
    figures["enqueue"] = SINGLE / (time.perf_counter() - begun)

    async def caller() -> None:
        for _ in range(SINGLE // CALLERS):
            await noop.enqueue()

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    figures["together"] = SINGLE / (time.perf_counter() - begun)

    begun = time.perf_counter()
    await app.enqueue_many([noop.call() for _ in range(jobs)])
    figures["bulk"] = jobs / (time.perf_counter() - begun)

    left = jobs + 2 * SINGLE
    begun = time.perf_counter()
    await app.start()
    await done.wait()
    figures["drain"] = (jobs + 2 * SINGLE) / (time.perf_counter() - begun)

    waits: list[float] = []
    for _ in range(SAMPLES):
        done.clear()
        await asyncio.sleep(0.002)
        begun = time.perf_counter()
        await stamp.enqueue()
        await done.wait()
        waits.append((starts[-1] - begun) * 1000)
    figures["latency_p50"] = median(waits)
    figures["latency_p99"] = quantiles(waits, n=100)[-1]
    await app.stop()
    return figures


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(main(int(sys.argv[1]), f"sqlite:///{Path(folder) / 'bench.db'}"))))
