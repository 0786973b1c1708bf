/** Turns the history into the lines of the charts. */

import type { Line } from "../parts/chart";
import { millis } from "../words";
import type { History, PoolHistory, Series } from "./types";

const INKS = 7;
const DRAWN = 6;

/** Gives a pool the same colour on every chart. */
export function inks(names: string[]): Map<string, string> {
  return new Map([...names].sort().map((name, index) => [name, `series-${(index % INKS) + 1}`]));
}

export const instants = (history: Pick<History, "at">) => history.at.map((at) => millis(at) / 1000);

/** The sum over pools; null only where no pool has a value. */
export function total(series: Series[]): Series {
  const length = Math.max(0, ...series.map((one) => one.length));
  return Array.from({ length }, (_, index) => {
    const known = series.map((one) => one[index]).filter((value) => value !== null && value !== undefined);
    return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
  });
}

export const rate = (values: Series, step: number): Series =>
  values.map((value) => (value === null ? null : value / step));

/** An empty queue has an oldest wait of zero, not a gap. */
export const zeroed = (pool: PoolHistory, values: Series): Series =>
  values.map((value, index) => (value === null && pool.queued[index] !== null ? 0 : value));

/** One line per pool; only the largest if there are many. */
export function perPool(history: History, kind: "queued" | "oldest_wait" | "wait_p95" | "run_p95"): Line[] {
  const names = Object.keys(history.pools);
  const ink = inks(names);
  const peak = (name: string) => Math.max(0, ...(history.pools[name]?.[kind] ?? []).map((value) => value ?? 0));
  const drawn = names.length <= DRAWN ? names : names.sort((a, b) => peak(b) - peak(a)).slice(0, DRAWN);
  return drawn.sort().map((name) => ({
    name,
    ink: ink.get(name) ?? "series-7",
    values: valuesOf(history.pools[name] as PoolHistory, kind),
    through: kind === "wait_p95" || kind === "run_p95",
  }));
}

function valuesOf(pool: PoolHistory, kind: "queued" | "oldest_wait" | "wait_p95" | "run_p95"): Series {
  const values = pool[kind];
  return kind === "oldest_wait" ? zeroed(pool, values) : values;
}

/** The percentage of successful attempts at each moment; null where none ended. */
export function successes(completed: Series, failed: Series): Series {
  return completed.map((well, index) => {
    const badly = failed[index] ?? 0;
    return well === null || well + badly === 0 ? null : (100 * well) / (well + badly);
  });
}

/** The share of successful attempts in the time shown; null if there were none. */
export function success(history: History): { share: number; completed: number; failed: number } | null {
  const sum = (kind: "completed" | "failed") =>
    Object.values(history.pools).reduce((all, pool) => all + pool[kind].reduce<number>((a, b) => a + (b ?? 0), 0), 0);
  const [completed, failed] = [sum("completed"), sum("failed")];
  return completed + failed > 0 ? { share: completed / (completed + failed), completed, failed } : null;
}
