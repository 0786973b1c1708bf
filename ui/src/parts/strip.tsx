/**
 * The latest runs as bars: the colour shows how a run ended, the height how long it took. The newest is on the right and
 * in sight; one scrolls to the oldest, because a bar is as wide as a finger needs.
 */

import { useNow } from "../data/live";
import type { Job } from "../data/types";
import { t } from "../language";
import { to } from "../router";
import { duration, moment, percent, spent } from "../words";

const LOOK: Record<string, string> = {
  completed: "bg-ok-fill",
  failed: "bg-warn-fill",
  dead: "bg-bad-fill",
  cancelled: "bg-edge",
  processing: "bg-accent-fill animate-pulse",
  queued: "bg-line",
  scheduled: "bg-line",
};
const LEAST = 18;

export function Strip({ runs }: { runs: Job[] }) {
  const now = useNow();
  if (runs.length === 0) return <p className="text-sm text-muted">{t("No runs yet.")}</p>;
  const took = (run: Job) => spent(run, now) ?? 0;
  const longest = Math.max(...runs.map(took), 1e-3);
  return (
    <>
      <div className="flex h-16 flex-row-reverse overflow-x-auto" role="list" aria-label={t("Latest runs")}>
        {runs.map((run) => {
          const text = [t(run.status), moment(Date.parse(run.created_at)), duration(took(run))].join(t(", "));
          return (
            <div role="listitem" key={run.id} className="h-full w-6 shrink-0">
              <a href={to(["jobs", run.id])} title={text} className="flex h-full items-end px-px hover:opacity-70">
                <span
                  className={`block w-full rounded-t-xs ${LOOK[run.status]}`}
                  style={{ height: `${LEAST + (100 - LEAST) * (took(run) / longest)}%` }}
                />
                <span className="sr-only">{text}</span>
              </a>
            </div>
          );
        })}
      </div>
      <Sum runs={runs} took={took} />
      <p className="mt-2 flex flex-wrap gap-x-3 text-xs text-muted">
        <span className="text-ok">{t("■ completed")}</span>
        <span className="text-warn">{t("■ failed, to retry")}</span>
        <span className="text-bad">{t("■ dead")}</span>
        <span className="text-accent">{t("■ running")}</span>
        <span>{t("taller bars took longer")}</span>
      </p>
    </>
  );
}

function Sum({ runs, took }: { runs: Job[]; took: (run: Job) => number }) {
  const ended = runs.filter((run) => run.ended_at && run.started_at);
  if (ended.length === 0) return null;
  const times = ended.map(took).sort((a, b) => a - b);
  const well = ended.filter((run) => run.status === "completed").length;
  return (
    <p className="mt-2 text-sm">
      {t("{share} of {n} {n:run|runs} completed; half took less than {half}, the longest {longest}", {
        share: percent(well / ended.length),
        n: ended.length,
        half: duration(times[Math.floor(times.length / 2)]),
        longest: duration(times.at(-1)),
      })}
    </p>
  );
}
