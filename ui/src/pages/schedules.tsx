import type { ColumnDef } from "@tanstack/react-table";
import { useState } from "react";
import { useMay, useSchedule, useSchedules, useWorkerNames, useWorkers } from "../data/queries";
import type { Schedule, Worker } from "../data/types";
import { rich, t, wordOf } from "../language";
import { READ_ONLY } from "../parts/actions";
import { Answer, Badge, Button, Empty, Facts, Heading, Panel, Stat, Time } from "../parts/basics";
import { brief } from "../parts/jobtable";
import { Json } from "../parts/json";
import { FireTimes, PutSchedule, ScheduleActions } from "../parts/schedules";
import { Table } from "../parts/table";
import { Typed } from "../parts/typed";
import { go, Link, to, useParams } from "../router";
import { duration } from "../words";
import { inZone } from "../zone";

const PAGE = 100;

export function SchedulesPage() {
  const [params, change] = useParams();
  const worker = params.get("worker") ?? "";
  const after = params.get("after");
  const schedules = useSchedules(worker, after, PAGE);
  const [near, setNear] = useState(false);
  const names = useWorkerNames(near);
  return (
    <>
      <Heading
        title={t("Schedules")}
        about={t("Those kept in the store by name, and those that workers have in the code")}
      >
        <NewSchedule worker={worker} />
      </Heading>
      <Panel flush>
        <div className="flex flex-wrap gap-2 border-b border-line p-2">
          <Typed
            label={t("Worker")}
            className="w-full sm:w-60"
            value={worker}
            take={(written) => change({ worker: written || null, after: null })}
            names={names.data}
            near={() => setNear(true)}
          />
        </div>
        <Answer of={schedules}>
          {(page) => (
            <>
              <List rows={page.schedules} filtered={Boolean(worker || after)} whole={!after && !page.next_after} />
              {(after || page.next_after) && (
                <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                  <span>{t("{n} {n:schedule|schedules}", { n: page.schedules.length })}</span>
                  <Button small className="ml-auto" disabled={!after} onClick={() => change({ after: null })}>
                    {t("First page")}
                  </Button>
                  <Button small disabled={!page.next_after} onClick={() => change({ after: page.next_after })}>
                    {t("Next page")}
                  </Button>
                </div>
              )}
            </>
          )}
        </Answer>
      </Panel>
      {!after && <OfWorkers worker={worker} />}
    </>
  );
}

/** The schedules that workers have of their own, in the code. */
function OfWorkers({ worker }: { worker: string }) {
  const workers = useWorkers();
  return (
    <Panel className="mt-3" title={t("Schedules of workers")} flush>
      <Answer of={workers} rows={4}>
        {(data) => (
          <Table
            label={t("Schedules of workers")}
            rows={data.workers.filter((one) => one.mode !== "triggered" && (!worker || one.name === worker))}
            id={(one) => one.name}
            sort={[{ id: "name", desc: false }]}
            empty={<Empty title={t("No worker has a schedule")} />}
            columns={OF_WORKERS}
          />
        )}
      </Answer>
    </Panel>
  );
}

const OF_WORKERS: ColumnDef<Worker>[] = [
  {
    header: t("Worker"),
    accessorKey: "name",
    cell: ({ row: { original } }) => (
      <span className="flex items-center gap-2 whitespace-nowrap">
        <Link href={to(["workers", original.name])}>{original.name}</Link>
        {!original.enabled && <Badge tone="bad">{t("✕ disabled")}</Badge>}
        {original.rescheduled_at && <Badge>{t("changed by hand")}</Badge>}
      </span>
    ),
  },
  { header: t("Schedule"), accessorKey: "schedule", cell: ({ row: { original } }) => inZone(original.schedule) },
  { header: t("Pool"), accessorKey: "pool", meta: { from: "md" } },
  {
    header: t("Next"),
    accessorKey: "next_due_at",
    meta: { from: "sm" },
    cell: ({ row: { original } }) => <Time at={original.next_due_at} />,
  },
  {
    header: t("Last"),
    accessorKey: "last_run_at",
    meta: { from: "md" },
    cell: ({ row: { original } }) => <Time at={original.last_run_at} none={t("never")} />,
  },
];

function NewSchedule({ worker }: { worker: string }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button kind="primary" disabled={!may} title={may ? undefined : READ_ONLY} onClick={() => setOpen(true)}>
        {t("New schedule")}
      </Button>
      {open && <PutSchedule worker={worker} close={() => setOpen(false)} />}
    </>
  );
}

