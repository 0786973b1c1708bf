"""What routes really return fits the OpenAPI document, field by field: clients in other languages are made from it."""

from typing import Any, Final

from jsonschema import Draft202012Validator

from shiftwork import Breaker, Context
from shiftwork.web.openapi import document
from tests.polling import eventually
from tests.web.conftest import Web, shop

ROUTES: Final = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
}
ELSEWHERE: Final = {"live", "openapi", "log_in", "log_out", "job_stack", "pool_what_if", "forget_worker"}
"""They have no end, or need another visitor, a process, a day's history, a gone node: other tests have these."""
BODIES: Final[dict[str, dict[str, Any]]] = {
    "send_signal": {"name": "approval", "value": {"by": "ada"}},
    "enqueue": {"worker": "resize", "payload": {"path": "b.png"}, "delay_seconds": 60, "tags": ["acme"]},
    "change_jobs": {"action": "retry", "filter": {"worker": "resize"}, "rate": "1/m"},
    "open_breaker": {"reason": "the office is closed", "for_seconds": 60},
    "bound_pool": {"min": 1, "max": 3},
    "put_schedule": {"worker": "resize", "payload": {"path": "c.png"}, "cron": "0 3 * * *"},
    "reschedule_worker": {"interval_seconds": 60},
    "create_token": {"name": "ci", "role": "read", "valid_seconds": 60},
}
OTHERS: Final = {
    "retry_job": {"id": "dead"},
    "discard_job": {"id": "completed"},
    "trigger_worker": {"worker": "fetch"},
    "reschedule_worker": {"worker": "fetch"},
}
"""Which job or worker a route needs, instead of the usual one."""
FIRST: Final = ("put_schedule", "create_token")
LAST: Final = ("discard_job", "delete_schedule", "revoke_token", "cancel_job", "cancel_flow")
"""The first make what others look at; the last delete or end it."""


async def fill(web: Web) -> dict[str, str]:
    """Open the shop, and return the names of what is in it, for paths."""
    app = web.app

    @app.task(breaker=Breaker(name="office"))
    async def approve(ctx: Context) -> Any:
        ctx.progress(1, 2, "asking")
        ctx.logger.info("asking")
        await ctx.step("ask", lambda: {"asked": ["ada"]})
        return await ctx.wait_for("approval", 3_600)

    dead, _ = await app.control.jobs.enqueue("resize", {"path": "a.png", "width": -1})
    completed, _ = await app.control.jobs.enqueue("resize", {"path": "a.png"})
    flow = await app.enqueue_flow(approve.call())
    waiting = await approve.enqueue()
    await app.start()
    for job, status in ((dead, "dead"), (completed, "completed"), (waiting, "scheduled")):

        async def has_status(id: str = job.id, status: str = status) -> bool:
            return bool((await web.get(f"jobs/{id}"))["status"] == status)

        await eventually(has_status)
    (node,) = await app.control.nodes.all()
    known = {
        "pool": "images",
        "worker": "resize",
        "schedule": "nightly",
        "token": "ci",
        "node": node.name,
        "breaker": "office",
    }
    return known | {"id": waiting.id, "flow": flow.id, "dead": dead.id, "completed": completed.id}


def path_of(name: str, known: dict[str, str]) -> str:
    path: str = ROUTES[name][1]
    others = {"id": "flow"} if path.startswith("/flows/") else OTHERS.get(name, {})
    return path[1:].format(**known | {key: known.get(other, other) for key, other in others.items()})


async def test_jobs_that_wait_for_a_signal_have_a_list_and_name_it() -> None:
    web = Web(shop())
    known = await fill(web)
    later = (await web.post("jobs", {"worker": "resize", "payload": {"path": "b.png"}, "delay_seconds": 3_600})).json()
    found = await web.get("jobs", waits_for_signal="true")
    assert {job["waits_for_signal"] for job in found["jobs"]} == {"approval"}
    assert known["id"] in {job["id"] for job in found["jobs"]}
    assert later["job"]["id"] not in {job["id"] for job in found["jobs"]}
    assert (await web.get(f"jobs/{known['completed']}"))["waits_for_signal"] is None
    assert (await web.get("jobs", waits_for_signal="true", payload="nothing like it"))["jobs"] == []
    await web.site.close()
    await web.app.stop()


async def test_every_answer_has_the_fields_and_types_that_the_document_promises() -> None:
    web = Web(shop())
    known = await fill(web)
    walk = sorted(ROUTES.keys() - ELSEWHERE, key=lambda name: (name in LAST, name not in FIRST, ROUTES[name][0], name))
    async with web.client() as client:
        for name in walk:
            method, _, operation = ROUTES[name]
            body = BODIES.get(name, {}) if method == "POST" else None
            response = await client.request(method, path_of(name, known), json=body)
            assert response.status_code == 200, (name, response.text)
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            checker = Draft202012Validator(schema | {"components": document()["components"]})
            assert [f"{name} {one.json_path}: {one.message}" for one in checker.iter_errors(response.json())] == []
    await web.site.close()
    await web.app.stop()


def test_the_document_has_the_names_and_words_that_people_need() -> None:
    schemas = document()["components"]["schemas"]
    assert schemas["Job"]["properties"]["flow"]["description"] == "The flow that it belongs to."
    assert schemas["WholeJob"]["properties"]["flow"] == schemas["Job"]["properties"]["flow"]  # inherited
    assert [name for name in schemas if name.endswith("Shape")] == []
    assert "job_id" not in schemas["EnqueueBody"]["required"]
