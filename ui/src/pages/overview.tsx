import { useMemo } from "react";
import { useHistory, useOverview } from "../data/queries";
import { instants, perPool, rate, success, total } from "../data/series";
import type { History, Overview, Pool, Problem } from "../data/types";
import { Answer, Badge, Empty, Heading, Meter, Panel, Stat, type Tone } from "../parts/basics";
import { Chart } from "../parts/chart";
import { Table } from "../parts/table";
import { Link, to, useParams } from "../router";
import { compact, count, counted, duration, percent } from "../words";

const SPANS: [string, string][] = [
  ["900", "15 min"],
  ["3600", "1 h"],
];

export function OverviewPage() {
  const overview = useOverview();
  const [params, change] = useParams();
  const seconds = params.get("seconds") ?? "3600";
  const history = useHistory(Number(seconds));
  return (
    <>
      <Heading title="Overview" about={overview.data && <Standing seen={overview.data} />}>
        <div role="group" aria-label="Time shown" className="flex rounded-md border border-rim">
          {SPANS.map(([value, label]) => (
            <button
              key={value}
              type="button"
              aria-pressed={seconds === value}
              className={`px-2.5 py-1 text-xs font-medium first:rounded-l-md last:rounded-r-md ${seconds === value ? "bg-accent text-on-accent" : "bg-surface text-muted hover:text-ink"}`}
              onClick={() => change({ seconds: value })}
            >
              {label}
            </button>
          ))}
        </div>
      </Heading>
      <div className="flex flex-col gap-3">
        <Answer of={overview} rows={3}>
          {(seen) => <Tiles seen={seen} history={history.data} />}
        </Answer>
        <div className="grid gap-3 xl:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
          <Panel>
            <Answer of={history} rows={12}>
              {(past) => <Charts history={past} />}
            </Answer>
          </Panel>
          <Panel title="What is wrong now" flush>
            <Answer of={overview}>{(seen) => <Problems problems={seen.problems} />}</Answer>
          </Panel>
        </div>
        <Panel
          title="Pools"
          side={
            <Link href={to(["pools"])} className="link text-xs">
              All pools
            </Link>
          }
          flush
        >
          <Answer of={overview}>{(seen) => <Pools pools={seen.pools} />}</Answer>
        </Panel>
      </div>
    </>
  );
}

function Standing({ seen }: { seen: Overview }) {
  return (
    <>
      {counted(seen.nodes.length, "node")}
      {seen.leader ? `, led by ${seen.leader}` : ", nobody leads"}
    </>
  );
}

function Tiles({ seen, history }: { seen: Overview; history?: History }) {
  const sum = (of: (pool: Pool) => number) => seen.pools.reduce((all, pool) => all + of(pool), 0);
  const waits = seen.pools.map((pool) => pool.oldest_wait_seconds ?? 0);
  const slowest = seen.pools.find((pool) => pool.oldest_wait_seconds === Math.max(...waits));
  const done = history && total(Object.values(history.pools).map((pool) => pool.completed));
  const recent = done && history ? mean(done.slice(-12)) / history.step : null;
  const share = history && success(history);
  const dead = sum((pool) => pool.dead);
  const health: [Tone, string] =
    seen.status === "ok" ? ["ok", "All well"] : seen.status === "degraded" ? ["warn", "Degraded"] : ["bad", "Failing"];
  return (
    <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
      <Stat
        label="Health"
        value={health[1]}
        tone={health[0]}
        note={seen.problems.length ? counted(seen.problems.length, "problem") : "nothing is wrong"}
      />
      <Stat label="Throughput" value={recent === null ? "–" : `${compact(recent)} /s`} note="completed, last minute" />
      <Stat
        label="Success"
        value={share ? percent(share.share) : "–"}
        note={
          share
            ? `${count(share.failed)} of ${compact(share.completed + share.failed)} attempts failed`
            : "nothing ended yet"
        }
      />
      <Stat
        label="Queued"
        value={count(sum((pool) => pool.queued))}
        note={`${count(sum((pool) => pool.scheduled))} scheduled, ${count(sum((pool) => pool.retrying))} to retry`}
        href={to(["jobs"], { status: "queued" })}
      />
      <Stat
        label="Oldest wait"
        value={duration(Math.max(0, ...waits))}
        note={slowest?.oldest_wait_seconds ? `in ${slowest.name}` : "nobody waits"}
      />
      <Stat
        label="Dead letters"
        value={count(dead)}
        tone={dead ? "bad" : undefined}
        note={dead ? "read, then requeue or discard" : "none"}
        href={to(["dead"])}
      />
    </div>
  );
}

const mean = (values: (number | null)[]) => {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
};

