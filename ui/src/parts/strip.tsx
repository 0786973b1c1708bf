/** The latest runs as a strip, oldest left: one mark a run, its colour and height say how it ended. */

import type { Job } from "../data/types";
import { to } from "../router";
import { duration, moment, span } from "../words";

const LOOK: Record<string, string> = {
  completed: "bg-ok-fill h-4",
  failed: "bg-warn-fill h-5",
  dead: "bg-bad-fill h-6",
  cancelled: "bg-edge h-3",
  processing: "bg-accent-fill h-5 animate-pulse",
  queued: "bg-line h-3",
  scheduled: "bg-line h-2",
};

export function Strip({ runs }: { runs: Job[] }) {
  if (runs.length === 0) return <p className="text-sm text-muted">It has not run yet.</p>;
  return (
    <div className="flex h-6 items-end gap-0.5" role="list" aria-label="Latest runs, oldest first">
      {[...runs].reverse().map((run) => {
        const took = span(run.started_at, run.ended_at, Date.now());
        const text = `${run.status}, ${moment(Date.parse(run.created_at))}, ${duration(took)}`;
        return (
          <div role="listitem" key={run.id} className="flex w-2 items-end">
            <a
              href={to(["jobs", run.id])}
              title={text}
              className={`block w-full rounded-xs hover:opacity-70 ${LOOK[run.status]}`}
            >
              <span className="sr-only">{text}</span>
            </a>
          </div>
        );
      })}
    </div>
  );
}
