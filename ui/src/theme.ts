/** The theme: light, dark, or the system's. */

import { useEffect, useState, useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "shiftwork.theme";
const listeners = new Set<() => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // storage may be blocked
  }
}

let theme = stored();
apply();
system.addEventListener("change", tell);

function apply() {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function tell() {
  for (const listener of listeners) listener();
}

export function setTheme(next: Theme) {
  theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // storage is blocked: the theme lasts as long as the page
  }
  apply();
  tell();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = () => useSyncExternalStore(subscribe, () => theme);

const resolved = () => (theme === "system" ? (system.matches ? "dark" : "light") : theme);

/** The theme in effect, for what is painted on a canvas rather than styled. */
export function useShade(): "light" | "dark" {
  return useSyncExternalStore(subscribe, resolved);
}

/** The value of a colour from style.css, for a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Whether the window is at least this wide. */
export function useWide(pixels: number): boolean {
  const [query] = useState(() => window.matchMedia(`(min-width: ${pixels}px)`));
  const [wide, setWide] = useState(query.matches);
  useEffect(() => {
    const look = () => setWide(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, [query]);
  return wide;
}