/** One page of schedules, by name. Only a list that is whole can be sorted otherwise. */
function List({ rows, filtered, whole }: { rows: Schedule[]; filtered: boolean; whole: boolean }) {
  return (
    <Table
      label={t("Schedules")}
      rows={rows}
      id={(schedule) => schedule.name}
      sortable={whole}
      sort={[{ id: "name", desc: false }]}
      empty={
        filtered ? (
          <Empty title={t("No matching schedules")}>{t("Remove the filter.")}</Empty>
        ) : (
          <Empty title={t("No schedules yet")}>
            {t("Add one here, or with put_schedule or shiftwork schedule put.")}
          </Empty>
        )
      }
      columns={[
        {
          header: t("Name"),
          accessorKey: "name",
          cell: ({ row: { original } }) => (
            <span className="flex items-center gap-2 whitespace-nowrap">
              <Link href={to(["schedules", original.name])}>{original.name}</Link>
              {original.paused && <Badge tone="warn">{t("‖ paused")}</Badge>}
            </span>
          ),
        },
        {
          header: t("Schedule"),
          accessorKey: "schedule",
          cell: ({ row: { original } }) => (
            <span title={original.cron ? zoned(original.cron, original.timezone) : undefined}>
              {inZone(original.schedule)}
            </span>
          ),
        },
        {
          header: t("Worker"),
          accessorKey: "worker",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Link href={to(["workers", original.worker])}>{original.worker}</Link>,
        },
        {
          header: t("Next"),
          accessorKey: "next_fire_at",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Time at={original.next_fire_at} />,
        },
        {
          header: t("Last"),
          accessorKey: "last_fire_at",
          meta: { from: "md" },
          cell: ({ row: { original } }) => <LastRun schedule={original} />,
        },
      ]}
      actions={(schedule) => <ScheduleActions schedule={schedule} small />}
    />
  );
}

function LastRun({ schedule }: { schedule: Schedule }) {
  const time = <Time at={schedule.last_fire_at} none={t("never")} />;
  return schedule.last_job ? <Link href={to(["jobs", schedule.last_job])}>{time}</Link> : time;
}

/** The options of its jobs, as far as they are set. */
function options(schedule: Schedule): [string, string][] {
  const said: [string, string | null][] = [
    [t("Unique key"), schedule.unique_key],
    [t("Retries"), schedule.max_retries === null ? null : String(schedule.max_retries)],
    [t("Timeout"), schedule.timeout_seconds === null ? null : duration(schedule.timeout_seconds)],
    [t("Expires after"), schedule.expires_seconds === null ? null : duration(schedule.expires_seconds)],
    [t("Tags"), schedule.tags.join(", ") || null],
  ];
  return said.filter((one): one is [string, string] => one[1] !== null);
}

export function SchedulePage({ name }: { name: string }) {
  const schedule = useSchedule(name);
  return (
    <Answer of={schedule}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["schedules"])}>
                  {t("Schedules")}
                </Link>
                <span className="text-muted">/</span> {seen.name}{" "}
                {seen.paused && <Badge tone="warn">{t("‖ paused")}</Badge>}
              </>
            }
          >
            <ScheduleActions schedule={seen} gone={() => go(to(["schedules"]))} />
          </Heading>
          <div className="flex flex-col gap-3">
            {seen.paused && (
              <p className="rounded-md border border-warn bg-warn-soft px-3 py-2 text-sm text-warn">
                {rich("Paused {time}. It fires again when it is resumed.", { time: <Time at={seen.paused_at} /> })}
              </p>
            )}
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-3">
              <Stat
                label={t("Next")}
                value={<Time at={seen.next_fire_at} none={t("paused")} />}
                note={inZone(seen.schedule)}
              />
              <Stat
                label={t("Last")}
                value={<Time at={seen.last_fire_at} none={t("never")} />}
                note={
                  seen.last_job && (
                    <Link className="link font-mono" href={to(["jobs", seen.last_job])}>
                      {brief(seen.last_job)}
                    </Link>
                  )
                }
              />
              <Stat
                label={t("Worker")}
                value={<Link href={to(["workers", seen.worker])}>{seen.worker}</Link>}
                note={t("pool {pool}", { pool: seen.pool })}
              />
            </div>
            <div className="grid gap-3 lg:grid-cols-2">
              <Panel title={t("Next fire times")}>
                {seen.next_times.length ? (
                  <FireTimes times={seen.next_times} />
                ) : (
                  <p className="text-sm text-muted">{t("None while it is paused.")}</p>
                )}
              </Panel>
              <Panel title={t("Policy")}>
                <Facts
                  items={[
                    [t("Schedule"), inZone(seen.schedule)],
                    ...(seen.cron ? ([[t("Cron"), zoned(seen.cron, seen.timezone)]] as [string, string][]) : []),
                    [t("Missed fire times"), CATCH_UP[seen.catch_up]],
                    [
                      t("Overlap"),
                      seen.overlap === "skip" ? t("skipped while its last job has not ended") : t("allowed"),
                    ],
                    [t("Priority"), wordOf(seen.priority)],
                    ...options(seen),
                    [
                      t("Put"),
                      <span key="put">
                        {rich("{time} by {who}", { time: <Time at={seen.put_at} />, who: seen.put_by })}
                      </span>,
                    ],
                  ]}
                />
              </Panel>
            </div>
            <Panel title={t("Payload")} flush>
              <Json value={seen.payload} label={t("payload")} />
            </Panel>
          </div>
        </>
      )}
    </Answer>
  );
}

const CATCH_UP = { latest: t("the latest one runs"), none: t("none run"), all: t("all run") };
const zoned = (cron: string, zone: string) => t("{cron} in {zone}", { cron, zone });
