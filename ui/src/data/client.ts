/** Calls the API, which is served beside index.html, under any path. */

import { t } from "../language";
import type { Me } from "./types";

const BASE = new URL("api/v1/", document.baseURI);
const PATIENCE_MS = 20_000;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
  }
}

export type Params = Record<string, string | number | string[] | null | undefined>;

export function address(path: string, params: Params = {}): URL {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") url.searchParams.append(name, String(one));
    }
  }
  return url;
}

/** Encodes a name as one segment of a path. */
export const segment = (name: string) => encodeURIComponent(name);

let csrf: string | null = null;

export async function ask<T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> {
  return send<T>(address(path, params), {}, signal);
}

export async function act<T>(path: string, body: unknown = {}): Promise<T> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (csrf) headers["X-CSRF-Token"] = csrf;
  return send<T>(address(path), { method: "POST", headers, body: JSON.stringify(body) });
}

export async function whoami(signal?: AbortSignal): Promise<Me> {
  const me = await ask<Me>("me", {}, signal);
  csrf = me.csrf;
  return me;
}

/** How far the server's clock is ahead of ours, in milliseconds. Ages follow the server's clock. */
export let skewMs = 0;

async function send<T>(url: URL, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const signals = [AbortSignal.timeout(PATIENCE_MS), ...(signal ? [signal] : [])];
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...init, signal: AbortSignal.any(signals) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(
      0,
      t("No response"),
      t("The server cannot be reached. Check that a node or `shiftwork web` is running."),
    );
  }
  const said = Date.parse(response.headers.get("date") ?? "");
  if (said && Math.abs(said - Date.now()) > 2_000) skewMs = said - Date.now();
  else if (said) skewMs = 0;
  const text = await response.text();
  const data = parsed(text);
  if (!response.ok) {
    const problem = (data ?? {}) as { title?: string; detail?: string };
    throw new ApiError(
      response.status,
      problem.title ?? t("Error {n}", { n: response.status }),
      problem.detail ?? text.slice(0, 300),
    );
  }
  return data as T;
}

function parsed(text: string): unknown {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
