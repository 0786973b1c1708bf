import { useMemo } from "react";
import { useGraph, useJobs, useWorker, useWorkers } from "../data/queries";
import type { Worker, WorkerDetail } from "../data/types";
import { rich, t, wordOf } from "../language";
import { WorkerActions } from "../parts/actions";
import { Answer, Badge, Button, Empty, Facts, Heading, Panel, Stat, Time } from "../parts/basics";
import { BreakersOf } from "../parts/breakers";
import { GraphView } from "../parts/graph";
import { JobTable } from "../parts/jobtable";
import { Reschedule } from "../parts/schedules";
import { Strip } from "../parts/strip";
import { numbers, Table } from "../parts/table";
import { WorkerRuns } from "../parts/workerruns";
import { Link, to, useParams } from "../router";
import { count, duration } from "../words";
import { inZone } from "../zone";
import { GraphPanel } from "./graph";

const STATES: [string, string, (worker: Worker) => boolean][] = [
  ["", t("any state"), () => true],
  ["enabled", t("enabled"), (worker) => worker.enabled],
  ["disabled", t("disabled"), (worker) => !worker.enabled],
  ["running", t("running"), (worker) => worker.running > 0],
  ["failing", t("failing"), (worker) => worker.failing],
  ["unknown", t("no node has it"), (worker) => !worker.known],
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
      <Heading
        title={t("Workers")}
        about={workers.data && t("{n} {n:worker|workers}", { n: workers.data.workers.length })}
      >
        <div role="group" aria-label={t("View")} className="flex gap-1">
          <Button kind={drawn ? "quiet" : "plain"} aria-pressed={!drawn} onClick={() => change({ view: null })}>
            {t("List")}
          </Button>
          <Button kind={drawn ? "plain" : "quiet"} aria-pressed={drawn} onClick={() => change({ view: "graph" })}>
            {t("Graph")}
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
              placeholder={t("Name contains…")}
              aria-label={t("Name contains")}
              value={search}
              onChange={(event) => change({ search: event.target.value })}
            />
            <select
              className="field"
              aria-label={t("State")}
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
              aria-label={t("Pool")}
              value={pool}
              onChange={(event) => change({ pool: event.target.value })}
            >
              <option value="">{t("any pool")}</option>
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
      label={t("Workers")}
      rows={found}
      id={(worker) => worker.name}
      sort={[{ id: "name", desc: false }]}
      empty={
        rows.length ? (
          <Empty title={t("No matching workers")}>{t("Remove a filter.")}</Empty>
        ) : (
          <Empty title={t("No workers yet")}>
            {t("They appear when a node runs an app: shiftwork run MODULE:NAME")}
          </Empty>
        )
      }
      columns={[
        {
          header: t("Worker"),
          accessorKey: "name",
          cell: ({ row: { original } }) => (
            <span className="whitespace-nowrap">
              <Link href={to(["workers", original.name])}>{original.name}</Link>
            </span>
          ),
        },
        {
          header: t("State"),
          id: "state",
          accessorFn: stateOf,
          cell: ({ row: { original } }) => <State worker={original} />,
        },
        {
          header: t("Mode"),
          accessorKey: "mode",
          meta: { from: "wide" },
          cell: ({ row: { original } }) => t(original.mode),
        },
        {
          header: t("Schedule"),
          accessorKey: "schedule",
          meta: { from: "lg" },
          cell: ({ row: { original } }) => (
            <span className="block min-w-44" title={inZone(original.schedule)}>
              {inZone(original.schedule)}
              {original.rescheduled_at && <span className="text-muted">{t(", changed")}</span>}
            </span>
          ),
        },
        { header: t("Pool"), accessorKey: "pool", meta: { from: "xl" } },
        {
          header: t("Last run"),
          accessorKey: "last_run_at",
          meta: { from: "sm" },
          cell: ({ row: { original } }) => <Time at={original.last_run_at} none={t("never")} past />,
        },
        {
          header: t("Next"),
          accessorKey: "next_due_at",
          meta: { from: "lg" },
          cell: ({ row: { original } }) => <Time at={original.next_due_at} />,
        },
        numbers<Worker>(t("Queued"), "queued"),
        numbers<Worker>(t("Waiting"), "waiting", "wide"),
        {
          header: t("Failures"),
          accessorKey: "failures",
          meta: { numeric: true, from: "sm" },
          cell: ({ row: { original } }) =>
            original.failures ? (
              <span className="font-medium text-bad">{t("{n} in a row", { n: original.failures })}</span>
            ) : (
              "0"
            ),
        },
      ]}
      actions={(worker) => <WorkerActions worker={worker} small />}
    />
  );
}

/** The rest of the policy, as far as it is set. */
function limits(config: WorkerDetail["config"]): [string, string][] {
  const said: [keyof typeof config, string][] = [
    ["rate_limit", t("Rate limit")],
    ["max_running", t("Running at most")],
    ["concurrency_key", t("Concurrency key")],
    ["max_consecutive_failures", t("Disabled after failures")],
    ["overlap", t("Overlap")],
    ["catch_up", t("Catch-up")],
  ];
  const ours = (name: keyof typeof config) => name === "overlap" || name === "catch_up";
  return said
    .filter(([name]) => config[name] !== null)
    .map(([name, label]) => [label, ours(name) ? wordOf(String(config[name])) : String(config[name])]);
}

