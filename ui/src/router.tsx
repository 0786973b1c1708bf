/** The current place: the part of the address after `#`, as a path and its parameters. So the page works under any path. */

import { type AnchorHTMLAttributes, useCallback, useMemo, useSyncExternalStore } from "react";

export interface Place {
  path: string[];
  params: URLSearchParams;
}

function subscribe(listener: () => void) {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), params: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone % was typed
  }
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return useMemo(() => parse(hash), [hash]);
}

export function to(path: string[], params: Record<string, string | string[] | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one) search.append(name, one);
  }
  const query = search.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export function go(address: string) {
  window.location.hash = address;
}

/** The parameters of the address, and a function that changes them without a new entry in the browser's history. */
export function useParams(): [URLSearchParams, (change: Record<string, string | string[] | null>) => void] {
  const { path, params } = usePlace();
  const change = useCallback(
    (changed: Record<string, string | string[] | null>) => {
      const next = new URLSearchParams(params);
      for (const [name, value] of Object.entries(changed)) {
        next.delete(name);
        for (const one of Array.isArray(value) ? value : [value]) if (one) next.append(name, one);
      }
      const query = next.toString();
      window.history.replaceState(null, "", `${to(path)}${query ? `?${query}` : ""}`);
      window.dispatchEvent(new HashChangeEvent("hashchange"));
    },
    [path, params],
  );
  return [params, change];
}

export function Link({ className = "link", ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  return <a className={className} {...rest} />;
}
