import { useState } from "react";
import { useMay, useSchedule, useSchedules, useWorkerNames } from "../data/queries";
import type { Schedule } from "../data/types";
import { READ_ONLY } from "../parts/actions";
import { Answer, Badge, Button, Empty, Facts, Heading, Panel, Stat, Time } from "../parts/basics";
import { brief } from "../parts/jobtable";
import { Json } from "../parts/json";
import { FireTimes, PutSchedule, ScheduleActions } from "../parts/schedules";
import { Table } from "../parts/table";
import { Typed } from "../parts/typed";
import { go, Link, to, useParams } from "../router";
import { counted, duration } from "../words";

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
      <Heading title="Schedules" about="Kept in the store, by name; workers have schedules of their own">
        <NewSchedule worker={worker} />
      </Heading>
      <Panel flush>
        <div className="flex flex-wrap gap-2 border-b border-line p-2">
          <Typed
            label="Worker"
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
              <List rows={page.schedules} filtered={Boolean(worker || after)} />
              {(after || page.next_after) && (
                <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                  <span>{counted(page.schedules.length, "schedule")}</span>
                  <Button small className="ml-auto" disabled={!after} onClick={() => change({ after: null })}>
                    First page
                  </Button>
                  <Button small disabled={!page.next_after} onClick={() => change({ after: page.next_after })}>
                    Next
                  </Button>
                </div>
              )}
            </>
          )}
        </Answer>
      </Panel>
    </>
  );
}

function NewSchedule({ worker }: { worker: string }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button kind="primary" disabled={!may} title={may ? undefined : READ_ONLY} onClick={() => setOpen(true)}>
        New schedule
      </Button>
      {open && <PutSchedule worker={worker} close={() => setOpen(false)} />}
    </>
  );
}

function List({ rows, filtered }: { rows: Schedule[]; filtered: boolean }) {
  return (
    <Table
      label="Schedules"
      rows={rows}
      id={(schedule) => schedule.name}
      sort={[{ id: "name", desc: false }]}
      empty={
        filtered ? (
          <Empty title="No matching schedules">Remove the filter.</Empty>
        ) : (
          <Empty title="No schedules yet">Add one here, or with put_schedule or shiftwork schedule put.</Empty>
        )
      }
      columns={[
        {
          header: "Schedule",
          accessorKey: "name",
          cell: ({ row: { original } }) => (
            <span className="flex items-center gap-2 whitespace-nowrap">
              <Link href={to(["schedules", original.name])}>{original.name}</Link>
              {original.paused && <Badge tone="warn">‖ paused</Badge>}
            </span>
          ),
        },
        {
          header: "Runs",
          accessorKey: "schedule",
          cell: ({ row: { original } }) => (
            <span title={original.cron ? `${original.cron} in ${original.timezone}` : undefined}>
              {original.schedule}
            </span>
          ),
        },
        {
          header: "Worker",
          accessorKey: "worker",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Link href={to(["workers", original.worker])}>{original.worker}</Link>,
        },
        {
          header: "Next",
          accessorKey: "next_fire_at",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Time at={original.next_fire_at} />,
        },
        {
          header: "Last",
          accessorKey: "last_fire_at",
          meta: { from: "md" },
          cell: ({ row: { original } }) => <LastRun schedule={original} />,
        },
        {
          header: () => <span className="sr-only">Actions</span>,
          id: "actions",
          enableSorting: false,
          meta: { from: "lg" },
          cell: ({ row: { original } }) => (
            <span className="flex justify-end gap-1.5">
              <ScheduleActions schedule={original} small />
            </span>
          ),
        },
      ]}
    />
  );
}

function LastRun({ schedule }: { schedule: Schedule }) {
  const time = <Time at={schedule.last_fire_at} none="never" />;
  return schedule.last_job ? <Link href={to(["jobs", schedule.last_job])}>{time}</Link> : time;
}

/** The options of its jobs, as far as they are set. */
function options(schedule: Schedule): [string, string][] {
  const said: [string, string | null][] = [
    ["Unique key", schedule.unique_key],
    ["Retries", schedule.max_retries === null ? null : String(schedule.max_retries)],
    ["Timeout", schedule.timeout_seconds === null ? null : duration(schedule.timeout_seconds)],
    ["Expires after", schedule.expires_seconds === null ? null : duration(schedule.expires_seconds)],
    ["Tags", schedule.tags.join(", ") || null],
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
                  Schedules
                </Link>
                <span className="text-muted">/</span> {seen.name} {seen.paused && <Badge tone="warn">‖ paused</Badge>}
              </>
            }
          >
            <ScheduleActions schedule={seen} gone={() => go(to(["schedules"]))} />
          </Heading>
          <div className="flex flex-col gap-3">
            {seen.paused && (
              <p className="rounded-md border border-warn bg-warn-soft px-3 py-2 text-sm text-warn">
                Paused <Time at={seen.paused_at} />. It fires again when it is resumed.
              </p>
            )}
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-3">
              <Stat label="Next" value={<Time at={seen.next_fire_at} none="paused" />} note={seen.schedule} />
              <Stat
                label="Last"
                value={<Time at={seen.last_fire_at} none="never" />}
                note={
                  seen.last_job && (
                    <Link className="link font-mono" href={to(["jobs", seen.last_job])}>
                      {brief(seen.last_job)}
                    </Link>
                  )
                }
              />
              <Stat
                label="Worker"
                value={<Link href={to(["workers", seen.worker])}>{seen.worker}</Link>}
                note={`pool ${seen.pool}`}
              />
            </div>
            <div className="grid gap-3 lg:grid-cols-2">
              <Panel title="Next fire times">
                {seen.next_times.length ? (
                  <FireTimes times={seen.next_times} />
                ) : (
                  <p className="text-sm text-muted">None while it is paused.</p>
                )}
              </Panel>
              <Panel title="Policy">
                <Facts
                  items={[
                    ["Runs", seen.schedule],
                    ...(seen.cron ? ([["Cron", `${seen.cron} in ${seen.timezone}`]] as [string, string][]) : []),
                    ["Missed fire times", CATCH_UP[seen.catch_up]],
                    ["Overlap", seen.overlap === "skip" ? "skipped while its last job has not ended" : "allowed"],
                    ["Priority", seen.priority],
                    ...options(seen),
                    [
                      "Put",
                      <span key="put">
                        <Time at={seen.put_at} /> by {seen.put_by}
                      </span>,
                    ],
                  ]}
                />
              </Panel>
            </div>
            <Panel title="Payload" flush>
              <Json value={seen.payload} label="payload" />
            </Panel>
          </div>
        </>
      )}
    </Answer>
  );
}

const CATCH_UP = { latest: "the latest one runs", none: "none run", all: "all run" };
