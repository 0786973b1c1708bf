"""Alerts: events reach an address, signed, however it misbehaves, and no job waits for it."""

import base64
import hashlib
import hmac
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork import ConfigurationError, UnknownOptionError, WorkerOrchestrator, events
from shiftwork.app import alerts
from shiftwork.core.model.event import Event
from shiftwork.runtime.clock import until_idle
from tests.polling import eventually, wait_until
from tests.runtime.stage import Stage

SECRET = "between the two of us"


class Receiver:
    """A real HTTP server that responds as scripted, and then with success."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.hold = threading.Event()
        self.hold.set()
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.requests.append((dict(self.headers.items()), body))
                assert told.hold.wait(30)
                self.send_response(told.answers.pop(0) if told.answers else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hooks/hush?token=hush"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self, alerts_made: Sequence[alerts.Alert] = ()) -> None:
        self.hold.set()
        wait_until(lambda: not any(alert.pending for alert in alerts_made))  # or their threads outlive the test
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    made: list[alerts.Alert] = []

    class Noted(alerts.Alert):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(alerts, "DELAYS", (0.01, 0.02, 0.03))
    monkeypatch.setattr(alerts, "Alert", Noted)
    it = Receiver()
    yield it
    it.close(made)


def happened(number: int = 1) -> Event:
    return Event(at=1_700_000_000.0, name="job.dead", subject=f"job-{number}", message=f"job-{number} is dead")


async def test_delivered_at_the_third_try_and_signed(
    stage: Stage, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [503, 429]
    app = stage.app()
    app.alert(receiver.url, events=["job.dead"], secret=SECRET)

    @app.task(max_retries=0)
    async def pack() -> None:
        raise ValueError("no box")

    await app.start()
    job = await pack.enqueue()
    await until_idle()
    await eventually(lambda: len(receiver.requests) == 3)
    bodies = receiver.bodies()
    assert bodies[0] == bodies[1] == bodies[2]
    told = bodies[0]
    assert (told["name"], told["subject"], told["data"]["worker"]) == ("job.dead", job.id, "pack")
    assert told["message"] == f"job {job.id} of pack is dead: ValueError: no box"
    assert told.keys() == {"id", "at", "name", "subject", "message", "data"}
    for headers, body in receiver.requests:
        assert headers["webhook-id"] == told["id"]
        signed = f"{told['id']}.{headers['webhook-timestamp']}.".encode() + body
        mark = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{mark}"
    assert "failed (HTTP 503), trying again" in caplog.text
    assert "hush" not in caplog.text
    assert SECRET not in caplog.text


def test_a_signature_is_that_of_the_standard() -> None:
    key = alerts.key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")  # the example of the specification
    headers = alerts.signed(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1_614_265_330.5)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_may_lack_the_padding_of_base64() -> None:
    keys = {alerts.key_of(f"whsec_{base64.b64encode(b'key').decode()}{padding}") for padding in ("", "=", "==")}
    assert keys == {b"key"}
    assert alerts.key_of("whsec_AAE") == alerts.key_of("whsec_AAE=") == b"\0\1"


async def test_to_slack_and_as_a_function_says_without_a_secret(receiver: Receiver) -> None:
    app = WorkerOrchestrator("memory://")
    app.alert(receiver.url, events=["job.dead"], format="slack")
    app.alert(
        receiver.url,
        events=["job.dead", "job.lost"],
        format=lambda event: {"summary": event.subject} if event.name == "job.dead" else None,
    )
    app.served.hooks.fire(replace(happened(), message="<b> & co. is dead"))
    app.served.hooks.fire(replace(happened(), name="job.lost"))
    await app.close()
    assert sorted(receiver.bodies(), key=str) == [
        {"summary": "job-1"},
        {"text": "*job.dead*: &lt;b&gt; &amp; co. is dead"},
    ]
    assert not [name for headers, _ in receiver.requests for name in headers if name.startswith("webhook-")]


async def test_only_what_was_asked_for(stage: Stage, receiver: Receiver) -> None:
    app = stage.app()
    app.alert(receiver.url, events=["worker.disabled", "worker.enabled"], secret=SECRET)

    @app.task
    async def pack() -> None: ...

    await app.start()
    await app.disable_worker("pack", "no boxes")
    await app.enable_worker("pack")
    await app.served.hooks.drain()
    assert [body["name"] for body in receiver.bodies()] == ["worker.disabled", "worker.enabled"]


@pytest.mark.parametrize(("answer", "tries"), [(404, 1), (302, 1), (500, 4)])
async def test_after_giving_up_on_one_the_next_is_delivered(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, answer: int, tries: int
) -> None:
    receiver.answers = [answer] * tries
    app = WorkerOrchestrator("memory://")
    app.alert(receiver.url, events=["*"], secret=SECRET)
    app.served.hooks.fire(happened(1))
    app.served.hooks.fire(happened(2))
    await app.close()
    assert [body["subject"] for body in receiver.bodies()] == ["job-1"] * tries + ["job-2"]
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    how = f"rejected with HTTP {answer}, not retried" if tries == 1 else f"failed (HTTP {answer}), given up"
    assert f"{how}: job-1 is dead" in errors[0]


async def test_nothing_listens_there(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(alerts, "DELAYS", (0.01,))
    gone = Receiver()
    gone.close()
    app = WorkerOrchestrator("memory://")
    app.alert(gone.url, events=["*"], secret=SECRET)
    app.served.hooks.fire(happened())
    await app.close()
    assert "ConnectionRefusedError" in caplog.text


async def test_one_that_hangs_delays_nothing_else(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alerts, "LONGEST_QUEUE", 3)
    receiver.hold.clear()
    app = WorkerOrchestrator("memory://")
    app.alert(receiver.url, events=["*"], secret=SECRET)
    app.served.hooks.fire(happened(0))
    await eventually(lambda: len(receiver.requests) == 1)
    for number in range(1, 6):
        app.served.hooks.fire(happened(number))  # would never come back if it waited
    assert "does not keep up with its alerts; not sent: job-4 is dead" in caplog.text
    receiver.hold.set()
    await app.close()
    assert [body["subject"] for body in receiver.bodies()] == ["job-0", "job-1", "job-2", "job-3"]


async def test_what_is_left_at_a_stop_is_given_up_on_and_logged(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events, "LONGEST_HOOK_SECONDS", 0.05)
    receiver.hold.clear()
    app = WorkerOrchestrator("memory://")
    app.alert(receiver.url, events=["*"], secret=SECRET)
    for number in range(3):
        app.served.hooks.fire(happened(number))
    await app.close()
    assert "3 hooks or alerts did not finish in time" in caplog.text


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "host/x", "https://", "https://user:pass@host/", "http://h:x/", "http://h/a b"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an address to post to") as refused:
        WorkerOrchestrator("memory://").alert(url, events=["*"], secret=SECRET)
    assert "pass@" not in str(refused.value)


def test_what_cannot_be() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match="the secret is empty; leave it out"):
        app.alert("https://host/", events=["*"], secret="")
    with pytest.raises(ConfigurationError, match="a list of events"):
        app.alert("https://host/", events="job.dead", secret=SECRET)
    for secret in ("whsec_no!", "whsec_a2V5!!!!", "whsec_", "whsec_=="):
        with pytest.raises(ConfigurationError, match="must continue in base64"):
            app.alert("https://host/", events=["*"], secret=secret)
    with pytest.raises(ConfigurationError, match='not "json", "slack" or a function'):
        app.alert("https://host/", events=["*"], format="teams")  # type: ignore[arg-type]
    with pytest.raises(UnknownOptionError, match=r"did you mean 'job\.dead'"):
        app.alert("https://host/", events=["job.deed"], secret=SECRET)


ALARM = """
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///alarm.db")
app.alert({url!r}, events=["node.started", "node.stopped"], secret={secret!r})


@app.task
async def pack() -> None: ...
"""


def test_from_a_node_from_its_first_word_to_its_last(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "alarm.py").write_text(ALARM.format(url=receiver.url, secret=SECRET))
    command = [sys.executable, "-m", "shiftwork", "run", "alarm:app", "--no-web"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, cwd=tmp_path, stderr=log) as node:
        try:
            wait_until(lambda: len(receiver.requests) == 1)
            node.terminate()
            assert node.wait(30) == 0
        finally:
            node.kill()
    assert [body["name"] for body in receiver.bodies()] == ["node.started", "node.stopped"]
