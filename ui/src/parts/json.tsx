/** A value as JSON, with syntax colours. */

import { type ReactNode, useState } from "react";
import { t } from "../language";
import { Button } from "./basics";
import { Copy } from "./copy";

const LONGEST = 12_000;
const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function tinted(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const found of text.matchAll(TOKEN)) {
    parts.push(text.slice(from, found.index));
    const [all, string, colon, word] = found;
    const look = string ? (colon ? "text-ink" : "text-ok") : word ? "text-warn" : "text-accent";
    parts.push(
      <span key={found.index} className={look}>
        {all}
      </span>,
    );
    from = found.index + all.length;
  }
  parts.push(text.slice(from));
  return parts;
}

export function Json({ value, label }: { value: unknown; label: string }) {
  const [whole, setWhole] = useState(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const shown = whole ? text : text.slice(0, LONGEST);
  return (
    <div className="relative">
      <pre
        role="region"
        aria-label={label}
        tabIndex={0}
        className="max-h-96 overflow-auto p-3 pr-16 font-mono text-xs leading-5"
      >
        {tinted(shown)}
        {shown.length < text.length && "…"}
      </pre>
      <div className="absolute top-2 right-2 flex gap-1">
        {shown.length < text.length && (
          <Button small onClick={() => setWhole(true)}>
            {t("All")}
          </Button>
        )}
        <Copy text={text} what={label} />
      </div>
    </div>
  );
}
