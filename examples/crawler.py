"""Crawl a site whose pages are not known beforehand: each job adds the links that it finds to its own flow."""

import asyncio

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("memory://", max_concurrent=10)

SITE = {"/": ["/docs", "/blog"], "/docs": ["/docs/api", "/"], "/blog": ["/docs"], "/docs/api": []}
words: dict[str, int] = {}  # in a real crawler a table, because jobs run in several processes


@app.task(rate_limit="50/s")
async def crawl(ctx: Context, run: str, url: str) -> None:
    words[url] = len(url)
    # An id for each page: a page that several others link to is still one job.
    links = [crawl.with_options(job_id=f"{run}{link}").call(run=run, url=link) for link in SITE[url]]
    await ctx.enqueue_flow(*links)


@app.task
async def index() -> list[str]:
    return sorted(words)


async def main() -> None:
    await app.start()
    home = crawl.with_options(job_id="monday/").call(run="monday", url="/")
    flow = await app.enqueue_flow(index.call().after(home))  # waits for all pages
    print(await flow.result(timeout_seconds=30))
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
