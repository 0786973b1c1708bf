/** A table of jobs. */

import type { ColumnDef, RowSelectionState } from "@tanstack/react-table";
import { type ReactNode, useMemo } from "react";
import { useNow } from "../data/live";
import type { Job, PlacedJob } from "../data/types";
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
  order,
  gone,
}: {
  jobs: PlacedJob[];
  empty: ReactNode;
  without?: "worker";
  /** An action for each job, at the end of its row. */
  action?: (job: PlacedJob) => ReactNode;
  selection?: { chosen: RowSelectionState; choose: (chosen: RowSelectionState) => void };
  /** The order that the server was asked for, and how to ask for another. */
  order?: { of: "newest" | "oldest"; change: (order: "newest" | "oldest") => void };
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
      sortable={Boolean(order)}
      order={
        order && {
          sorting: [{ id: "created", desc: order.of === "newest" }],
          change: ([by]) => order.change(by?.desc ? "newest" : "oldest"),
        }
      }
      empty={empty}
      selection={selection}
      columns={columns}
      actions={action}
      look={gone && ((job) => (gone.has(job.id) ? "italic [&_td]:text-muted" : ""))}
    />
  );
}

const CHOOSE: ColumnDef<PlacedJob> = {
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

const STATUS: ColumnDef<PlacedJob> = {
  header: t("Status"),
  id: "status",
  cell: ({ row: { original } }) => <StatusBadge {...original} waitsFor={original.waits_for_signal} />,
};

const WORKER: ColumnDef<PlacedJob> = {
  header: t("Worker"),
  id: "worker",
  cell: ({ row: { original } }) => (
    <Link className="whitespace-nowrap hover:underline" href={to(["workers", original.worker])}>
      {original.worker}
    </Link>
  ),
};

const idColumn = (without?: "worker"): ColumnDef<PlacedJob> => ({
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
      {original.position !== null && (
        <span className="block text-xs text-muted md:hidden">
          <PositionAndStart job={original} />
        </span>
      )}
    </>
  ),
});

const ABOUT: ColumnDef<PlacedJob> = {
  header: t("Payload or error"),
  id: "about",
  enableSorting: false,
  meta: { grow: true, from: "md" },
  cell: ({ row: { original } }) => <About job={original} />,
};

const ATTEMPT: ColumnDef<PlacedJob> = {
  header: t("Attempt"),
  id: "attempt",
  meta: { numeric: true, from: "lg" },
  cell: ({ row: { original } }) => original.attempt,
};

const TOOK: ColumnDef<PlacedJob> = {
  header: t("Took"),
  id: "took",
  meta: { numeric: true, from: "md" },
  cell: ({ row: { original } }) => <Took job={original} />,
};

const createdColumn = (without?: "worker"): ColumnDef<PlacedJob> => ({
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

/** Where a queued job is, and when it is likely to start. */
function PositionAndStart({ job: { position, position_exact, estimate } }: { job: PlacedJob }) {
  if (position === null) return null;
  const place = position_exact ? t("position {n}", { n: position }) : t("about position {n}", { n: rounded(position) });
  if (estimate === null) return <>{place}</>;
  if (estimate < NOW) return <>{t("{place}, starts now", { place })}</>;
  return <>{t("{place}, in about {time}", { place, time: duration(estimate) })}</>;
}

/** What starts within this many seconds starts now. */
const NOW = 0.1;

/** A number with three digits that count. */
const rounded = (n: number) => Number(n.toPrecision(3));

function About({ job }: { job: PlacedJob }) {
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
  return (
    <span className="block truncate text-xs text-muted">
      {job.position !== null && (
        <span className="mr-3 text-ink">
          <PositionAndStart job={job} />
        </span>
      )}
      <span className="font-mono">{JSON.stringify(job.payload)}</span>
    </span>
  );
}

function Took({ job }: { job: Job }) {
  return job.status === "processing" ? <Running job={job} /> : duration(spent(job, 0));
}

function Running({ job }: { job: Job }) {
  return <>{duration(spent(job, useNow()))}</>;
}
