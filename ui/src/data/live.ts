/**
 * Keeps the pages up to date, and knows how old they are.
 *
 * The server announces what changed, and the queries concerned are sent again. Each kind of query has its own pace: what
 * is large or changes slowly is not fetched at every change, and what takes long to compute is fetched less often still.
 * Nothing is fetched while the page is hidden or paused.
 *
 * A page is old if the store has not replied for a while, if the server cannot be reached or sends nothing, or if a query
 * of the page has failed since it showed its data. While it is old, its clock stands still.
 */

import type { Query, QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { LiveMessage } from "shiftwork";
import { t } from "../language";
import { inZone } from "../zone";
import { ApiError, api, skewMs } from "./client";

export type Link = "connecting" | "live" | "lost";
type State = {
  link: Link;
  paused: boolean;
  pausedAt: number | null;
  waiting: boolean;
  lostAt: number | null;
  /** Since when the store has not replied, by the server's clock, and what is wrong with it. */
  silentSince: number | null;
  fault: string | null;
};

/** Since when what the page shows is not up to date, by the server's clock, and why. */
export interface Age {
  asOf: number;
  seconds: number;
  old: boolean;
  cause: string;
}

const OLD_SECONDS = 10;
/** The server sends something every 5 seconds. After three times that, it is not known what the page has missed. */
const QUIET_MS = 15_000;

const PACE_MS: Record<string, number> = {
  overview: 1_000,
  history: 5_000,
  "long history": 60_000,
  pools: 1_000,
  workers: 2_000,
  runs: 5_000,
  breakers: 2_000,
  schedules: 3_000,
  graph: 15_000,
  jobs: 1_000,
  flows: 2_000,
  dead: 3_000,
  nodes: 2_000,
  events: 1_000,
};

/** The queries that each topic of the server affects; an unknown topic affects all. */
const CONCERNS: Record<string, string[]> = {
  jobs: ["overview", "pools", "workers", "runs", "schedules", "jobs", "flows", "dead"],
  pools: ["overview", "pools", "nodes"],
  workers: ["overview", "workers", "schedules", "graph", "breakers"],
  nodes: ["overview", "nodes", "pools"],
  events: ["events", "overview", "pools", "breakers"],
  history: ["history", "long history"],
};

/** When to connect again after the server has rejected it. A lost connection is the client's business. */
const REJECTED_MS = 3_000;
const BEAT_MS = 250;
/** At most one part in this many of the time is spent on one kind of query. */
const SHARE = 10;
/** The longest pause, even if a response took longer: the server may have been away, and be back. */
const SLOWEST_MS = 15_000;
/** How soon a query that failed is sent again, while the store replies. */
const AGAIN_MS = 5_000;

let state: State = {
  link: "connecting",
  paused: false,
  pausedAt: null,
  waiting: false,
  lostAt: null,
  silentSince: null,
  fault: null,
};
let heardAt: number | null = null;
const listeners = new Set<() => void>();
const stale = new Set<string>();
const asked = new Map<string, number>();
const took = new Map<string, number>();
let listening = false;

function set(change: Partial<State>) {
  state = { ...state, ...change };
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useLive = () => useSyncExternalStore(subscribe, () => state);
export const pause = (paused: boolean) =>
  set({ paused, pausedAt: paused ? Date.now() + skewMs : null, waiting: paused && stale.size > 0 });
export const isPaused = () => state.paused;

function mark(topics: string[]) {
  for (const topic of topics) for (const root of CONCERNS[topic] ?? Object.keys(PACE_MS)) stale.add(root);
  if (topics.length && state.paused && !state.waiting) set({ waiting: true });
}

function hear(message: LiveMessage) {
  heardAt = Date.now();
  if (message.kind === "connected") {
    if (state.link === "lost") mark(["everything"]);
    set({ link: "live", lostAt: null, silentSince: null, fault: null });
  } else if (message.kind === "change") hearChange(message);
  else if (message.kind === "event") mark(["events"]);
  else lost();
}

function hearChange({ topics, store_fault: fault, store_silent_since: since }: LiveMessage & { kind: "change" }) {
  const silentSince = since ? Date.parse(since) : null;
  if (state.silentSince !== null && silentSince === null) mark(["everything"]); // the store is back
  if (silentSince !== state.silentSince || (fault ?? null) !== state.fault) set({ silentSince, fault: fault ?? null });
  mark(topics);
}

function lost() {
  if (state.link !== "lost") set({ link: "lost", lostAt: Date.now() + skewMs });
}

async function connect() {
  while (true) {
    try {
      for await (const message of api.live()) hear(message);
    } catch {
      lost(); // rejected, for instance because the session has ended: the page that asks for a token follows
    }
    await new Promise((resolve) => setTimeout(resolve, REJECTED_MS));
  }
}

/** Starts listening; a second call does nothing. */
export function listen(client: QueryClient) {
  if (listening) return;
  listening = true;
  connect();
  setInterval(() => {
    lookAtAge(client);
    if (state.paused || document.hidden) return;
    const now = Date.now();
    for (const root of stale) {
      const pace = Math.max(PACE_MS[root] ?? 0, Math.min(SHARE * (took.get(root) ?? 0), SLOWEST_MS));
      if (now - (asked.get(root) ?? 0) < pace) continue;
      stale.delete(root);
      asked.set(root, now);
      client
        .invalidateQueries({ queryKey: [root] }, { cancelRefetch: false })
        .then(() => took.set(root, Date.now() - now));
    }
    if (state.waiting) set({ waiting: false });
  }, BEAT_MS);
}

/** Refetches everything after a change made here, so that it shows at once. */
export function refresh(client: QueryClient) {
  client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "me" });
}

