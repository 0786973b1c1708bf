"""Our signed alerts, judged by the library of Standard Webhooks: it accepts what we sign, and nothing that was changed.

`python -m tests.outside.webhook_suite` runs in the environment of `make outside`, and prints the tally as JSON.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from threading import Thread
from typing import Any, Final

import msgspec
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from shiftwork.app import alerts
from shiftwork.core.model.event import Event
from shiftwork.errors import ConfigurationError
from tests.outside.tally import Tally

ID: Final = "3b9c1fd2a3e94f0db1d7a2f6a4c6b8de"
SECRETS: Final = {
    "24 bytes": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "32 bytes": f"whsec_{base64.b64encode(bytes(range(32))).decode()}",
    "64 bytes": f"whsec_{base64.b64encode(bytes(range(64))).decode()}",
    "25 bytes, padded": f"whsec_{base64.b64encode(bytes(range(25))).decode()}",
    "25 bytes, not padded": f"whsec_{base64.b64encode(bytes(range(25))).decode().rstrip('=')}",
}
BODIES: Final = {
    "an object": '{"test": 2432232314}',
    "nothing": "{}",
    "other alphabets": json.dumps({"message": "Zoë · 任务 · 🔔"}, ensure_ascii=False),
    "dots and new lines": json.dumps({"message": "a.b.c\n\r\n1614265330."}, indent=2),
    "100 KB": json.dumps({"data": "x" * 100_000}),
}


def main() -> None:
    """Print the tally."""
    tally = Tally(suite="Standard Webhooks", version=f"standardwebhooks {version('standardwebhooks')}")
    for name, check in [*signing(), *changing(), *keys(), ("an alert that is retried", delivered)]:
        try:
            check()
            tally.passed += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, this case has failed
            tally.failed[name] = repr(error)
    print(msgspec.json.encode(tally).decode())


Case = tuple[str, Callable[[], None]]


def signing() -> Iterator[Case]:
    """Yield that their library makes the signature that we make, and accepts it."""
    for secret_name, secret in SECRETS.items():
        for body_name, body in BODIES.items():

            def check(secret: str = secret, body: str = body) -> None:
                now = time.time()
                headers = alerts.signed(alerts.key_of(secret), ID, body.encode(), now)
                judge = Webhook(secret)
                assert judge.verify(body, headers) == json.loads(body)
                assert headers["webhook-signature"] == judge.sign(ID, datetime.fromtimestamp(int(now), UTC), body)
                several = f"v1,{'A' * 43}= v2,{'A' * 43}= {headers['webhook-signature']}"
                judge.verify(body, headers | {"webhook-signature": several})

            yield f"signed with {secret_name}, {body_name}", check


def changing() -> Iterator[Case]:
    """Yield that their library rejects each message of ours in which one thing was changed."""
    secret, body, now = SECRETS["24 bytes"], BODIES["an object"], time.time()
    headers = alerts.signed(alerts.key_of(secret), ID, body.encode(), now)
    mark = headers["webhook-signature"]
    other = Webhook(SECRETS["32 bytes"]).sign(ID, datetime.fromtimestamp(int(now), UTC), body)
    changed: dict[str, tuple[str, dict[str, str]]] = {
        "another body": (body + " ", headers),
        "another id": (body, headers | {"webhook-id": f"{ID}0"}),
        "another time": (body, headers | {"webhook-timestamp": str(int(now) + 1)}),
        "another secret": (body, headers | {"webhook-signature": other}),
        "another version": (body, headers | {"webhook-signature": mark.replace("v1,", "v2,")}),
        "no signature": (body, headers | {"webhook-signature": "v1,"}),
        "six minutes late": (body, alerts.signed(alerts.key_of(secret), ID, body.encode(), now - 360)),
        "six minutes early": (body, alerts.signed(alerts.key_of(secret), ID, body.encode(), now + 360)),
        "a time that is none": (body, headers | {"webhook-timestamp": "hello"}),
    }
    changed |= {f"without {name}": (body, {key: headers[key] for key in headers if key != name}) for name in headers}
    for name, (text, sent) in changed.items():

        def check(text: str = text, sent: dict[str, str] = sent) -> None:
            try:
                Webhook(secret).verify(text, sent)
            except WebhookVerificationError:
                return
            raise AssertionError("accepted")

        yield f"rejected: {name}", check


def keys() -> Iterator[Case]:
    """Yield that we reject the secrets that they reject."""
    for secret in ("whsec_", "whsec_=="):

        def check(secret: str = secret) -> None:
            for read, error in ((Webhook, EmptyWebhookSecretError), (alerts.key_of, ConfigurationError)):
                try:
                    read(secret)
                except error:
                    continue
                raise AssertionError(f"{read} takes it")

        yield f"the secret {secret!r}", check


def delivered() -> None:
    """Post an alert to a server that first fails: it comes twice, under one id, and both are verified."""
    received: list[tuple[dict[str, str], bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204 if len(received) > 1 else 503)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    secret = SECRETS["32 bytes"]
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        asyncio.run(_fired(alerts.Alert(f"http://127.0.0.1:{server.server_port}/", secret)))
        server.shutdown()
    told = [Webhook(secret).verify(body, headers) for headers, body in received]
    assert [one["message"] for one in told] == ["job 1 is dead", "job 1 is dead"]
    assert {headers["webhook-id"] for headers, _ in received} == {told[0]["id"]}


async def _fired(alert: alerts.Alert) -> None:
    sent = alert(Event(at=time.time(), name="job.dead", subject="1", message="job 1 is dead"))
    assert sent is not None
    await sent


if __name__ == "__main__":
    main()
