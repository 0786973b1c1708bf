"""Secret arguments over HTTP: they go in, and never come out."""

import json
from typing import Annotated

from shiftwork import Secret, WorkerOrchestrator
from shiftwork.handles.redaction import MASK
from tests.web.conftest import Web

HUSH = "hunter2"


async def test_they_never_come_out() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def sign_in(site: str, token: Annotated[str, Secret]) -> None: ...

    web = Web(app)
    answers = [await web.post("jobs", {"worker": "sign_in", "payload": {"site": "bank", "token": HUSH}})]
    job = answers[0].json()["job"]["id"]
    answers.append(await web.post("workers/sign_in/trigger", {"payload": {"site": "shop", "token": HUSH}}))
    answers.append(await web.post("jobs", {"worker": "sign_in", "payload": {"site": "bank", "token": [HUSH]}}))
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    seen = [answer.text for answer in answers]
    paths = ("jobs", f"jobs/{job}", "workers/sign_in", "events", "overview")
    seen += [json.dumps(await web.get(path)) for path in paths]
    assert HUSH not in "".join(seen)
    assert (await web.get(f"jobs/{job}"))["payload"] == {"site": "bank", "token": MASK}
    await app.close()


async def test_searching_reveals_nothing() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def sign_in(site: str, token: Annotated[str, Secret]) -> None: ...

    await sign_in.enqueue("bank", HUSH)
    web = Web(app)
    assert len((await web.get("jobs", payload="bank"))["jobs"]) == 1
    assert (await web.get("jobs", payload=HUSH))["jobs"] == []
    await app.close()
