"""Send an e-mail after sign-up: the web handler adds a job and responds at once. `uvicorn examples.sign_up:web`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("memory://")


@app.task(max_retries=5)
async def send_welcome(to: str) -> None:
    print(f"Welcome, {to}!")


async def sign_up(request: Request) -> JSONResponse:
    user = (await request.json())["email"]
    once = send_welcome.with_options(job_id=f"welcome-{user}")  # a repeated request sends no second mail
    return JSONResponse({"job": (await once.enqueue(to=user)).id}, status_code=202)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
    await app.start()  # if `shiftwork run` runs the jobs, only `await app.close()` at the end
    yield
    await app.stop()


web = Starlette(routes=[Route("/sign-up", sign_up, methods=["POST"])], lifespan=lifespan)

if __name__ == "__main__":
    with TestClient(web) as client:
        print([client.post("/sign-up", json={"email": "jo@example.com"}).json() for _ in range(2)])
