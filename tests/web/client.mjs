/** What test_client.py runs in Node: the built client against a real node, and against connections that break. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { ApiError, Client, WaitTimeoutError } from "shiftwork";

const [url, operate, read] = process.argv.slice(2);
const client = new Client({ url, token: operate });
const PATIENT = { timeoutMs: 60_000 };

/** Serves one answer after the other, each for one request; returns its address and the requests. */
async function serving(t, ...answers) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answers.shift()?.(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close() && server.closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}/below`, requests };
}

const stream = (response) => response.writeHead(200, { "Content-Type": "text/event-stream" });
const event = (seq, message) => `event: event\nid: ${seq}\ndata: ${JSON.stringify({ seq, message })}\n\n`;

test("a job is enqueued once, and waited for", async () => {
  const added = await client.enqueue("resize", { path: "a.png", width: 3 }, { job_id: "order/1", tags: ["acme"] });
  assert.deepEqual([added.created, added.job.id, added.job.tags], [true, "order/1", ["acme"]]);
  assert.equal((await client.enqueue("resize", { path: "a.png", width: 3 }, { job_id: "order/1" })).created, false);
  const ended = await client.wait("order/1", PATIENT);
  assert.deepEqual([ended.status, ended.result], ["completed", "a.png at 3"]);
  assert.deepEqual((await client.jobs({ status: ["completed", "dead"], tag: "acme" })).jobs.map((job) => job.id), ["order/1"]);
});

test("a job that fails is waited for, too", async () => {
  const { job } = await client.enqueue("resize", { path: "b.png", width: -1 });
  const ended = await client.wait(job.id, PATIENT);
  assert.equal(ended.status, "dead");
  assert.match(ended.error, /width -1 is negative/);
});

test("a wait ends in time, or by a signal; a cancelled job ends it", async () => {
  const { job } = await client.enqueue("linger", { name: "ada" });
  await assert.rejects(client.wait(job.id, { timeoutMs: 150 }), (error) => {
    assert(error instanceof WaitTimeoutError);
    return error.message.includes(job.id);
  });
  const reason = new Error("the reader left");
  const controller = new AbortController();
  const left = assert.rejects(client.wait(job.id, { signal: controller.signal }), reason);
  controller.abort(reason);
  await left;
  const waiting = client.wait(job.id, PATIENT);
  await client.cancelJob(job.id);
  assert.equal((await waiting).status, "cancelled");
});

test("events are seen as they happen, and from a number on", async () => {
  const [newest] = (await client.pastEvents({ limit: 1 })).events;
  await client.pausePool("images", { reason: "moving the disk" });
  for await (const seen of client.events({ after: newest?.seq ?? 0 })) {
    if (seen.name !== "pool.paused") continue;
    assert.deepEqual([seen.subject, seen.data.by], ["images", "operator"]);
    break;
  }
  const events = client.events();
  const resumed = (async () => {
    for await (const seen of events) if (seen.name === "pool.resumed") return seen.subject;
  })();
  // The iterator asks for the newest event first: what happens after this change is certainly behind that one.
  let over = false;
  resumed.finally(() => (over = true));
  while (!over) {
    await client.resumePool("images");
    await client.pausePool("images");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.equal(await resumed, "images");
  await client.resumePool("images");
});

test("an error has the server's words, a code and a status", async () => {
  await assert.rejects(client.worker("resise"), {
    name: "ApiError",
    message: "there is no worker 'resise': did you mean 'resize'?",
    code: "unknown-worker",
    status: 404,
    transient: false,
  });
  await assert.rejects(client.enqueue("resize", { width: 1 }), { status: 400, code: "payload-type", message: /path/ });
  await assert.rejects(client.wait("nothing"), { status: 404, code: "unknown-job" });
});

test("without a token, and with one that may only read", async () => {
  const stranger = new Client({ url });
  await assert.rejects(stranger.pools(), { status: 401, code: "authentication-required" });
  await assert.rejects(stranger.events().next(), { status: 401 });
  const reader = new Client({ url: new URL(url), token: read });
  assert.equal((await reader.me()).role, "read");
  await assert.rejects(reader.pausePool("images"), { status: 403, message: /may only read/ });
});

test("a stream that breaks is continued after the last event, and is read in pieces of any size", async (t) => {
  const bytes = Buffer.from(`: still here\r\n\r\n${event(7, "größer\u2028").replaceAll("\n", "\r\n")}`);
  const { url, requests } = await serving(
    t,
    async (response) => {
      stream(response);
      for (const byte of bytes) {
        response.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      response.end();
    },
    (response) => response.writeHead(503).end("the proxy is tired"),
    (response) => stream(response).write(event(8, "later")),
  );
  const seen = [];
  for await (const message of new Client({ url, token: "t" }).live()) {
    seen.push(message.event?.message ?? message.error?.message ?? message.kind);
    if (message.event?.seq === 8) break;
  }
  assert.deepEqual(seen, ["connected", "größer\u2028", "the proxy is tired", "connected", "later"]);
  assert.deepEqual(requests.map((one) => one.url), Array(3).fill("/below/api/v1/live"));
  assert.deepEqual(requests.map((one) => one.headers["last-event-id"]), [undefined, "7", "7"]);
  assert.deepEqual(requests.map((one) => one.headers.authorization), Array(3).fill("Bearer t"));
});

test("a wait goes on while the server is away", async (t) => {
  const { url } = await serving(
    t,
    (response) => response.socket.destroy(),
    (response) => response.end('{"status":"processing"}'),
    (response) => response.writeHead(502).end("<h1>Bad gateway</h1>"),
    (response) => response.end('{"status":"completed","result":1}'),
  );
  assert.equal((await new Client({ url }).wait("1", PATIENT)).result, 1);
});

test("a server that cannot be reached, is silent, or is another one", async (t) => {
  const away = new Client({ url: "http://127.0.0.1:9" });
  await assert.rejects(away.pools(), { code: "no-response", status: 0, message: /cannot be reached.*shiftwork web/ });
  const { url } = await serving(t, () => {}, ...Array(2).fill((response) => response.end("<h1>Hello</h1>")));
  await assert.rejects(new Client({ url, timeoutMs: 50 }).pools(), { code: "no-response", message: /within 50 ms/ });
  await assert.rejects(new Client({ url }).pools(), (error) => error instanceof ApiError && error.code === "not-the-api");
  await assert.rejects(new Client({ url }).live().next(), { code: "not-the-api" });
});

test("a wait looks once more when its time is over, and no sooner than the server asks for", async (t) => {
  const done = (response) => response.end('{"status":"completed","result":1}');
  const { url } = await serving(t, done);
  assert.equal((await new Client({ url }).wait("1", { timeoutMs: 0 })).result, 1);
  const busy = await serving(t, (response) => response.writeHead(429, { "Retry-After": "3600" }).end(), done);
  const began = performance.now();
  assert.equal((await new Client({ url: busy.url }).wait("1", { timeoutMs: 500 })).result, 1);
  assert(performance.now() - began > 490);
});

test("a stream is given up when the server is silent, not when the reader is slow", { timeout: 30_000 }, async (t) => {
  let response;
  const { url } = await serving(t, (opened) => (response = stream(opened)).flushHeaders());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const live = new Client({ url }).live();
  const next = async () => (await live.next()).value;
  assert.equal((await next()).kind, "connected");
  for (const seq of [1, 2]) {
    t.mock.timers.tick(60_000);
    response.write(event(seq, ""));
    assert.equal((await next()).event?.seq, seq);
  }
  const lost = next();
  await new Promise(setImmediate);
  t.mock.timers.tick(60_000);
  assert.match((await lost).error.message, /no word for 45 seconds/);
  await live.return();
});

test("a password or a token that cannot be sent is not repeated in an error", () => {
  const refused = (options, remedy) => assert.throws(() => new Client(options), { name: "TypeError", message: remedy });
  refused({ url: "http://ada:secret@127.0.0.1" }, /^Remove the user and the password.*pass a token instead\.$/);
  refused({ url: "http://127.0.0.1", token: "se\ncret" }, /^The token has.*copy it again, as `shiftwork token create` printed it\.$/);
});
