/** The client: the operations of the API, and enqueuing, waiting and listening on top of them. */

import {
  type CallOptions,
  type EnqueueBody,
  type Enqueued,
  type Event,
  Operations,
  type Sent,
  type WholeJob,
} from "./api.js";
import { ApiError, answer, foreign, noResponse, type Reviver, refusal, WaitTimeoutError } from "./errors.js";
import { messages } from "./stream.js";

const API = "api/v1/";
const PRINTABLE = /^[!-~]*$/;
const EVENT_STREAM = "text/event-stream";
const PATIENCE_MS = 20_000;
const SHORTEST_POLL_MS = 100;
const LONGEST_POLL_MS = 5_000;
/** How long the last look at a job may take: a wait whose time is over asks once more. */
const LAST_LOOK_MS = 1_000;
const SHORTEST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 10_000;
/** The server sends something every 15 seconds. After three times that, the connection is dead. */
const SILENCE_MS = 45_000;

export interface ClientOptions {
  /** The address of a node or of `shiftwork web`: http://127.0.0.1:8421, or where it is mounted. */
  url: string | URL;
  /** What `shiftwork token create` printed. Requests of the server's own user on the same machine need none. */
  token?: string;
  /** Used instead of the global `fetch`. */
  fetch?: (url: URL, init: RequestInit) => Promise<Response>;
  /** How long a response may take; 20 seconds by default. */
  timeoutMs?: number;
  /** Changes what is read from responses: passed to `JSON.parse`. */
  reviver?: Reviver;
}

/** How a job differs from other jobs of its worker. */
export type JobOptions = Omit<EnqueueBody, "worker" | "payload">;

export interface WaitOptions {
  /** How long to wait; for as long as it takes by default. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface LiveOptions {
  signal?: AbortSignal;
  /** Begin after the event with this number, instead of with the next one. */
  after?: number;
}

/** A job that has ended. */
export type EndedJob<Result = unknown> = Omit<WholeJob, "status" | "result"> & {
  status: "completed" | "dead" | "cancelled";
  result: Result;
};

/** What may have changed, and whether the store replies. Without topics, nothing has. */
export interface Change {
  /** Of "jobs", "workers", "pools", "nodes", "events", "history". */
  topics: string[];
  /** When the store last replied; null if it has not yet. */
  at: string | null;
  /** What is wrong with the store; null while it replies. */
  store_fault: string | null;
  /** Since when the store has not replied; null while it does. */
  store_silent_since: string | null;
}

/** What the live stream reports, and how the connection is. */
export type LiveMessage =
  | { kind: "connected" }
  | ({ kind: "change" } & Change)
  | { kind: "event"; event: Event }
  /** The connection is lost, and tried again. */
  | { kind: "lost"; error: ApiError };

/**
 * A client of the HTTP API.
 *
 * `Workers` names the arguments of each worker, for `enqueue`: `new Client<{ resize: { path: string } }>({ url })`.
 */
export class Client<Workers extends { [Name in keyof Workers]: object } = Record<string, object>> extends Operations {
  readonly #base: URL;
  readonly #fetch: (url: URL, init: RequestInit) => Promise<Response>;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #reviver: Reviver | undefined;

