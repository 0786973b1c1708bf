/** A job's log, live while it runs. */

import { useEffect, useRef, useState } from "react";
import type { LogLine } from "../data/types";
import { t } from "../language";
import { clock, moment } from "../words";
import { Panel } from "./basics";
import { Copy } from "./copy";

const LOOK: Record<string, string> = {
  warning: "text-warn",
  error: "text-bad",
  critical: "bg-bad-soft font-semibold text-bad",
};
/** Within this many pixels of the end, the log keeps following. */
const NEAR = 24;

export function Log({ lines, live }: { lines: LogLine[]; live: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(live);
  const several = new Set(lines.map((line) => line.attempt)).size > 1;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end moves with the lines
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, lines]);
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current as HTMLDivElement;
    if (live) setFollow(scrollHeight - scrollTop - clientHeight < NEAR);
  };
  const text = lines.map((line) => `${line.at} ${line.level.toUpperCase()} [${line.attempt}] ${line.message}`);
  return (
    <Panel
      title={t("Log")}
      side={
        <>
          {live && (
            <label className="flex items-center gap-1.5 text-xs text-muted">
              <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.target.checked)} />
              {t("Follow")}
            </label>
          )}
          <Copy text={text.join("\n")} what={t("log")} />
        </>
      }
      flush
    >
      <div
        ref={box}
        onScroll={scrolled}
        role="log"
        tabIndex={0}
        aria-label={t("Log")}
        className="max-h-80 overflow-auto py-2 font-mono text-xs leading-5"
      >
        {lines.length === 0 && <p className="px-3 font-sans text-sm text-muted">{t("Nothing logged yet.")}</p>}
        {lines.map((line, index) => (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: lines are only added
            key={index}
            className={`flex gap-x-3 px-3 hover:bg-sunken ${LOOK[line.level] ?? ""}`}
          >
            <time dateTime={line.at} title={moment(Date.parse(line.at))} className="shrink-0 text-muted">
              {clock(Date.parse(line.at))}
            </time>
            {several && (
              <span className="shrink-0 text-muted" title={t("Attempt {n}", { n: line.attempt })}>
                #{line.attempt}
              </span>
            )}
            <span className="w-14 shrink-0 max-sm:hidden">{line.level}</span>
            <span className="min-w-0 break-words whitespace-pre-wrap">{line.message}</span>
          </div>
        ))}
      </div>
    </Panel>
  );
}
