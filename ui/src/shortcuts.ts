/** Keyboard shortcuts, active unless the focus is in a field or a dialog. */

import { useEffect, useRef } from "react";
import { isPaused, pause } from "./data/live";
import { go, to } from "./router";

export const GOES: Record<string, [string, string]> = {
  o: ["overview", "Overview"],
  p: ["pools", "Pools"],
  w: ["workers", "Workers"],
  j: ["jobs", "Jobs"],
  d: ["dead", "Dead letters"],
  n: ["nodes", "Nodes"],
  e: ["events", "Events"],
};
const PATIENCE_MS = 1_500;

export function useShortcuts({ help, search }: { help: () => void; search: () => void }) {
  const pressed = useRef(0);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
      if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
      const going = Date.now() - pressed.current < PATIENCE_MS ? GOES[event.key] : undefined;
      pressed.current = event.key === "g" ? Date.now() : 0;
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
