/** Formats numbers and times. */

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n: number) => whole.format(n);
export const compact = (n: number) => (Math.abs(n) < 10_000 ? whole.format(Math.round(n * 10) / 10) : short.format(n));
export const counted = (n: number, noun: string, many = `${noun}s`) => `${count(n)} ${n === 1 ? noun : many}`;

/** A duration in its two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 0.0995) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [name, size] = units[first] as [string, number];
  const [nextName, nextSize] = units[first + 1] as [string, number];
  const rest = Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${name}${rest ? ` ${rest} ${nextName}` : ""}`;
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

const two = (n: number) => String(n).padStart(2, "0");

export function clock(ms: number, seconds = true): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

export function day(ms: number): string {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export const moment = (ms: number) => `${day(ms)} ${clock(ms)}`;

/** A time relative to now, such as "12 s ago" or "in 3 min". */
export function ago(ms: number, now: number): string {
  const seconds = (now - ms) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const words = duration(Math.abs(seconds) < 10 ? Math.round(Math.abs(seconds)) : Math.abs(seconds)).replace(
    ".0 s",
    " s",
  );
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}

export const millis = (at: string | number): number => (typeof at === "number" ? at * 1000 : Date.parse(at));

/** How long something took or takes, in seconds. */
export function span(from: string | null, until: string | null, now: number): number | null {
  if (!from) return null;
  return ((until ? Date.parse(until) : now) - Date.parse(from)) / 1000;
}