  constructor({ url, token, fetch: given, timeoutMs = PATIENCE_MS, reviver }: ClientOptions) {
    super();
    this.#base = new URL(API, String(url).replace(/\/*$/, "/"));
    // fetch rejects both, in words that repeat the password or the token.
    if (this.#base.username || this.#base.password)
      throw new TypeError("Remove the user and the password from the url, and pass a token instead.");
    if (token && !PRINTABLE.test(token.trim()))
      throw new TypeError(
        "The token has spaces or characters that no token has: copy it again, as `shiftwork token create` printed it.",
      );
    this.#fetch = given ?? ((address, init) => fetch(address, init));
    this.#token = token?.trim();
    this.#timeoutMs = timeoutMs;
    this.#reviver = reviver;
  }

  /** Adds a job. With a `job_id`, it is safe to repeat: the second call returns the first one's job. */
  async enqueue<Name extends keyof Workers & string>(
    worker: Name,
    args: Workers[Name],
    options: JobOptions = {},
    call: CallOptions = {},
  ): Promise<Enqueued> {
    return this.send("POST", "jobs", { body: { ...options, worker, payload: args } }, call);
  }

  /**
   * Returns a job once it is completed, dead or cancelled. It asks ten times a second at first, then less and less
   * often, but at least every five seconds, and goes on asking while the server cannot be reached. When the time is
   * over, it asks once more, for a second at most.
   */
  async wait<Result = unknown>(jobId: string, { timeoutMs, signal }: WaitOptions = {}): Promise<EndedJob<Result>> {
    const began = Date.now();
    const waited = () => Date.now() - began;
    const left = () => Math.max(0, (timeoutMs ?? Infinity) - waited());
    let unreachable: ApiError | undefined;
    while (true) {
      try {
        const patience = Math.min(Math.max(left(), LAST_LOOK_MS), this.#timeoutMs);
        const job = await this.job(jobId, { signal, timeoutMs: patience });
        if (hasEnded<Result>(job)) return job;
        unreachable = undefined;
      } catch (error) {
        if (!(error instanceof ApiError && error.transient)) throw error;
        unreachable = error;
      }
      if (!left()) throw new WaitTimeoutError(jobId, timeoutMs ?? 0, { cause: unreachable });
      const pollMs = Math.max(SHORTEST_POLL_MS, Math.min(waited() / 10, LONGEST_POLL_MS), retryAfterMs(unreachable));
      await pause(Math.min(left(), pollMs), signal);
    }
  }

  /** Yields events as they happen. A lost connection is made again, and continues after the last event. */
  async *events({ signal, after }: LiveOptions = {}): AsyncGenerator<Event, void> {
    const begin = after ?? (await this.pastEvents({ limit: 1 }, { signal })).events.at(-1)?.seq ?? 0;
    for await (const message of this.live({ signal, after: begin })) {
      if (message.kind === "event") yield message.event;
    }
  }

  /** Yields everything that the live stream reports: what may have changed, events, and how the connection is. */
  async *live({ signal, after }: LiveOptions = {}): AsyncGenerator<LiveMessage, void> {
    let seen = after;
    let retryMs = SHORTEST_RETRY_MS;
    while (true) {
      try {
        for await (const message of this.#stream(seen, signal)) {
          if (message.kind === "event") seen = message.event.seq;
          retryMs = SHORTEST_RETRY_MS;
          yield message;
        }
      } catch (error) {
        if (!(error instanceof ApiError && error.transient)) throw error;
        yield { kind: "lost", error };
        retryMs = Math.max(retryMs, retryAfterMs(error));
      }
      await pause(retryMs, signal);
      retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
    }
  }

  protected override async send<T>(
    method: "GET" | "POST",
    path: string,
    sent: Sent,
    { signal, timeoutMs = this.#timeoutMs, headers }: CallOptions,
  ): Promise<T> {
    const late = AbortSignal.timeout(Math.ceil(timeoutMs));
    try {
      const response = await this.#open(method, path, sent, headers, signal ? AbortSignal.any([late, signal]) : late);
      return answer<T>(response, await response.text(), this.#reviver);
    } catch (error) {
      throw this.#explained(error, late, timeoutMs, signal);
    }
  }

  /** One connection to the live stream, until it ends. */
  async *#stream(seen: number | undefined, signal: AbortSignal | undefined): AsyncGenerator<LiveMessage> {
    const over = new AbortController();
    const watching = (ms: number) => setTimeout(() => over.abort(noResponse(`no word for ${ms / 1_000} seconds`)), ms);
    let watch = watching(this.#timeoutMs);
    const heard = () => {
      clearTimeout(watch);
      watch = watching(SILENCE_MS);
    };
    const headers: Record<string, string> = seen === undefined ? {} : { "Last-Event-ID": String(seen) };
    try {
      const ends = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
      const response = await this.#open("GET", "live", {}, headers, ends);
      if (!response.body || !response.headers.get("content-type")?.startsWith(EVENT_STREAM)) throw foreign(response);
      clearTimeout(watch);
      yield { kind: "connected" };
      heard();
      for await (const { event, data } of messages(response.body, heard)) {
        clearTimeout(watch); // the reader may take as long as it likes
        if (event === "change") yield { kind: "change", ...(JSON.parse(data, this.#reviver) as Change) };
        if (event === "event") yield { kind: "event", event: JSON.parse(data, this.#reviver) as Event };
        heard();
      }
    } catch (error) {
      throw over.signal.aborted ? over.signal.reason : this.#explained(error, null, 0, signal);
    } finally {
      clearTimeout(watch);
      over.abort();
    }
  }

  /** The response, once its head has come. Throws an `ApiError` for one that is an error. */
  async #open(
    method: string,
    path: string,
    { query = {}, body }: Sent,
    headers: Record<string, string> | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== null && one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const response = await this.#fetch(url, {
      method,
      signal,
      headers: {
        ...(body && { "Content-Type": "application/json" }),
        ...(this.#token && { Authorization: `Bearer ${this.#token}` }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw refusal(response, await response.text(), this.#reviver);
    return response;
  }

  /** The error to throw: the caller's own reason if they ended the request, else one with words for people. */
  #explained(error: unknown, late: AbortSignal | null, timeoutMs: number, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof ApiError) return error;
    return noResponse(late?.aborted ? `no response within ${timeoutMs} ms` : reasonOf(error));
  }
}

function hasEnded<Result>(job: WholeJob): job is WholeJob & EndedJob<Result> {
  return job.status === "completed" || job.status === "dead" || job.status === "cancelled";
}

const retryAfterMs = (error: ApiError | undefined) => 1_000 * (error?.retryAfterSeconds ?? 0);

/** Why a fetch failed: Node puts it into the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, message } = cause as { code?: string; message?: string };
  return message || code || String(cause);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
