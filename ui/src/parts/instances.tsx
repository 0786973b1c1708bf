/** The instances of a pool or a node, and what each runs now. */

import type { Instance } from "../data/types";
import { t } from "../language";
import { Link, to } from "../router";
import { bytes, duration } from "../words";
import { Badge, Empty, Time } from "./basics";
import { brief } from "./jobtable";
import { StackButton } from "./stack";
import { Table } from "./table";

const SHOWN = 4;
const SLOW_SECONDS = 0.25;

export function Instances({ rows, node }: { rows: Instance[]; node?: string }) {
  return (
    <Table
      label={node ? t("Instances of {name}", { name: node }) : t("Instances")}
      rows={rows}
      id={(instance) => instance.id}
      empty={<Empty title={t("No instances")}>{t("No instance serves this pool now.")}</Empty>}
      columns={[
        ...(node
          ? [
              {
                header: t("Pool"),
                accessorKey: "pool",
                cell: ({ row: { original } }: { row: { original: Instance } }) => (
                  <Link href={to(["pools", original.pool])}>{original.pool}</Link>
                ),
              },
            ]
          : [
              {
                header: t("Node"),
                accessorKey: "node",
                cell: ({ row: { original } }: { row: { original: Instance } }) => (
                  <Link className="link whitespace-nowrap" href={to(["nodes"], { node: original.node })}>
                    {original.node}
                  </Link>
                ),
              },
            ]),
        { header: t("Pid"), accessorKey: "pid", meta: { numeric: true, from: "sm" } },
        {
          header: t("State"),
          accessorKey: "status",
          cell: ({ row: { original } }) => (
            <Badge tone={original.status === "busy" ? "accent" : original.status === "dead" ? "bad" : "plain"}>
              {t(original.status)}
            </Badge>
          ),
        },
        {
          header: t("Running jobs"),
          id: "current",
          enableSorting: false,
          meta: { grow: true },
          cell: ({ row: { original } }) => <Running instance={original} />,
        },
        {
          header: t("Busy"),
          id: "jobs",
          accessorFn: (instance) => instance.busy,
          meta: { numeric: true, from: "sm" },
          cell: ({ row: { original } }) => t("{n} of {total}", { n: original.busy, total: original.slots }),
        },
        {
          header: t("CPU"),
          accessorKey: "cpu_percent",
          meta: { numeric: true, from: "sm" },
          cell: ({ row: { original } }) =>
            original.cpu_percent === null ? "–" : `${Math.round(original.cpu_percent)} %`,
        },
        {
          header: t("Memory"),
          accessorKey: "memory_bytes",
          meta: { numeric: true, from: "sm" },
          cell: ({ row: { original } }) => bytes(original.memory_bytes),
        },
        {
          header: t("Loop lag"),
          accessorKey: "lag_seconds",
          meta: { numeric: true, from: "lg" },
          cell: ({ row: { original } }) => (
            <span className={(original.lag_seconds ?? 0) > SLOW_SECONDS ? "font-medium text-bad" : ""}>
              {duration(original.lag_seconds)}
            </span>
          ),
        },
        {
          header: t("Heartbeat"),
          accessorKey: "last_beat_at",
          meta: { numeric: true, from: "md" },
          cell: ({ row: { original } }) => <Time at={original.last_beat_at} />,
        },
      ]}
    />
  );
}

function Running({ instance }: { instance: Instance }) {
  const jobs = instance.current_jobs;
  if (jobs.length === 0) return <span className="text-muted">–</span>;
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {jobs.slice(0, SHOWN).map((id) => (
        <span key={id} className="flex items-center gap-1.5 whitespace-nowrap">
          <Link className="link font-mono text-xs" href={to(["jobs", id])} title={id}>
            {brief(id)}
          </Link>
          <StackButton id={id} small />
        </span>
      ))}
      {jobs.length > SHOWN && (
        <Link className="link text-xs" href={to(["jobs"], { status: "processing", pool: instance.pool })}>
          {t("and {n} more", { n: jobs.length - SHOWN })}
        </Link>
      )}
    </span>
  );
}