// ── how old the page is ─────────────────────────────────────────────────────────────────────────────────────────────

let age: Age | null = null;

/** How old the page is; null while it is up to date. */
export const useAge = () => useSyncExternalStore(subscribe, () => age);

/** Why a query on this page shows old data: what it was refused with since; null if it does not. */
function failure({ state: { data, error, fetchFailureReason } }: Query): string | null {
  const reason = error ?? fetchFailureReason;
  return data !== undefined && reason instanceof ApiError && reason.transient ? inZone(reason.message) : null;
}

function lookAtAge(client: QueryClient) {
  const reasons: [number, string][] = [];
  if (state.link === "lost" && state.lostAt !== null) reasons.push([state.lostAt, t("The connection is lost")]);
  else if (heardAt !== null && Date.now() - heardAt > QUIET_MS)
    reasons.push([heardAt + skewMs, t("The server sends nothing")]);
  if (state.silentSince !== null) reasons.push([state.silentSince, inZone(state.fault ?? "")]);
  for (const query of client.getQueryCache().findAll({ type: "active" })) {
    const why = failure(query);
    if (why === null) continue;
    reasons.push([query.state.dataUpdatedAt + skewMs, why]);
    askAgain(String(query.queryKey[0]));
  }
  const now = Date.now() + skewMs;
  const seconds = Math.floor((now - Math.min(...reasons.map(([since]) => since))) / 1_000);
  const next =
    reasons.length && !state.paused
      ? {
          asOf: Math.min(...reasons.map(([since]) => since)),
          seconds,
          old: seconds >= OLD_SECONDS,
          cause: reasons[0]?.[1] ?? "",
        }
      : null;
  if (next?.seconds === age?.seconds && next?.cause === age?.cause) return;
  age = next;
  for (const listener of listeners) listener();
}

/** A query that failed while the store replies is sent again: nothing else may announce a change of it. */
function askAgain(root: string) {
  const replies = state.link === "live" && state.silentSince === null;
  if (replies && root in PACE_MS && Date.now() - (asked.get(root) ?? 0) > AGAIN_MS) stale.add(root);
}

// ── the server's time; it stands still while the page is paused or old ──────────────────────────────────────────────

let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  if (state.paused || document.hidden || age?.old) return;
  now = Date.now() + skewMs;
  for (const watcher of watchers) watcher();
}, 1_000);

function watch(watcher: () => void) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export const useNow = () => useSyncExternalStore(watch, () => now);

/** What is said about the time now. The part that says it is rendered only when that changes. */
export const useSaid = (say: (now: number) => string) => useSyncExternalStore(watch, () => say(now));
