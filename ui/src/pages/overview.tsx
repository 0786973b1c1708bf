import { type ReactNode, useMemo } from "react";
import { useHistory, useOverview } from "../data/queries";
import { instants, perPool, rate, success, successes, total } from "../data/series";
import type { History, Overview, Pool, Problem } from "../data/types";
import { Answer, Badge, Empty, Heading, Meter, Panel, Stat, type Tone } from "../parts/basics";
import { Chart } from "../parts/chart";
import { Spans, useSpan } from "../parts/spans";
import { numbers, Table } from "../parts/table";
import { Link, to } from "../router";
import { compact, count, counted, duration, percent } from "../words";

export function OverviewPage() {
  const overview = useOverview();
  const history = useHistory(useSpan());
  return (
    <>
      <Heading title="Overview" about={overview.data && <Nodes seen={overview.data} />}>
        <Spans />
      </Heading>
      <div className="flex flex-col gap-3">
        <Answer of={overview} rows={3}>
          {(seen) => (
            <>
              <Tiles seen={seen} history={history.data} />
              <Panel title="What is wrong now" flush>
                <Problems problems={seen.problems} />
              </Panel>
            </>
          )}
        </Answer>
        <Answer of={history} rows={12}>
          {(past) => <Charts history={past} />}
        </Answer>
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

function Nodes({ seen }: { seen: Overview }) {
  return (
    <>
      {counted(seen.nodes.length, "node")}
      {seen.leader ? `, leader ${seen.leader}` : ", no leader"}
    </>
  );
}

function Tiles({ seen, history }: { seen: Overview; history?: History }) {
  const sum = (of: (pool: Pool) => number) => seen.pools.reduce((all, pool) => all + of(pool), 0);
  const waits = seen.pools.map((pool) => pool.oldest_wait_seconds ?? 0);
  const slowest = seen.pools.find((pool) => pool.oldest_wait_seconds === Math.max(...waits));
  const p95s = seen.pools.map((pool) => pool.wait_p95_seconds).filter((value) => value !== null);
  const p95 = p95s.length ? Math.max(...p95s) : null;
  const done = history && total(Object.values(history.pools).map((pool) => pool.completed));
  const recent = done && history ? mean(done.slice(-Math.max(1, Math.round(60 / history.step)))) / history.step : null;
  const share = history && success(history);
  const dead = sum((pool) => pool.dead);
  const health: [Tone, string] =
    seen.status === "ok" ? ["ok", "Healthy"] : seen.status === "degraded" ? ["warn", "Degraded"] : ["bad", "Failing"];
  return (
    <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
      <Stat
        label="Health"
        value={health[1]}
        tone={health[0]}
        note={seen.problems.length ? counted(seen.problems.length, "problem") : "no problems"}
      />
      <Stat label="Throughput" value={recent === null ? "–" : `${compact(recent)} /s`} note="completed, last minute" />
      <Stat
        label="Success"
        value={share ? percent(share.share) : "–"}
        note={
          share
            ? `${count(share.failed)} of ${compact(share.completed + share.failed)} attempts failed`
            : "no attempts yet"
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
        note={`${slowest?.oldest_wait_seconds ? `in ${slowest.name}` : "no jobs waiting"}${p95 === null ? "" : `; 95 % waited less than ${duration(p95)}`}`}
      />
      <Stat
        label="Dead letters"
        value={count(dead)}
        tone={dead ? "bad" : undefined}
        note={dead ? "requeue or discard them" : "none"}
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
    const [completed, failed] = [total(pools.map((pool) => pool.completed)), total(pools.map((pool) => pool.failed))];
    const retried = total(pools.map((pool) => pool.retried));
    return {
      at: instants(history),
      depth: perPool(history, "queued"),
      oldest: perPool(history, "oldest_wait"),
      waited: perPool(history, "wait_p95"),
      ran: perPool(history, "run_p95"),
      success: [{ name: "succeeded", ink: "ok-fill", values: successes(completed, failed), through: true }],
      ended: [
        { name: "completed", ink: "ok-fill", fill: true, values: rate(completed, history.step) },
        { name: "failed", ink: "bad-fill", values: rate(failed, history.step) },
        { name: "to retry", ink: "warn-fill", values: rate(retried, history.step) },
      ],
    };
  }, [history]);
  if (history.at.length < 2)
    return (
      <Panel>
        <Empty title="No history yet">The charts start a few seconds after the first node.</Empty>
      </Panel>
    );
  const { at } = drawn;
  const percents = (value: number) => `${Math.round(value * 10) / 10} %`;
  return (
    <div className="grid gap-3 md:grid-cols-2">
      <Plot>
        <Chart label="Ended attempts per second" at={at} lines={drawn.ended} format={compact} />
      </Plot>
      <Plot>
        <Chart label="Success rate" at={at} lines={drawn.success} format={percents} range={upToAll} />
      </Plot>
      <Plot>
        <Chart label="Jobs waiting" steps="whole" at={at} lines={drawn.depth} format={compact} />
      </Plot>
      <Plot>
        <Chart label="Oldest wait" steps="time" at={at} lines={drawn.oldest} format={duration} />
      </Plot>
      <Plot>
        <Chart label="95 % waited less than" steps="time" at={at} lines={drawn.waited} format={duration} />
      </Plot>
      <Plot>
        <Chart label="95 % ran less than" steps="time" at={at} lines={drawn.ran} format={duration} />
      </Plot>
    </div>
  );
}

/** Zooms into the top of the scale as far as the lowest value allows: the difference between 99 and 97 percent matters. */
const upToAll = (least: number): [number, number] => [least >= 90 ? 90 : least >= 50 ? 50 : 0, 100.5];

const Plot = ({ children }: { children: ReactNode }) => <Panel>{children}</Panel>;

/** Remedies in terms of this dashboard; for other problems the server's remedy is shown. */
const REMEDIES: Record<string, string> = {
  dead_letters: "Inspect the errors, then requeue or discard",
  worker_disabled: "Fix the cause, then enable it",
  worker_failing: "Read the error and the traceback of its newest job",
  worker_unknown: "Start a node that has it, give it as an alias to its successor, or cancel these jobs and forget it",
  pool_paused: "Resume it when it may continue",
  pool_starved: "Check what holds its jobs back, and its bounds",
};

/** The page with the remedy of a problem. */
function remedyOf(problem: Problem): string {
  const { code, subject } = problem;
  if (code === "dead_letters") return to(["dead"]);
  if (code.startsWith("pool_")) return to(["pools", subject]);
  if (code === "jobs_expired") return to(["jobs"], { pool: subject, status: "cancelled" });
  if (code === "worker_unknown") return to(["jobs"], { worker: subject, status: "queued" });
  if (code.startsWith("worker_") || code === "schedule_missed") return to(["workers", subject]);
  if (code === "breaker_open") return to(["workers"], { search: subject });
  if (code === "node_silent") return to(["nodes"], { node: subject });
  // An instance's name is NODE/POOL#N.
  if (code === "instance_silent" || code === "thread_stuck") return to(["nodes"], { node: subject.split("/")[0] });
  if (code === "no_leader") return to(["nodes"]);
  return to(["events"]);
}

function Problems({ problems }: { problems: Problem[] }) {
  if (problems.length === 0)
    return (
      <p className="flex items-center gap-2 px-3 py-2.5 text-sm text-muted">
        <span aria-hidden="true" className="text-ok">
          ✓
        </span>
        No problems. They appear here, each with its remedy.
      </p>
    );
  return (
    <ul className="divide-y divide-line">
      {problems.map((problem) => (
        <li key={`${problem.code} ${problem.subject}`}>
          <a
            href={remedyOf(problem)}
            className="grid gap-x-4 gap-y-0.5 px-3 py-2 text-sm hover:bg-sunken sm:grid-cols-[4.5rem_minmax(0,1fr)] lg:grid-cols-[4.5rem_minmax(0,3fr)_minmax(0,2fr)]"
          >
            <span>
              <Badge tone={problem.severity === "critical" ? "bad" : "warn"}>{problem.severity}</Badge>
            </span>
            <span className="min-w-0 break-words">{problem.message}</span>
            <span className="min-w-0 break-words text-accent sm:max-lg:col-start-2 lg:text-right">
              {REMEDIES[problem.code] ?? problem.remedy} <span aria-hidden="true">→</span>
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
                <Meter value={pool.busy} most={pool.workers} label={`Busy slots of ${pool.name}`} />
              </span>
            </span>
          ),
        },
        numbers<Pool>("Queued", "queued"),
        numbers<Pool>("Waiting", "waiting", "md"),
        numbers<Pool>("Oldest wait", "oldest_wait_seconds", undefined, duration),
        numbers<Pool>("95 % waited", "wait_p95_seconds", "sm", duration),
        numbers<Pool>("Completed", "completed", "md"),
        numbers<Pool>("Failed", "failed", "md"),
        numbers<Pool>("Dead", "dead", "sm"),
      ]}
    />
  );
}
