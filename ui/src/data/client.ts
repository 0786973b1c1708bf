/** The client of the API, which is served beside index.html, under any path. */

import { ApiError, Client, type Me, type PastEventsQuery } from "shiftwork";
import { language, t, wordOf } from "../language";
import { teller } from "../sentences";

export { ApiError };

let csrf: string | null = null;

/** How far the server's clock is ahead of ours, in milliseconds. Ages follow the server's clock. */
export let skewMs = 0;

/** Which events are meant. */
export type EventsFilter = Omit<PastEventsQuery, "name"> & { name?: string };

/** The key of our sentences in responses: random, so that no payload looks like one. Readers of English need none. */
const KEY = crypto.getRandomValues(new Uint32Array(4)).join("-");
const translates = language !== "en";

export const api = new Client({
  url: new URL(".", document.baseURI),
  fetch: fetchAsVisitor,
  ...(translates && { reviver: teller(KEY, wordOf) }),
});

export async function whoami(signal?: AbortSignal): Promise<Me> {
  const me = await api.me({ signal });
  csrf = me.csrf;
  return me;
}

/** Sends a request with the session's cookie. A change by cookie needs the CSRF token. A field left empty asks for nothing. */
async function fetchAsVisitor(url: URL, init: RequestInit): Promise<Response> {
  for (const [name, value] of [...url.searchParams]) if (value === "") url.searchParams.delete(name);
  const headers = new Headers(init.headers);
  if (translates) headers.set("Shiftwork-Sentences", KEY);
  if (csrf && init.method === "POST") headers.set("X-CSRF-Token", csrf);
  const response = await fetch(url, { ...init, headers, credentials: "same-origin" }).catch(unreachable);
  const said = Date.parse(response.headers.get("date") ?? "");
  if (said) skewMs = Math.abs(said - Date.now()) > 2_000 ? said - Date.now() : 0;
  return response;
}

function unreachable(): never {
  throw new ApiError(
    t("The server cannot be reached. Check that a node or `shiftwork web` is running."),
    "no-response",
    0,
    t("No response"),
  );
}
