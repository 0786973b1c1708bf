"""Render the pages of a book side by side, then bind and publish it: a fan-out, a fan-in and a chain in one flow."""

import asyncio

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("memory://", max_concurrent=20)


@app.task
async def render(page: int) -> str:
    return f"page {page}"


@app.task
async def bind(title: str, pages: list[str]) -> str:
    return f"{title}, {len(pages)} pages"


@app.task
async def publish(book: str) -> str:
    return f"published {book}"


async def main() -> None:
    await app.start()
    pages = [render.call(page=n) for n in range(1, 101)]
    bound = bind.call(title="Moby-Dick", pages=[page.output for page in pages])
    flow = await app.enqueue_flow(publish.call(book=bound.output))  # 102 jobs in one step, or none
    # If a page fails for good, this raises `FlowError`; fix the cause, and `await flow.retry()` goes on from there.
    print(await flow.result(timeout_seconds=60))
    print(await flow.status())
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
