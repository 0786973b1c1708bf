import { useMemo } from "react";
import { useGraph, useWorker, useWorkers } from "../data/queries";
import type { Worker, WorkerDetail } from "../data/types";
import { WorkerActions } from "../parts/actions";
import { Answer, Badge, Button, Empty, Facts, Heading, Panel, Stat, Time } from "../parts/basics";
import { GraphView } from "../parts/graph";
import { JobTable } from "../parts/jobtable";
import { Reschedule } from "../parts/schedules";
import { Strip } from "../parts/strip";
import { numbers, Table } from "../parts/table";
import { Link, to, useParams } from "../router";
import { count, counted, duration } from "../words";
import { GraphPanel } from "./graph";

const STATES: [string, string, (worker: Worker) => boolean][] = [
  ["", "any state", () => true],
  ["enabled", "enabled", (worker) => worker.enabled],
  ["disabled", "disabled", (worker) => !worker.enabled],
  ["running", "running", (worker) => worker.running > 0],
  ["failing", "failing", (worker) => worker.failing],
  ["unknown", "no node has it", (worker) => !worker.known],
];

export function WorkersPage() {
  const workers = useWorkers();
  const [params, change] = useParams();
  const search = params.get("search") ?? "";
  const pool = params.get("pool") ?? "";
  const state = params.get("state") ?? "";
  const drawn = params.get("view") === "graph";
  return (
    <>
      <Heading title="Workers" about={workers.data && counted(workers.data.workers.length, "worker")}>
        <div role="group" aria-label="View" className="flex gap-1">
          <Button kind={drawn ? "quiet" : "plain"} aria-pressed={!drawn} onClick={() => change({ view: null })}>
            List
          </Button>
          <Button kind={drawn ? "plain" : "quiet"} aria-pressed={drawn} onClick={() => change({ view: "graph" })}>
            Graph
          </Button>
        </div>
      </Heading>
      {drawn ? (
        <GraphPanel />
      ) : (
        <Panel flush>
          <div className="flex flex-wrap gap-2 border-b border-line p-2">
            <input
              className="field w-full sm:w-60"
              placeholder="Name contains…"
              aria-label="Name contains"
              value={search}
              onChange={(event) => change({ search: event.target.value })}
            />
            <select
              className="field"
              aria-label="State"
              value={state}
              onChange={(event) => change({ state: event.target.value })}
            >
              {STATES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
            <select
              className="field"
              aria-label="Pool"
              value={pool}
              onChange={(event) => change({ pool: event.target.value })}
            >
              <option value="">any pool</option>
              {[...new Set(workers.data?.workers.map((worker) => worker.pool))].sort().map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </div>
          <Answer of={workers}>
            {(data) => <List rows={data.workers} search={search} pool={pool} state={state} />}
          </Answer>
        </Panel>
      )}
    </>
  );
}

function List({ rows, search, pool, state }: { rows: Worker[]; search: string; pool: string; state: string }) {
  const found = useMemo(() => {
    const wanted = search.toLowerCase();
    const fits = STATES.find(([name]) => name === state)?.[2] ?? (() => true);
    return rows.filter(
      (worker) => worker.name.toLowerCase().includes(wanted) && (!pool || worker.pool === pool) && fits(worker),
    );
  }, [rows, search, pool, state]);
  return (
    <Table
      label="Workers"
      rows={found}
      id={(worker) => worker.name}
      sort={[{ id: "name", desc: false }]}
      empty={
        rows.length ? (
          <Empty title="No matching workers">Remove a filter.</Empty>
        ) : (
          <Empty title="No workers yet">They appear when a node runs an app: shiftwork run MODULE:NAME</Empty>
        )
      }
      columns={[
        {
          header: "Worker",
          accessorKey: "name",
          cell: ({ row: { original } }) => (
            <span className="whitespace-nowrap">
              <Link href={to(["workers", original.name])}>{original.name}</Link>
            </span>
          ),
        },
        {
          header: "State",
          id: "state",
          accessorFn: stateOf,
          cell: ({ row: { original } }) => <State worker={original} />,
        },
        { header: "Mode", accessorKey: "mode", meta: { from: "xl" } },
        {
          header: "Schedule",
          accessorKey: "schedule",
          meta: { from: "md" },
          cell: ({ row: { original } }) => (
            <span title={original.schedule}>
              {original.schedule.split(", counted")[0]}
              {original.rescheduled_at && <span className="text-muted">, changed</span>}
            </span>
          ),
        },
        { header: "Pool", accessorKey: "pool", meta: { from: "lg" } },
        {
          header: "Last run",
          accessorKey: "last_run_at",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Time at={original.last_run_at} none="never" />,
        },
        {
          header: "Next",
          accessorKey: "next_due_at",
          meta: { from: "md" },
          cell: ({ row: { original } }) => <Time at={original.next_due_at} />,
        },
        numbers<Worker>("Queued", "queued"),
        numbers<Worker>("Waiting", "waiting", "md"),
        {
          header: "Failures",
          accessorKey: "failures",
          meta: { numeric: true },
          cell: ({ row: { original } }) =>
            original.failures ? <span className="font-medium text-bad">{original.failures} in a row</span> : "0",
        },
        {
          header: () => <span className="sr-only">Actions</span>,
          id: "actions",
          enableSorting: false,
          meta: { from: "lg" },
          cell: ({ row: { original } }) => (
            <span className="flex justify-end gap-1.5">
              <WorkerActions worker={original} small />
            </span>
          ),
        },
      ]}
    />
  );
}

/** The rest of the policy, as far as it is set. */
function limits(config: WorkerDetail["config"]): [string, string][] {
  const said: [keyof typeof config, string][] = [
    ["rate_limit", "Rate limit"],
    ["max_running", "Running at most"],
    ["concurrency_key", "Concurrency key"],
    ["max_consecutive_failures", "Disabled after failures"],
    ["overlap", "Overlap"],
    ["catch_up", "Catch-up"],
  ];
  return said.filter(([name]) => config[name] !== null).map(([name, label]) => [label, String(config[name])]);
}

const stateOf = (worker: Worker) =>
  !worker.known
    ? "no node has it"
    : !worker.enabled
      ? "disabled"
      : worker.failing
        ? "failing"
        : worker.running
          ? "running"
          : "idle";

/** What to show where there is no next fire time: an interval is counted from the end of the run. */
const nextOf = (worker: Worker) =>
  worker.mode === "triggered"
    ? "on demand"
    : worker.retrying
      ? "after the retry"
      : worker.running || worker.queued
        ? "after this run"
        : "–";

function State({ worker }: { worker: Worker }) {
  if (!worker.known) {
    return (
      <Badge tone="warn" title="No running node has this worker">
        ! no node has it
      </Badge>
    );
  }
  if (!worker.enabled) {
    return (
      <Badge tone="bad" title={worker.reason ?? undefined}>
        ✕ disabled
      </Badge>
    );
  }
  const running = worker.running > 1 ? `${worker.running} running` : "running";
  if (worker.failing) {
    const now = worker.running ? `, ${running}` : worker.retrying ? `, ${worker.retrying} to retry` : "";
    return (
      <Badge tone="warn" title={worker.last_error ?? undefined}>
        ! failing{now}
      </Badge>
    );
  }
  if (worker.running) return <Badge tone="accent">▸ {running}</Badge>;
  return <Badge>idle</Badge>;
}

export function WorkerPage({ name }: { name: string }) {
  const worker = useWorker(name);
  const graph = useGraph();
  return (
    <Answer of={worker}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["workers"])}>
                  Workers
                </Link>
                <span className="text-muted">/</span> {seen.name} <State worker={seen} />
              </>
            }
          >
            {seen.mode !== "triggered" && <Reschedule worker={seen} />}
            <WorkerActions worker={seen} />
          </Heading>
          <div className="flex flex-col gap-3">
            {!seen.known && (
              <p className="rounded-md border border-warn bg-warn-soft px-3 py-2 text-sm break-words text-warn">
                No running node has this worker, so its jobs wait. Start a node whose app registers it. If it has
                another name now, give that one the alias "{name}". If it is gone for good, cancel its waiting jobs,
                then forget it.
              </p>
            )}
            {!seen.enabled && (
              <p className="rounded-md border border-bad bg-bad-soft px-3 py-2 text-sm break-words text-bad">
                Disabled{seen.reason ? `: ${seen.reason}` : ""}. Fix the cause, then enable it; queued jobs wait until
                then.
              </p>
            )}
            {seen.rescheduled_at && (
              <p className="rounded-md border border-line bg-surface px-3 py-2 text-sm break-words">
                Its schedule was set by hand (by {seen.rescheduled_by}, <Time at={seen.rescheduled_at} />) and wins over
                the one in the code until it is reset.
              </p>
            )}
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-4">
              <Stat
                label="Last run"
                value={<Time at={seen.last_run_at} none="never" />}
                note={
                  <>
                    last success <Time at={seen.last_success_at} none="never" />
                  </>
                }
              />
              <Stat label="Next" value={<Time at={seen.next_due_at} none={nextOf(seen)} />} note={seen.schedule} />
              <Stat
                label="Failures in a row"
                value={seen.failures}
                tone={seen.failures ? "bad" : seen.failing ? "warn" : undefined}
                note={
                  seen.last_error ? (
                    <>
                      last error <Time at={seen.last_error_at} />: {seen.last_error}
                    </>
                  ) : (
                    "none"
                  )
                }
              />
              <Stat
                label="Queued"
                value={count(seen.queued)}
                note={`${count(seen.waiting)} waiting, ${count(seen.scheduled)} scheduled, ${count(seen.retrying)} to retry, ${count(seen.dead)} dead`}
                href={to(["jobs"], { worker: name, status: "queued" })}
              />
            </div>
            <div className="grid gap-3 lg:grid-cols-2">
              <Panel title="Latest runs">
                <Strip runs={seen.runs} />
              </Panel>
              <Panel title="Policy">
                <Facts
                  items={[
                    ["Runs", `${seen.schedule}, ${seen.mode}`],
                    [
                      "Pool",
                      <Link key="pool" href={to(["pools", seen.pool])}>
                        {seen.pool}
                      </Link>,
                    ],
                    ["Priority", seen.priority],
                    ["Timeout", duration(seen.timeout_seconds)],
                    ["Retries", seen.max_retries],
                    ...limits(seen.config),
                  ]}
                />
              </Panel>
            </div>
            {graph.data?.edges.some((edge) => edge.from === name || edge.to === name) && (
              <Panel title="Dependencies and conflicts">
                <GraphView graph={graph.data} around={name} />
              </Panel>
            )}
            <Panel
              title="Jobs"
              side={
                <>
                  <Link className="link text-xs" href={to(["schedules"], { worker: name })}>
                    Stored schedules
                  </Link>
                  <Link className="link text-xs" href={to(["jobs"], { worker: name })}>
                    All jobs of this worker
                  </Link>
                </>
              }
              flush
            >
              <JobTable jobs={seen.runs} without="worker" empty={<Empty title="No jobs yet" />} />
            </Panel>
          </div>
        </>
      )}
    </Answer>
  );
}
