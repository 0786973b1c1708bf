/** What can go wrong. */

import type { ProblemDetails } from "./api.js";

/** Returns what a value of a JSON document becomes. */
export type Reviver = (key: string, value: unknown) => unknown;

const OURS = "urn:shiftwork:";
/** No response, too many requests, and what servers and proxies say while something behind them is away. */
const TRANSIENT = [0, 429, 502, 503, 504];

/** A request that the server rejected, or that it never received. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** What went wrong and what to do about it, in the server's words. */
    message: string,
    /** What went wrong, for programs: "unknown-worker", "authentication-required", "no-response". */
    readonly code: string,
    /** The status of the response; 0 if there was none. */
    readonly status: number,
    readonly title: string,
    /** When to try again, if the server said so. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later, without a change of it. */
  get transient(): boolean {
    return TRANSIENT.includes(this.status);
  }
}

/** The job did not end in time. It is still there; `cause` is why the server could not be reached, if it could not. */
export class WaitTimeoutError extends Error {
  override readonly name = "WaitTimeoutError";

  constructor(
    readonly jobId: string,
    readonly timeoutMs: number,
    options?: ErrorOptions,
  ) {
    super(`job ${jobId} did not end within ${timeoutMs} ms: wait longer, or cancel it`, options);
  }
}

export const noResponse = (why: string) =>
  new ApiError(
    `The server cannot be reached: ${why}. Check that a node or \`shiftwork web\` is running.`,
    "no-response",
    0,
    "No response",
  );

/** The value in a response. */
export function answer<T>(response: Response, text: string, reviver?: Reviver): T {
  try {
    return JSON.parse(text, reviver) as T;
  } catch {
    throw foreign(response);
  }
}

/** The error for a response that is none of the API's, such as the page of another server. */
export const foreign = ({ url, status }: Response) =>
  new ApiError(
    `The response from ${url} is not one of shiftwork's API. Check the client's url: it is that of a node or of \`shiftwork web\`.`,
    "not-the-api",
    status,
    "Not the API",
  );

/** The error of a response, also of one that a proxy made. */
export function refusal(response: Response, text: string, reviver?: Reviver): ApiError {
  const problem = problemIn(text, reviver);
  return new ApiError(
    problem.detail ?? (text.slice(0, 300) || `the server responded with ${response.status}`),
    problem.type?.startsWith(OURS) ? problem.type.slice(OURS.length) : `http-${response.status}`,
    response.status,
    problem.title ?? `Error ${response.status}`,
    Number(response.headers.get("retry-after")) || null,
  );
}

function problemIn(text: string, reviver: Reviver | undefined): Partial<ProblemDetails> {
  try {
    const found: unknown = JSON.parse(text, reviver);
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}
