"""A first program: three workers with a dependency and a conflict. Run it with `python examples/quickstart.py`."""

import asyncio

from shiftwork import JobPriority, WorkerOrchestrator


async def fetch_data() -> None:
    print("fetch-data    fetches")


async def process_data() -> None:
    print("process-data  processes what was fetched")


async def cleanup() -> None:
    print("cleanup       tidies up, and process-data waits meanwhile")
    await asyncio.sleep(0.5)


async def main() -> None:
    # Without a URL everything is kept in ./shiftwork.db and survives a restart.
    orchestrator = WorkerOrchestrator("memory://", tick_interval=1.0, max_concurrent=5)

    orchestrator.register_worker("fetch-data", fetch_data, interval_seconds=0.5, priority=JobPriority.HIGH)
    orchestrator.register_worker("process-data", process_data, interval_seconds=1, depends_on=["fetch-data"])
    orchestrator.register_worker(
        "cleanup", cleanup, interval_seconds=1.5, priority=JobPriority.LOW, blocks=["process-data"]
    )

    await orchestrator.start()
    await asyncio.sleep(4)
    await orchestrator.stop()

    for name, state in orchestrator.get_status()["worker_states"].items():
        how = "has succeeded" if state["last_success"] else "has never succeeded"
        print(f"{name:13} {how}, {state['failures']} failures in a row")


if __name__ == "__main__":
    asyncio.run(main())
