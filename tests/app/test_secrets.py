"""Secret arguments reach the function, and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from msgspec.structs import replace

from shiftwork import Context, Job, PayloadTypeError, Secret, SignatureError, WorkerOrchestrator
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.jobs import NewJob
from shiftwork.handles.job import JobAccess
from shiftwork.handles.redaction import MASK
from shiftwork.runtime.clock import until_idle
from shiftwork.views.shapes.jobs import job_shape, whole_job_shape
from tests.runtime.stage import Stage

HUSH = "hunter2"


@dataclass
class Login:
    user: str
    password: Annotated[str, Secret] = "letmein"


def keeper(stage: Stage) -> tuple[WorkerOrchestrator, Any, list[Any]]:
    app, seen = stage.app(), []

    @app.task(max_retries=0)
    async def sign_in(
        site: str,
        token: Annotated[str, Secret],
        *,
        login: Login | None = None,
        others: list[Login] = [],  # noqa: B006 - never changed
        keys: dict[str, Annotated[str, Secret]] = {},  # noqa: B006
        pin: Annotated[int, Secret] | None = None,
    ) -> None:
        seen.append((site, token, login, others, keys, pin))

    return app, sign_in, seen


async def test_only_the_function_sees_them(stage: Stage) -> None:
    app, sign_in, seen = keeper(stage)
    await app.start()
    job = await sign_in.enqueue(
        "bank", HUSH, login=Login("ann", HUSH), others=[Login("bob", HUSH)], keys={"a": HUSH}, pin=1234
    )
    await until_idle()
    assert seen == [("bank", HUSH, Login("ann", HUSH), [Login("bob", HUSH)], {"a": HUSH}, 1234)]
    stranger = stage.app()  # knows the worker only as it was published
    for found in (job, *await app.find_jobs(), await stranger.get_job(job.id), *await stranger.find_jobs()):
        shown = job_shape(found).payload
        assert shown == {
            "site": "bank",
            "token": MASK,
            "login": {"user": "ann", "password": MASK},
            "others": [{"user": "bob", "password": MASK}],
            "keys": {"a": MASK},
            "pin": MASK,
        }
        for text in (repr(found), repr(found.record), repr(sign_in.call("bank", HUSH)), repr(found.record.claimed())):
            assert HUSH not in text


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_job_that_was_added_before_any_node_ran(stage: Stage, *, by_name: bool) -> None:
    app, sign_in, _ = keeper(stage)
    if by_name:
        job, _ = await app.control.jobs.enqueue("sign_in", {"site": "bank", "token": HUSH})
    else:
        job = await sign_in.enqueue("bank", HUSH)
    assert job_shape(await stage.app().get_job(job.id)).payload == {"site": "bank", "token": MASK}
    assert [doc.name for doc in await stage.store.docs("schema")] == ["sign_in"]


async def test_a_reader_from_just_before_it_was_known_looks_again(stage: Stage) -> None:
    app, sign_in, _ = keeper(stage)
    other = stage.app()
    await stage.store.add(
        [NewJob(id="1", worker="gone", pool="default", payload=b"\x80", run_at=0.0)], app.control.now()
    )
    await other.get_job("1")
    job = await sign_in.enqueue("bank", HUSH)
    assert job_shape(await other.get_job(job.id)).payload == {"site": "bank", "token": MASK}


async def test_errors_logs_and_progress_of_the_function_do_not_show_them(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    app, key = stage.app(), "-----BEGIN\n" + "k" * 3_000

    @app.task(max_retries=0)
    async def sign_in(
        ctx: Context, site: str, token: Annotated[str, Secret], login: Login, pin: Annotated[int, Secret]
    ) -> None:
        ctx.logger.warning("%s with %r, %s", site, token, login.password)
        ctx.progress(1, 2, f"pin {pin}")
        try:
            raise ValueError(f"{site} knows no {token!r}")  # noqa: TRY301
        except ValueError as error:
            ctx.logger.info("so it is", exc_info=True)
            raise RuntimeError(f"not {token}, nor {pin}") from error

    await app.start()
    job = await sign_in.enqueue("bank", key, login=Login("ann", HUSH), pin=9_876_543_210)
    await until_idle()
    progress = (await job.refresh()).progress
    assert progress is not None
    assert progress.message == "pin •••"
    ended = whole_job_shape(await app.get_job(job.id), await app.explain_job(job.id))
    assert ended.error == "RuntimeError: not •••, nor •••"
    lines = ["bank with '•••', •••", "so it is (ValueError: bank knows no '•••')"]
    assert [line.message for line in ended.logs] == lines
    everything = repr((ended, await app.events())) + "".join(record.getMessage() for record in caplog.records)
    assert [secret for secret in ("kkkk", HUSH, "9876543210") if secret in everything] == []


async def test_the_schema_says_so_and_shows_no_default(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def sign_in(login: Login, token: Annotated[str, Secret] = HUSH) -> None: ...

    schema = await app.control.workers.payload_schema("sign_in")
    assert schema is not None
    assert schema["properties"]["token"]["writeOnly"] is True
    assert HUSH not in json.dumps(schema)
    assert "letmein" not in json.dumps(schema)


async def test_what_the_worker_no_longer_knows_is_not_shown(stage: Stage) -> None:
    app, sign_in, _ = keeper(stage)
    known = await sign_in.enqueue("bank", HUSH)
    for payload in (msgspec.msgpack.encode({"site": "bank", "passphrase": HUSH}), b"\xc1hunter2"):
        job: Job[None] = Job(
            replace(known.record, payload=payload), JobAccess(app.control.store.open, secrets=known.secrets)
        )
        assert HUSH not in str(job_shape(job).payload)
        assert b"hunter2".hex() not in str(job_shape(job).payload)


async def test_a_payload_that_is_edited_keeps_what_was_hidden(stage: Stage) -> None:
    app, sign_in, seen = keeper(stage)
    job = await sign_in.enqueue("bank", HUSH, login=Login("ann", HUSH))
    await app.cancel_job(job.id)
    edited = job_shape(await app.get_job(job.id)).payload | {"site": "shop"}
    edited["login"]["user"] = "eve"
    await app.retry_job(job.id, payload=edited)
    await app.start()
    await until_idle()
    assert seen == [("shop", HUSH, Login("eve", HUSH), [], {}, None)]


async def test_the_mask_is_not_a_secret(stage: Stage) -> None:
    app, sign_in, _ = keeper(stage)
    with pytest.raises(PayloadTypeError, match="give the secret itself"):
        await app.control.jobs.enqueue("sign_in", {"site": "bank", "token": MASK})
    job = await sign_in.enqueue("bank", HUSH)
    await app.cancel_job(job.id)
    with pytest.raises(PayloadTypeError, match="give the secret itself"):
        await app.retry_job(job.id, payload={"site": "bank", "token": "new", "pin": MASK})


async def test_errors_about_payloads_do_not_tell(stage: Stage) -> None:
    class Vault:
        def __init__(self, value: str) -> None:
            self.value = value

        @classmethod
        def model_validate(cls, value: str) -> "Vault":
            message = f"{value!r} opens nothing"
            raise ValueError(message)

        def model_dump(self, mode: str) -> str:
            return self.value

        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"type": "string"}

    app = stage.app()

    @app.task
    async def unlock(vault: Annotated[Vault, Secret]) -> None: ...

    with pytest.raises(PayloadTypeError) as refused:
        await unlock.enqueue(Vault(HUSH))
    assert str(refused.value) == "unlock: argument 'vault' does not fit; secret values are not shown"
    with pytest.raises(PayloadTypeError, match="argument 'token': Expected `str`, got `int`"):
        keeper(stage)[1].call("bank", 1)


async def test_a_key_would_show_it(stage: Stage) -> None:
    app = stage.app()
    with pytest.raises(SignatureError, match="would show the secret 'token'"):

        @app.task(concurrency_key="for {token}")
        async def sign_in(token: Annotated[str, Secret]) -> None: ...


async def test_what_is_secret_is_known_as_soon_as_the_worker_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _, _ = keeper(stage)
    put = stage.store.put
    written: list[list[tuple[str, str]]] = []

    async def noted(docs: Sequence[Doc]) -> list[bool]:
        written.append([(doc.kind, doc.name) for doc in docs])
        return await put(docs)

    monkeypatch.setattr(stage.store, "put", noted)
    await app.start()
    [together] = [docs for docs in written if ("worker", "sign_in") in docs]
    assert ("schema", "sign_in") in together, "in one step, or before"
