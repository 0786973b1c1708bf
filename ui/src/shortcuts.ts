/** Keyboard shortcuts, among them those that steer the lists, active unless the focus is in a field or a dialog. */

import { useLayoutEffect, useRef } from "react";
import { isPaused, pause } from "./data/live";
import { t } from "./language";
import { go, to } from "./router";

export const GOES: Record<string, [string, string]> = {
  o: ["overview", t("Overview")],
  p: ["pools", t("Pools")],
  w: ["workers", t("Workers")],
  s: ["schedules", t("Schedules")],
  j: ["jobs", t("Jobs")],
  f: ["flows", t("Flows")],
  d: ["dead", t("Dead letters")],
  b: ["breakers", t("Breakers")],
  n: ["nodes", t("Nodes")],
  e: ["events", t("Events")],
};

export function useShortcuts({ help, search }: { help: () => void; search: () => void }) {
  const prefixed = useRef(false);
  // A layout effect listens before the page is painted, so that no key of a quick reader is lost.
  useLayoutEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
      if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
      const going = prefixed.current ? GOES[event.key] : undefined;
      prefixed.current = event.key === "g";
      if (going) go(to([going[0]]));
      else if (event.key === "/") search();
      else if (event.key === "?") help();
      else if (event.key === ".") pause(!isPaused());
      else if (!steer(event.key)) return;
      event.preventDefault();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [help, search]);
}

/** What a row of any list has, so that the keys find it. */
export const ROW = { "data-row": "", tabIndex: -1 } as const;

/** Moves through the rows of the page's lists, opens the one that has the focus, or selects it. Returns whether it did. */
function steer(key: string): boolean {
  const row = document.activeElement?.closest<HTMLElement>("[data-row]");
  if (key === "j" || key === "k") return step(row ?? null, key === "j" ? 1 : -1);
  if (key === "u") return press(document.querySelector("[data-new-rows]"));
  if (!row) return false;
  // A link or a button in the row that has the focus itself keeps its Enter.
  if (key === "Enter" && document.activeElement === row)
    return press(row.querySelector("[data-row-link]") ?? row.querySelector("a"));
  if (key === "x") return press(row.querySelector("input[type=checkbox]"));
  return false;
}

function step(from: HTMLElement | null, by: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const next = from ? rows[rows.indexOf(from) + by] : rows[0];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
  return rows.length > 0;
}

function press(found: Element | null): boolean {
  if (found instanceof HTMLElement) found.click();
  return found !== null;
}
