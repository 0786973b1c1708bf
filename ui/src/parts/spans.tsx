/** How far back the charts go; the choice is kept in the address. */

import { t } from "../language";
import { useParams } from "../router";

const SPANS: [string, string][] = [
  ["900", t("{n} min", { n: 15 })],
  ["3600", t("{n} h", { n: 1 })],
  ["21600", t("{n} h", { n: 6 })],
  ["86400", t("{n} h", { n: 24 })],
];
const USUAL = "3600";

export function useSpan(): number {
  const [params] = useParams();
  const asked = params.get("seconds");
  return Number(SPANS.some(([value]) => value === asked) ? asked : USUAL);
}

export function Spans() {
  const [, change] = useParams();
  const now = String(useSpan());
  return (
    <div role="group" aria-label={t("Time shown")} className="flex rounded-md border border-rim bg-surface p-0.5">
      {SPANS.map(([value, label]) => (
        <button
          key={value}
          type="button"
          aria-pressed={now === value}
          className={`h-6 rounded px-2.5 text-xs font-medium whitespace-nowrap ${now === value ? "bg-accent text-on-accent" : "text-muted hover:bg-sunken hover:text-ink"}`}
          onClick={() => change({ seconds: value === USUAL ? null : value })}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
