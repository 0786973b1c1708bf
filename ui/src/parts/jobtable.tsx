/** A table of jobs. */

import type { ColumnDef, RowSelectionState } from "@tanstack/react-table";
import { type ReactNode, useMemo } from "react";
import { useNow } from "../data/live";
import type { Job } from "../data/types";
import { t } from "../language";
import { Link, to } from "../router";
import { duration, spent } from "../words";
import { Meter, StatusBadge, Time } from "./basics";
import { Table } from "./table";

export function JobTable({
  jobs,
  empty,
  without,
  selection,
  action,
  sortable = false,
  gone,
}: {
  jobs: Job[];
  empty: ReactNode;
  without?: "worker";
  /** An action for each job, at the end of its row. */
  action?: (job: Job) => ReactNode;
  selection?: { chosen: RowSelectionState; choose: (chosen: RowSelectionState) => void };
  sortable?: boolean;
  /** Jobs that keep their rows though they no longer belong to the list. */
  gone?: Set<string>;
}) {
  const selectable = Boolean(selection);
  const columns = useMemo(
    () => [
      ...(selectable ? [CHOOSE] : []),
      STATUS,
      ...(without === "worker" ? [] : [WORKER]),
      idColumn(without),
      ABOUT,
      ATTEMPT,
      TOOK,
      createdColumn(without),
    ],
    [selectable, without],
  );
  return (
    <Table
      label={t("Jobs")}
      rows={jobs}
      id={(job) => job.id}
      sortable={sortable}
      empty={empty}
      selection={selection}
      columns={columns}
      actions={action}
      look={gone && ((job) => (gone.has(job.id) ? "italic [&_td]:text-muted" : ""))}
    />
  );
}

const CHOOSE: ColumnDef<Job> = {
  id: "choose",
  enableSorting: false,
  header: ({ table }) => (
    <input
      type="checkbox"
      aria-label={t("Select all on this page")}
      checked={table.getIsAllRowsSelected()}
      onChange={() => table.toggleAllRowsSelected()}
    />
  ),
  cell: ({ row }) => (
    <input
      type="checkbox"
      aria-label={t("Select job {id}", { id: row.original.id })}
      checked={row.getIsSelected()}
      onChange={() => row.toggleSelected()}
    />
  ),
};

const STATUS: ColumnDef<Job> = {
  header: t("Status"),
  id: "status",
  accessorFn: (job) => job.status,
  cell: ({ row: { original } }) => <StatusBadge {...original} waitsFor={original.waits_for_signal} />,
};

const WORKER: ColumnDef<Job> = {
  header: t("Worker"),
  id: "worker",
  accessorFn: (job) => job.worker,
  cell: ({ row: { original } }) => (
    <Link className="whitespace-nowrap hover:underline" href={to(["workers", original.worker])}>
      {original.worker}
    </Link>
  ),
};

const idColumn = (without?: "worker"): ColumnDef<Job> => ({
  header: t("Job"),
  id: "id",
  enableSorting: false,
  cell: ({ row: { original } }) => (
    <>
      <JobLink id={original.id} />
      {without === undefined && (
        <span className="block text-xs text-muted sm:hidden">
          <Time at={original.created_at} />
        </span>
      )}
    </>
  ),
});

const ABOUT: ColumnDef<Job> = {
  header: t("Payload or error"),
  id: "about",
  enableSorting: false,
  meta: { grow: true, from: "md" },
  cell: ({ row: { original } }) => <About job={original} />,
};

const ATTEMPT: ColumnDef<Job> = {
  header: t("Attempt"),
  id: "attempt",
  accessorFn: (job) => job.attempt,
  meta: { numeric: true, from: "lg" },
  cell: ({ row: { original } }) => original.attempt,
};

const TOOK: ColumnDef<Job> = {
  header: t("Took"),
  id: "took",
  accessorFn: (job) => spent(job, Date.now()) ?? -1,
  meta: { numeric: true, from: "md" },
  cell: ({ row: { original } }) => <Took job={original} />,
};

const createdColumn = (without?: "worker"): ColumnDef<Job> => ({
  header: t("Created"),
  id: "created",
  accessorFn: (job) => job.created_at,
  meta: { numeric: true, from: without ? undefined : "sm" },
  cell: ({ row: { original } }) => <Time at={original.created_at} />,
});

/** The row's own link, which Enter opens. */
function JobLink({ id }: { id: string }) {
  return (
    <Link className="link font-mono text-xs whitespace-nowrap" href={to(["jobs", id])} title={id} data-row-link="">
      {brief(id)}
    </Link>
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
  return job.status === "processing" ? <Running job={job} /> : duration(spent(job, 0));
}

function Running({ job }: { job: Job }) {
  return <>{duration(spent(job, useNow()))}</>;
}
