"""FastAPI: a route adds and returns a job; your log-in guards the dashboard. `uvicorn examples.fastapi_shop:web`."""

from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.testclient import TestClient

from shiftwork import Job, WorkerOrchestrator
from shiftwork.contrib.fastapi import Visitor, attach, orchestrator

app = WorkerOrchestrator("memory://")


@app.task
async def resize(path: str) -> str:
    return f"{path} at 320 pixels"


async def visitor(request: Request) -> Visitor | None:
    user = request.headers.get("x-user")  # as your log-in knows it: request.session["user"], request.user …
    return Visitor(name=user, role="operate", via="host") if user else None


web = FastAPI()
attach(web, app, run=True, dashboard="/shiftwork", identify=visitor)  # run=False: `shiftwork run` runs the jobs


@web.post("/images", status_code=202)
async def upload(path: str) -> Job[str]:
    return await resize.enqueue(path=path)


@web.get("/images/{job_id}")
async def image(job_id: str, orchestrator: Annotated[WorkerOrchestrator, Depends(orchestrator)]) -> str:
    return str(await (await orchestrator.get_job(job_id)).result(timeout_seconds=30))


if __name__ == "__main__":
    with TestClient(web) as client:
        print(client.get(f"/images/{client.post('/images', params={'path': 'a.png'}).json()['id']}").json())
        print(client.get("/shiftwork/api/v1/me", headers={"X-User": "ada"}).json()["name"])
