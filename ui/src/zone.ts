/** The time zone of every time on the pages: the reader's own, or UTC. The choice is kept. */

export type Zone = "local" | "utc";
const KEY = "shiftwork.zone";
/** Instants as the server writes them in its sentences, always in UTC. */
const INSTANT = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

function stored(): Zone {
  try {
    return localStorage.getItem(KEY) === "utc" ? "utc" : "local";
  } catch {
    return "local"; // storage may be blocked
  }
}

export const zone: Zone = stored();
const LOCAL = Intl.DateTimeFormat()
  .resolvedOptions()
  .timeZone.replace(/^Etc\/UTC$/, "UTC");
/** The name of a zone, as people know it. */
export const zoneName = (of: Zone) => (of === "utc" ? "UTC" : LOCAL);

/** The same in few letters: UTC, or the distance from it now. */
export function zoneSign(of: Zone): string {
  const minutes = of === "utc" ? 0 : -new Date().getTimezoneOffset();
  if (!minutes) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${rest}` : ""}`;
}

/** Keeps the choice and loads the page again. Its place and filters are in the address. */
export function setZone(next: Zone) {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    return; // storage is blocked, and the choice would be lost with the page
  }
  window.location.reload();
}

/** The date whose UTC fields are those of this instant in the page's zone. */
const shifted = (ms: number) => new Date(zone === "utc" ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000);
const written = (ms: number) => (Number.isFinite(ms) ? shifted(ms).toISOString() : "–".repeat(24));

export const clock = (ms: number, seconds = true) => written(ms).slice(11, seconds ? 19 : 16);
export const day = (ms: number) => written(ms).slice(0, 10);
export const moment = (ms: number) => `${day(ms)} ${clock(ms)}`;

/** The value of a `datetime-local` field for an instant, and back. */
export const inField = (at: string) => written(Date.parse(at)).slice(0, 16);
export const fromField = (text: string) => new Date(zone === "utc" ? `${text}Z` : text).toISOString();

/** A sentence of the server with its instants in the page's zone. */
export const inZone = (text: string) =>
  text.replace(INSTANT, (instant) => moment(Date.parse(instant.replace(" ", "T"))));
