/** Keyboard shortcuts, active unless the focus is in a field or a dialog. */

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
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [help, search]);
}
