"""Post dead jobs to a Slack channel. SLACK_URL is its incoming webhook; without it, a server here plays Slack."""

import asyncio
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from shiftwork import WorkerOrchestrator


class Channel(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        print(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


channel = HTTPServer(("127.0.0.1", 0), Channel)
app = WorkerOrchestrator("memory://")
url = os.environ.get("SLACK_URL", f"http://127.0.0.1:{channel.server_port}/services/T0/B0/token")
app.alert(url, events=["job.dead", "health.problem"], format="slack")  # or a function: event -> what to post


@app.task(max_retries=0)
async def charge(order: int) -> None:
    raise ValueError(f"order {order} has no address")


async def main() -> None:
    threading.Thread(target=channel.serve_forever, daemon=True).start()
    await app.start()
    await (await charge.with_options(job_id="order-7").enqueue(order=7)).ended(timeout_seconds=30)
    await app.stop()
    channel.shutdown()
    channel.server_close()


if __name__ == "__main__":
    asyncio.run(main())
