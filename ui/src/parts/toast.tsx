/** Short messages in a corner about the result of an action. */

import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react";
import { t } from "../language";

type Tone = "ok" | "bad";
type Toast = { id: number; tone: Tone; text: string };
const SHOWN_MS = { ok: 4_000, bad: 12_000 };

const Context = createContext<(tone: Tone, text: string) => void>(() => {});
export const useToast = () => useContext(Context);

export function Toaster({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(0);
  const drop = useCallback((id: number) => setToasts((all) => all.filter((one) => one.id !== id)), []);
  const add = useCallback(
    (tone: Tone, text: string) => {
      const id = next.current++;
      setToasts((all) => [...all.slice(-3), { id, tone, text }]);
      setTimeout(() => drop(id), SHOWN_MS[tone]);
    },
    [drop],
  );
  return (
    <Context value={add}>
      {children}
      <div
        role="status"
        aria-live="polite"
        className="pointer-events-none fixed right-3 bottom-3 z-50 flex w-80 max-w-[calc(100vw-1.5rem)] flex-col gap-2"
      >
        {toasts.map((toast) => (
          <div
            key={toast.id}
            className={`pointer-events-auto flex items-start gap-2 rounded-md border bg-surface px-3 py-2 text-sm shadow-lg ${
              toast.tone === "ok" ? "border-ok text-ink" : "border-bad text-bad"
            }`}
          >
            <span className="grow break-words">{toast.text}</span>
            <button type="button" aria-label={t("Dismiss")} className="px-1 text-muted" onClick={() => drop(toast.id)}>
              ×
            </button>
          </div>
        ))}
      </div>
    </Context>
  );
}