const stateOf = (worker: Worker) =>
  !worker.known
    ? t("no node has it")
    : !worker.enabled
      ? t("disabled")
      : worker.failing
        ? t("failing")
        : worker.running
          ? t("running")
          : t("idle");

/** What to show where there is no next fire time: an interval is counted from the end of the run. */
const nextOf = (worker: Worker) =>
  worker.mode === "triggered"
    ? t("on demand")
    : worker.retrying
      ? t("after the retry")
      : worker.running || worker.queued
        ? t("after this run")
        : "–";

function State({ worker }: { worker: Worker }) {
  if (!worker.known) {
    return (
      <Badge tone="warn" title={t("No running node has this worker")}>
        {t("! no node has it")}
      </Badge>
    );
  }
  if (!worker.enabled) {
    return (
      <Badge tone="bad" title={worker.reason ? inZone(worker.reason) : undefined}>
        {t("✕ disabled")}
      </Badge>
    );
  }
  const running = worker.running > 1 ? t("{n} running", { n: worker.running }) : t("running");
  if (worker.failing) {
    const now = worker.running ? [running] : worker.retrying ? [t("{n} to retry", { n: worker.retrying })] : [];
    return (
      <Badge tone="warn" title={worker.last_error ?? undefined}>
        ! {[t("failing"), ...now].join(t(", "))}
      </Badge>
    );
  }
  if (worker.running) return <Badge tone="accent">▸ {running}</Badge>;
  return <Badge>{t("idle")}</Badge>;
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
                  {t("Workers")}
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
                {t(
                  'No running node has this worker, so its jobs wait. Start a node whose app registers it. If it has another name now, give that one the alias "{name}". If it is gone for good, cancel its waiting jobs, then forget it.',
                  { name },
                )}
              </p>
            )}
            {!seen.enabled && (
              <p className="rounded-md border border-bad bg-bad-soft px-3 py-2 text-sm break-words text-bad">
                {seen.reason ? t("Disabled: {reason}.", { reason: inZone(seen.reason) }) : t("Disabled.")}
                {t(" ")}
                {t("Fix the cause, then enable it; queued jobs wait until then.")}
              </p>
            )}
            {seen.rescheduled_at && (
              <p className="rounded-md border border-line bg-surface px-3 py-2 text-sm break-words">
                {rich(
                  "Its schedule was set by hand (by {who}, {time}) and wins over the one in the code until it is reset.",
                  { who: seen.rescheduled_by, time: <Time at={seen.rescheduled_at} /> },
                )}
              </p>
            )}
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-4">
              <Stat
                label={t("Last run")}
                value={<Time at={seen.last_run_at} none={t("never")} past />}
                note={rich("last success {time}", { time: <Time at={seen.last_success_at} none={t("never")} past /> })}
              />
              <Stat
                label={t("Next")}
                value={<Time at={seen.next_due_at} none={nextOf(seen)} />}
                note={seen.mode === "triggered" ? undefined : inZone(seen.schedule)}
              />
              <Stat
                label={t("Failures in a row")}
                value={seen.failures}
                tone={seen.failures ? "bad" : undefined}
                note={
                  seen.last_error
                    ? rich("last error {time}: {error}", {
                        time: <Time at={seen.last_error_at} />,
                        error: seen.last_error,
                      })
                    : t("none")
                }
              />
              <Stat
                label={t("Queued")}
                value={count(seen.queued)}
                note={t("{waiting} waiting, {scheduled} scheduled, {retrying} to retry, {dead} dead", seen)}
                href={to(["jobs"], { worker: name, status: "queued" })}
              />
            </div>
            <BreakersOf worker={name} />
            <WorkerRuns name={name} />
            <div className="grid gap-3 lg:grid-cols-2">
              <Panel title={t("Latest runs")}>
                <Strip runs={seen.runs} />
              </Panel>
              <Panel title={t("Policy")}>
                <Facts
                  items={[
                    [
                      t("Schedule"),
                      [inZone(seen.schedule), ...(seen.mode === "triggered" ? [] : [t(seen.mode)])].join(t(", ")),
                    ],
                    [
                      t("Pool"),
                      <Link key="pool" href={to(["pools", seen.pool])}>
                        {seen.pool}
                      </Link>,
                    ],
                    [t("Priority"), wordOf(seen.priority)],
                    [t("Timeout"), duration(seen.timeout_seconds)],
                    [t("Retries"), seen.max_retries],
                    ...limits(seen.config),
                  ]}
                />
              </Panel>
            </div>
            {graph.data?.edges.some((edge) => edge.from === name || edge.to === name) && (
              <Panel title={t("Dependencies and conflicts")}>
                <GraphView graph={graph.data} around={name} />
              </Panel>
            )}
            <Panel
              title={t("Jobs")}
              side={
                <>
                  <Link className="link text-xs" href={to(["schedules"], { worker: name })}>
                    {t("Stored schedules")}
                  </Link>
                  <Link className="link text-xs" href={to(["jobs"], { worker: name })}>
                    {t("All jobs of this worker")}
                  </Link>
                </>
              }
              flush
            >
              <Jobs worker={name} />
            </Panel>
          </div>
        </>
      )}
    </Answer>
  );
}

const NEWEST = 20;

function Jobs({ worker }: { worker: string }) {
  const jobs = useJobs({ worker }, null, NEWEST);
  return (
    <Answer of={jobs} rows={4}>
      {(page) => <JobTable jobs={page.jobs} without="worker" empty={<Empty title={t("No jobs yet")} />} />}
    </Answer>
  );
}
