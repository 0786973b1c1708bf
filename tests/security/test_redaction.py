"""Secret arguments in every form in which a text may show them."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from shiftwork import Context, JobStatus, Secret
from shiftwork.handles.redaction import MASK, Secrets
from shiftwork.views.shapes.jobs import whole_job_shape
from tests.runtime import fixtures
from tests.runtime.stage import DEADLINE, Stage

stage = fixtures.stage

KEY = b"\x00raw-key\xff-bytes"
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqh\n  kiG9w0BAQEFAASCBK\n-----END KEY-----"


@dataclass
class Login:
    user: str
    password: Annotated[str, Secret] = "a-field-default"


@dataclass
class Site:
    login: Login = field(default_factory=lambda: Login("ann", "made-by-a-factory"))


SHOWN: dict[str, Callable[..., str]] = {
    "bytes": lambda key, **_: f"{key}",
    "bytes, as Python quotes them": lambda key, **_: f"{key!r}",
    "bytes as hex digits": lambda key, **_: key.hex(),
    "bytes in base64": lambda key, **_: base64.b64encode(key).decode(),
    "bytes in base64 for URLs": lambda key, **_: base64.urlsafe_b64encode(key).decode(),
    "a key of a secret dict": lambda tokens, **_: f"no {next(iter(tokens))}",
    "the secret dict": lambda tokens, **_: f"{tokens}",
    "a secret key of a dict": lambda names, **_: f"{names}",
    "a default": lambda token, **_: token,
    "a default in a default": lambda login, **_: login.password,
    "a field's default": lambda other, **_: other.password,
    "an explained number": lambda pin, **_: f"{pin:d}",
}


@pytest.mark.parametrize("how", SHOWN)
async def test_no_form_of_a_secret_is_in_an_error_a_log_line_or_progress(stage: Stage, how: str) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def sign_in(
        ctx: Context,
        *,
        other: Login,
        key: Annotated[bytes, Secret],
        tokens: Annotated[dict[str, int], Secret],
        names: dict[Annotated[str, Secret], int],
        pin: Annotated[int, Secret] = 9_876_543,
        token: Annotated[str, Secret] = "an-argument-default",
        login: Login = Login("ann", "a-nested-default"),  # noqa: B008 - never changed
    ) -> None:
        text = SHOWN[how](**locals())
        ctx.logger.warning("it is %s", text)
        ctx.progress(1, 2, text)
        raise ValueError(f"not {text}")

    await app.start()
    tokens, names = {"a-key-of-a-dict": 1}, {"a-secret-name": 2}
    arguments = {"other": {"user": "eve"}, "key": KEY, "tokens": tokens, "names": names}
    job, _ = await app.control.jobs.enqueue("sign_in", arguments)
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    shown = whole_job_shape(job, await app.explain_job(job.id))
    assert shown.error is not None
    assert MASK in shown.error
    assert shown.progress is not None
    assert MASK in (shown.progress.message or "")
    everything = repr(shown) + repr(await app.events())
    hidden = (
        *("raw-key", KEY.hex(), base64.b64encode(KEY).decode(), base64.urlsafe_b64encode(KEY).decode()),
        *("a-key-of-a-dict", "a-secret-name", "an-argument-default", "a-nested-default", "a-field-default", "9876543"),
    )
    assert [secret for secret in hidden if secret in everything] == []


async def test_no_line_of_a_secret_is_in_the_traceback_of_a_group(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def sign(key: Annotated[str, Secret]) -> None:
        try:
            raise ValueError(f"cannot read {key}")  # noqa: TRY301
        except ValueError as error:
            raise ExceptionGroup("two reasons", [error, KeyError(key)]) from error

    await app.start()
    job = await sign.enqueue(PEM)
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    traceback = job.history[0].traceback
    assert traceback is not None
    assert "ExceptionGroup: two reasons" in traceback
    assert [line for line in PEM.split() if len(line) > 4 and line in traceback] == []


async def test_no_default_of_a_secret_is_published(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def sign_in(site: Site, login: Login = Login("bob", "a-nested-default"), size: int = 3) -> None: ...  # noqa: B008

    schema = json.dumps(await app.control.workers.payload_schema("sign_in"))
    assert [word for word in ("made-by-a-factory", "a-nested-default", "a-field-default") if word in schema] == []
    assert '"default": 3' in schema


def tree(levels: int) -> dict[str, Any]:
    """A value of a type that contains itself."""
    value: dict[str, Any] = {"password": "hunter2-hunter2", "children": []}
    for _ in range(levels):
        value = {"password": None, "children": [value]}
    return value


def test_secrets_are_found_however_deep_and_however_many_types_a_place_may_have() -> None:
    """In a time that does not grow with the number of ways through the types."""
    node = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"type": "null"}]}
    described = {
        "type": "object",
        "properties": {
            "password": {"type": "string", "writeOnly": True},
            "children": {"type": "array", "items": node},
        },
    }
    secrets = Secrets({"properties": {"tree": node}, "$defs": {"A": described, "B": {**described, "title": "B"}}})
    payload = {"tree": tree(5_000)}
    assert secrets.texts(payload) == {"hunter2-hunter2"}
    shown = secrets.redact(payload)["tree"]
    while shown["children"]:
        shown = shown["children"][0]
    assert shown["password"] == MASK
