/** Formats numbers and times in the page's language. */

import { language, t } from "./language";

export { clock, day, moment } from "./zone";

const whole = new Intl.NumberFormat(language);
const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });

export const count = (n: number) => whole.format(n);
export const compact = (n: number) => (Math.abs(n) < 10_000 ? whole.format(Math.round(n * 10) / 10) : short.format(n));

const UNITS = [
  ["{n} d", 86_400],
  ["{n} h", 3_600],
  ["{n} min", 60],
  ["{n} s", 1],
] as const;

/** A duration in its two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds > 0 && seconds < 0.0995) return t("{n} ms", { n: Math.round(seconds * 1000) });
  if (seconds > 0 && seconds < 10) return t("{n} s", { n: seconds.toFixed(1) });
  return round(Math.max(0, seconds));
}

/** A duration of whole seconds. */
function round(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[first] ?? UNITS[3];
  const [nextUnit, nextSize] = UNITS[first + 1] ?? UNITS[3];
  const rest = Math.floor((seconds % size) / nextSize);
  const most = t(unit, { n: Math.floor(seconds / size) });
  return rest ? `${most} ${t(nextUnit, { n: rest })}` : most;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const percent = (share: number) =>
  `${share === 1 ? "100" : Math.min(99.9, share * 100).toFixed(share > 0.999 ? 2 : 1)} %`;

/** A time relative to now, such as "12 s ago" or "in 3 min". */
export function ago(ms: number, now: number): string {
  const seconds = (now - ms) / 1000;
  if (Math.abs(seconds) < 1) return t("now");
  const time = round(Math.abs(seconds) < 10 ? Math.round(Math.abs(seconds)) : Math.abs(seconds));
  return seconds > 0 ? t("{time} ago", { time }) : t("in {time}", { time });
}

export const millis = (at: string | number): number => (typeof at === "number" ? at * 1000 : Date.parse(at));

/** How long a job's run takes or took, in seconds; null between two runs. */
export function spent(job: { status: string; started_at: string | null; ended_at: string | null }, now: number) {
  return job.ended_at || job.status === "processing" ? span(job.started_at, job.ended_at, now) : null;
}

/** How long something took or takes, in seconds. */
export function span(from: string | null, until: string | null, now: number): number | null {
  if (!from) return null;
  return ((until ? Date.parse(until) : now) - Date.parse(from)) / 1000;
}