function Charts({ history }: { history: History }) {
  const drawn = useMemo(() => {
    const pools = Object.values(history.pools);
    return {
      at: instants(history),
      depth: perPool(history, "queued"),
      wait: perPool(history, "oldest_wait"),
      ended: [
        {
          name: "completed",
          ink: "ok-fill",
          fill: true,
          values: rate(total(pools.map((pool) => pool.completed)), history.step),
        },
        { name: "failed", ink: "bad-fill", values: rate(total(pools.map((pool) => pool.failed)), history.step) },
      ],
    };
  }, [history]);
  if (history.at.length < 2)
    return <Empty title="No history yet">The charts begin when the server does; give it a few seconds.</Empty>;
  return (
    <div className="flex flex-col gap-4">
      <Chart label="Ended attempts per second" at={drawn.at} lines={drawn.ended} format={compact} />
      <Chart label="Jobs waiting" steps="whole" at={drawn.at} lines={drawn.depth} format={compact} />
      <Chart label="Oldest wait" steps="time" at={drawn.at} lines={drawn.wait} format={duration} />
    </div>
  );
}

/** What to do from here; for the other problems the server's own words hold. */
const REMEDIES: Record<string, string> = {
  dead_letters: "Read why, then requeue or discard them",
  worker_disabled: "Mend the cause, then enable it",
  pool_paused: "Resume it when it may go on",
  pool_starved: "See what holds it back, and its bounds",
};

/** Where the remedy of a problem is. */
function remedyOf(problem: Problem): string {
  const { code, subject } = problem;
  if (code === "dead_letters") return to(["dead"]);
  if (code.startsWith("pool_")) return to(["pools", subject]);
  if (code === "worker_disabled" || code === "schedule_missed") return to(["workers", subject]);
  if (code === "breaker_open") return to(["workers"], { search: subject });
  if (code === "instance_silent" || code === "thread_stuck" || code === "no_leader") return to(["nodes"]);
  return to(["events"]);
}

function Problems({ problems }: { problems: Problem[] }) {
  if (problems.length === 0) return <Empty title="Nothing is wrong">Problems appear here, each with its remedy.</Empty>;
  return (
    <ul className="divide-y divide-line">
      {problems.map((problem) => (
        <li key={`${problem.code} ${problem.subject}`}>
          <a href={remedyOf(problem)} className="flex gap-2.5 px-3 py-2.5 hover:bg-sunken">
            <span className="pt-px">
              <Badge tone={problem.severity === "critical" ? "bad" : "warn"}>{problem.severity}</Badge>
            </span>
            <span className="min-w-0 text-sm">
              <span className="block break-words">{problem.message}</span>
              <span className="block break-words text-accent">
                {REMEDIES[problem.code] ?? problem.remedy} <span aria-hidden="true">→</span>
              </span>
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Pools({ pools }: { pools: Pool[] }) {
  return (
    <Table
      label="Pools"
      rows={pools}
      id={(pool) => pool.name}
      empty={<Empty title="No pools yet">They appear when an app registers them.</Empty>}
      columns={[
        {
          header: "Pool",
          accessorKey: "name",
          cell: ({ row: { original: pool } }) => (
            <span className="flex items-center gap-2 whitespace-nowrap">
              <Link href={to(["pools", pool.name])}>{pool.name}</Link>
              {pool.paused && <Badge tone="warn">paused</Badge>}
            </span>
          ),
        },
        {
          header: "Busy",
          id: "busy",
          accessorFn: (pool) => pool.busy,
          cell: ({ row: { original: pool } }) => (
            <span className="flex items-center gap-2 whitespace-nowrap">
              {pool.busy} of {pool.workers}
              <span className="hidden w-20 sm:block">
                <Meter value={pool.busy} most={pool.workers} label={`Busy workers of ${pool.name}`} />
              </span>
            </span>
          ),
        },
        {
          header: "Queued",
          accessorKey: "queued",
          meta: { numeric: true },
          cell: ({ row: { original } }) => count(original.queued),
        },
        {
          header: "Oldest wait",
          accessorKey: "oldest_wait_seconds",
          meta: { numeric: true },
          cell: ({ row: { original } }) => duration(original.oldest_wait_seconds),
        },
        {
          header: "Completed",
          accessorKey: "completed",
          meta: { numeric: true, from: "md" },
          cell: ({ row: { original } }) => count(original.completed),
        },
        {
          header: "Failed",
          accessorKey: "failed",
          meta: { numeric: true, from: "md" },
          cell: ({ row: { original } }) => count(original.failed),
        },
        {
          header: "Dead",
          accessorKey: "dead",
          meta: { numeric: true, from: "sm" },
          cell: ({ row: { original } }) => count(original.dead),
        },
      ]}
    />
  );
}
