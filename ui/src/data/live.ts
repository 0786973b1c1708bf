/**
 * Keeps the pages up to date: the server announces what changed, and the queries concerned are sent again.
 *
 * Each kind of query has its own pace: what is large or changes slowly is not fetched at every change, and what takes
 * long to compute is fetched less often still. Nothing is fetched while the page is hidden or paused.
 */

import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { LiveMessage } from "shiftwork";
import { api, skewMs } from "./client";

export type Link = "connecting" | "live" | "lost";
type State = { link: Link; paused: boolean; waiting: boolean; lostAt: number | null };

const PACE_MS: Record<string, number> = {
  overview: 1_000,
  history: 5_000,
  "long history": 60_000,
  pools: 1_000,
  workers: 2_000,
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
  jobs: ["overview", "pools", "workers", "schedules", "jobs", "flows", "dead"],
  pools: ["overview", "pools", "nodes"],
  workers: ["overview", "workers", "schedules", "graph"],
  nodes: ["overview", "nodes", "pools"],
  events: ["events", "overview", "pools"],
  history: ["history", "long history"],
};

/** When to connect again after the server has rejected it. A lost connection is the client's business. */
const REJECTED_MS = 3_000;
const BEAT_MS = 250;
/** At most one part in this many of the time is spent on one kind of query. */
const SHARE = 10;
/** The longest pause, even if a response took longer: the server may have been away, and be back. */
const SLOWEST_MS = 15_000;

let state: State = { link: "connecting", paused: false, waiting: false, lostAt: null };
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
export const pause = (paused: boolean) => set({ paused, waiting: paused && stale.size > 0 });
export const isPaused = () => state.paused;

function mark(topics: string[]) {
  for (const topic of topics) for (const root of CONCERNS[topic] ?? Object.keys(PACE_MS)) stale.add(root);
  if (state.paused && !state.waiting) set({ waiting: true });
}

function hear(message: LiveMessage) {
  if (message.kind === "connected") {
    if (state.link === "lost") mark(["everything"]);
    set({ link: "live", lostAt: null });
  } else if (message.kind === "change") mark(message.topics);
  else if (message.kind === "event") mark(["events"]);
  else lost();
}

function lost() {
  if (state.link !== "lost") set({ link: "lost", lostAt: Date.now() });
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

// ── the server's time; it stands still while the page is paused ─────────────────────────────────────────────────────

let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  if (state.paused || document.hidden) return;
  now = Date.now() + skewMs;
  for (const watcher of watchers) watcher();
}, 1_000);

export function useNow(): number {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => now,
  );
}
