"""Call an API that is sometimes busy: wait as long as it asks, and give up where trying again cannot help."""

import asyncio

from shiftwork import Context, GiveUp, JobFailedError, Retry, RetryAfter, WorkerOrchestrator

app = WorkerOrchestrator("memory://")


async def get(city: str, attempt: int) -> tuple[int, dict[str, str], str]:
    """Stand for an HTTP client: return a status, headers and a body."""
    if city == "Atlantis":
        return 404, {}, "no such city"
    return (429, {"Retry-After": "0.1"}, "") if attempt == 1 else (200, {}, f"18 °C in {city}")


# Lost connections and timeouts are retried after 1, 10 and 60 seconds; a bug in our own code is not retried.
@app.task(timeout_seconds="20s", retry=Retry(on=(ConnectionError, TimeoutError), delays=[1, 10, "1m"]))
async def weather(ctx: Context, city: str) -> str:
    status, headers, body = await get(city, ctx.attempt)
    if status == 429 or status >= 500:
        raise RetryAfter(float(headers.get("Retry-After", 30)), f"the API responded with {status}")
    if status >= 400:
        raise GiveUp(f"the API responded with {status}: {body}")
    return body


async def main() -> None:
    await app.start()
    job = await weather.enqueue(city="Vienna")
    print(await job.result(timeout_seconds=10), "after", [attempt.error for attempt in job.history])
    try:
        await (await weather.enqueue(city="Atlantis")).result(timeout_seconds=10)
    except JobFailedError as error:
        print(error)
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
