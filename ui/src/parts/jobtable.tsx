/** A table of jobs. */

import type { RowSelectionState } from "@tanstack/react-table";
import type { ReactNode } from "react";
import { useNow } from "../data/live";
import type { Job } from "../data/types";
import { t } from "../language";
import { Link, to } from "../router";
import { duration, span } from "../words";
import { Meter, StatusBadge, Time } from "./basics";
import { Table } from "./table";

export function JobTable({
  jobs,
  empty,
  without,
  selection,
  action,
}: {
  jobs: Job[];
  empty: ReactNode;
  without?: "worker";
  /** An action for each job, at the end of its row. */
  action?: (job: Job) => ReactNode;
  selection?: { chosen: RowSelectionState; choose: (chosen: RowSelectionState) => void };
}) {
  return (
    <Table
      label={t("Jobs")}
      rows={jobs}
      id={(job) => job.id}
      sortable={false}
      empty={empty}
      selection={selection}
      columns={[
        ...(selection
          ? [
              {
                id: "choose",
                meta: { from: "sm" as const },
                header: ({
                  table,
                }: {
                  table: { getIsAllRowsSelected: () => boolean; toggleAllRowsSelected: () => void };
                }) => (
                  <input
                    type="checkbox"
                    aria-label={t("Select all on this page")}
                    checked={table.getIsAllRowsSelected()}
                    onChange={() => table.toggleAllRowsSelected()}
                  />
                ),
                cell: ({
                  row,
                }: {
                  row: { original: Job; getIsSelected: () => boolean; toggleSelected: () => void };
                }) => (
                  <input
                    type="checkbox"
                    aria-label={t("Select job {id}", { id: row.original.id })}
                    checked={row.getIsSelected()}
                    onChange={() => row.toggleSelected()}
                  />
                ),
              },
            ]
          : []),
        {
          header: t("Status"),
          id: "status",
          cell: ({ row: { original } }) => (
            <StatusBadge status={original.status} cancelling={original.cancelling} stranded={original.stranded} />
          ),
        },
        ...(without === "worker"
          ? []
          : [
              {
                header: t("Worker"),
                id: "worker",
                cell: ({ row: { original } }: { row: { original: Job } }) => (
                  <Link className="whitespace-nowrap hover:underline" href={to(["workers", original.worker])}>
                    {original.worker}
                  </Link>
                ),
              },
            ]),
        {
          header: t("Job"),
          id: "id",
          cell: ({ row: { original } }) => (
            <>
              <Link
                className="link font-mono text-xs whitespace-nowrap"
                href={to(["jobs", original.id])}
                title={original.id}
              >
                {brief(original.id)}
              </Link>
              {without === undefined && (
                <span className="block text-xs text-muted sm:hidden">
                  <Time at={original.created_at} />
                </span>
              )}
            </>
          ),
        },
        {
          header: t("Payload or error"),
          id: "about",
          meta: { grow: true, from: "md" },
          cell: ({ row: { original } }) => <About job={original} />,
        },
        {
          header: t("Attempt"),
          id: "attempt",
          meta: { numeric: true, from: "lg" },
          cell: ({ row: { original } }) => original.attempt,
        },
        {
          header: t("Took"),
          id: "took",
          meta: { numeric: true, from: "md" },
          cell: ({ row: { original } }) => <Took job={original} />,
        },
        {
          header: t("Created"),
          id: "created",
          meta: { numeric: true, from: without ? undefined : "sm" },
          cell: ({ row: { original } }) => <Time at={original.created_at} />,
        },
        ...(action
          ? [
              {
                header: () => <span className="sr-only">{t("Actions")}</span>,
                id: "action",
                meta: { numeric: true },
                cell: ({ row: { original } }: { row: { original: Job } }) => action(original),
              },
            ]
          : []),
      ]}
    />
  );
}

/** A short form of an id: the fire time of a schedule's job, or the time and counter of a generated id. */
export function brief(id: string): string {
  const fired = /@(\d{4}-(\d\d-\d\d)T(\d\d:\d\d:\d\d))/.exec(id);
  if (fired) return `@${fired[2]} ${fired[3]}`;
  if (/^[0-9a-f]{32}$/.test(id)) return `…${id.slice(6, 18)}`;
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
}

function About({ job }: { job: Job }) {
  if (job.progress?.total && job.status === "processing") {
    const { done, total, message } = job.progress;
    return (
      <span className="flex items-center gap-2">
        <span className="w-28 shrink-0">
          <Meter value={done} most={total} label={t("Progress of {id}", { id: job.id })} />
        </span>
        <span className="truncate text-xs text-muted">{message ?? t("{n} of {total}", { n: done, total })}</span>
      </span>
    );
  }
  if (job.error) return <span className="block truncate text-xs text-bad">{job.error}</span>;
  return <span className="block truncate font-mono text-xs text-muted">{JSON.stringify(job.payload)}</span>;
}

function Took({ job }: { job: Job }) {
  const now = useNow();
  return <>{duration(span(job.started_at, job.ended_at, now))}</>;
}
