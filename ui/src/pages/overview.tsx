import { type ReactNode, useMemo } from "react";
import { useHistory, useOverview } from "../data/queries";
import { instants, perPool, rate, success, successes, total } from "../data/series";
import type { DatedProblem, History, Overview, Pool } from "../data/types";
import { t } from "../language";
import { Answer, Badge, Empty, Heading, Lasting, Panel, Stat, type Tone } from "../parts/basics";
import { Chart } from "../parts/chart";
import { RunningMeter, runningIn } from "../parts/running";
import { Spans, useSpan } from "../parts/spans";
import { numbers, Table } from "../parts/table";
import { Link, to } from "../router";
import { ROW } from "../shortcuts";
import { compact, count, duration, percent } from "../words";
import { inZone } from "../zone";

export function OverviewPage() {
  const overview = useOverview();
  const span = useSpan();
  const history = useHistory(span);
  return (
    <>
      <Heading title={t("Overview")} about={overview.data && <Nodes seen={overview.data} />}>
        <Spans />
      </Heading>
      <div className="flex flex-col gap-3">
        <Answer of={overview} rows={3}>
          {(seen) => (
            <>
              <Tiles seen={seen} history={history.data} />
              <Panel title={t("What is wrong now")} flush>
                <Problems problems={seen.problems} />
              </Panel>
            </>
          )}
        </Answer>
        <Answer of={history} rows={12}>
          {(past) => <Charts history={past} span={span} />}
        </Answer>
        <Panel
          title={t("Pools")}
          side={
            <Link href={to(["pools"])} className="link text-xs">
              {t("All pools")}
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
      {seen.leader
        ? t("{n} {n:node|nodes}, leader {leader}", { n: seen.nodes.length, leader: seen.leader })
        : t("{n} {n:node|nodes}, no leader", { n: seen.nodes.length })}
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
    seen.status === "ok"
      ? ["ok", t("Healthy")]
      : seen.status === "degraded"
        ? ["warn", t("Degraded")]
        : ["bad", t("Failing")];
  return (
    <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
      <Stat
        label={t("Health")}
        value={health[1]}
        tone={health[0]}
        note={seen.problems.length ? t("{n} {n:problem|problems}", { n: seen.problems.length }) : t("no problems")}
      />
      <Stat
        label={t("Throughput")}
        value={recent === null ? "–" : t("{n} /s", { n: compact(recent) })}
        note={t("completed, last minute")}
      />
      <Stat
        label={t("Success")}
        value={share ? percent(share.share) : "–"}
        note={
          share
            ? t("{n} of {total} attempts failed", { n: share.failed, total: compact(share.completed + share.failed) })
            : t("no attempts yet")
        }
      />
      <Stat
        label={t("Queued")}
        value={count(sum((pool) => pool.queued))}
        note={t("{scheduled} scheduled, {retrying} to retry", {
          scheduled: sum((pool) => pool.scheduled),
          retrying: sum((pool) => pool.retrying),
        })}
        href={to(["jobs"], { status: "queued" })}
      />
      <Stat
        label={t("Oldest wait")}
        value={duration(Math.max(0, ...waits))}
        note={[
          slowest?.oldest_wait_seconds ? t("in {pool}", { pool: slowest.name }) : t("no jobs waiting"),
          ...(p95 === null ? [] : [t("95 % waited less than {time}", { time: duration(p95) })]),
        ].join(t("; "))}
      />
      <Stat
        label={t("Dead letters")}
        value={count(dead)}
        tone={dead ? "bad" : undefined}
        note={dead ? t("retry or discard them") : t("none")}
        href={to(["dead"])}
      />
    </div>
  );
}

const mean = (values: (number | null)[]) => {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
};

function Charts({ history, span }: { history: History; span: number }) {
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
      success: [{ name: t("succeeded"), ink: "ok-fill", values: successes(completed, failed), through: true }],
      ended: [
        { name: t("completed"), ink: "ok-fill", fill: true, values: rate(completed, history.step) },
        { name: t("failed"), ink: "bad-fill", values: rate(failed, history.step) },
        { name: t("to retry"), ink: "warn-fill", values: rate(retried, history.step) },
      ],
    };
  }, [history]);
  if (history.at.length < 2)
    return (
      <Panel>
        <Empty title={t("No history yet")}>{t("The charts start a few seconds after the first node.")}</Empty>
      </Panel>
    );
  const { at } = drawn;
  const percents = (value: number) => `${Math.round(value * 10) / 10} %`;
  return (
    <div className="grid gap-3 md:grid-cols-2">
      <Plot>
        <Chart label={t("Ended attempts per second")} at={at} span={span} lines={drawn.ended} format={compact} />
      </Plot>
      <Plot>
        <Chart label={t("Success rate")} at={at} span={span} lines={drawn.success} format={percents} range={upToAll} />
      </Plot>
      <Plot>
        <Chart label={t("Jobs waiting")} steps="whole" at={at} span={span} lines={drawn.depth} format={compact} />
      </Plot>
      <Plot>
        <Chart label={t("Oldest wait")} steps="time" at={at} span={span} lines={drawn.oldest} format={duration} />
      </Plot>
      <Plot>
        <Chart
          label={t("95 % waited less than")}
          steps="time"
          at={at}
          span={span}
          lines={drawn.waited}
          format={duration}
        />
      </Plot>
      <Plot>
        <Chart label={t("95 % ran less than")} steps="time" at={at} span={span} lines={drawn.ran} format={duration} />
      </Plot>
    </div>
  );
}

/** Zooms into the top of the scale as far as the lowest value allows: the difference between 99 and 97 percent matters. */
const upToAll = (least: number): [number, number] => [least >= 90 ? 90 : least >= 50 ? 50 : 0, 100.5];

const Plot = ({ children }: { children: ReactNode }) => <Panel>{children}</Panel>;

/** Remedies in terms of this dashboard; for other problems the server's remedy is shown. */
const REMEDIES: Record<string, string> = {
  dead_letters: t("Inspect the errors, then retry or discard"),
  jobs_stranded: t("Fix the cause, then retry the flow, or cancel it"),
  worker_disabled: t("Fix the cause, then enable it"),
  worker_failing: t("Read the error and the traceback of its newest job"),
  worker_unknown: t(
    "Start a node that has it, give it as an alias to its successor, or cancel these jobs and forget it",
  ),
  pool_paused: t("Resume it when it may continue"),
};

/** The pages of what a problem's target names: "pool:images", "node:a", "store". */
const PLACES: Record<string, (name: string) => string> = {
  pool: (name) => to(["pools", name]),
  worker: (name) => to(["workers", name]),
  schedule: (name) => to(["schedules", name]),
  node: (name) => to(["nodes"], { node: name }),
  flow: (name) => to(["flows", name]),
  job: (name) => to(["jobs", name]),
  breaker: (name) => to(["breakers"], { breaker: name }),
  cancelled: (name) => to(["jobs"], { status: "cancelled", pool: name }),
  dead: (name) => to(["dead"], name ? { pool: name } : {}),
  leader: () => to(["nodes"]),
  store: () => to(["nodes"]),
};

/** The page where a problem is solved. */
function remedyOf(problem: DatedProblem): string {
  const [, kind = "", name = ""] = /^([^:]*):?(.*)$/s.exec(problem.target ?? "") ?? [];
  // A worker that no node has may have no page; its jobs have one. What emptied a store is an event.
  if (problem.code === "worker_unknown") return to(["jobs"], { worker: name, status: "queued" });
  if (problem.code === "store_emptied") return to(["events"], { name: "store.emptied" });
  return PLACES[kind]?.(name) ?? placeOf(problem);
}

/** The page for a problem of a server that names no target. */
function placeOf({ code, subject }: DatedProblem): string {
  if (code === "dead_letters") return to(["dead"]);
  if (code.startsWith("pool_")) return to(["pools", subject]);
  if (code === "jobs_stranded") return to(["flows", subject]);
  if (code === "jobs_expired") return to(["jobs"], { pool: subject, status: "cancelled" });
  if (code.startsWith("worker_") || code === "schedule_missed") return to(["workers", subject]);
  if (code === "breaker_open") return to(["breakers"], { breaker: subject });
  // An instance's name is NODE/POOL#N.
  if (code.startsWith("node_") || code === "instance_silent" || code === "thread_stuck")
    return to(["nodes"], { node: subject.split("/")[0] });
  if (code === "no_leader") return to(["nodes"]);
  return to(["events"]);
}

function Problems({ problems }: { problems: DatedProblem[] }) {
  if (problems.length === 0)
    return (
      <p className="flex items-center gap-2 px-3 py-2.5 text-sm text-muted">
        <span aria-hidden="true" className="text-ok">
          ✓
        </span>
        {t("No problems. They appear here, each with its remedy.")}
      </p>
    );
  return (
    <ul className="divide-y divide-line">
      {problems.map((problem) => (
        <li key={`${problem.code} ${problem.subject}`} {...ROW}>
          <a
            href={remedyOf(problem)}
            className="grid gap-x-4 gap-y-0.5 px-3 py-2 text-sm hover:bg-sunken sm:grid-cols-[4.5rem_minmax(0,1fr)] lg:grid-cols-[4.5rem_7.5rem_minmax(0,3fr)_minmax(0,2fr)]"
          >
            <span>
              <Badge tone={problem.severity === "critical" ? "bad" : "warn"}>{t(problem.severity)}</Badge>
            </span>
            <span className="text-xs leading-5 text-muted max-lg:order-1 sm:max-lg:col-start-2">
              {problem.since && <Lasting at={problem.since * 1_000} />}
            </span>
            <span className="min-w-0 break-words">{inZone(problem.message)}</span>
            <span className="min-w-0 break-words text-accent max-lg:order-2 sm:max-lg:col-start-2 lg:text-right">
              <span className="inline-block first-letter:uppercase">
                {REMEDIES[problem.code] ?? inZone(problem.remedy)}
                {"\u00a0"}
                <span aria-hidden="true">→</span>
              </span>
            </span>
          </a>
          <Runbook problem={problem} />
        </li>
      ))}
    </ul>
  );
}

/** A link into the runbook, if the server knows where the documentation is served. */
function Runbook({ problem: { code, subject, see } }: { problem: DatedProblem }) {
  if (!see?.startsWith("https://") && !see?.startsWith("http://")) return null;
  return (
    <a
      href={see}
      target="_blank"
      rel="noreferrer"
      aria-label={t("How to solve this: {problem}", { problem: `${code} ${subject}` })}
      className="link block px-3 pb-2 text-xs sm:pl-[6.25rem] lg:pl-[13.75rem]"
    >
      {t("How to solve this")}
    </a>
  );
}

function Pools({ pools }: { pools: Pool[] }) {
  return (
    <Table
      label={t("Pools")}
      rows={pools}
      id={(pool) => pool.name}
      empty={<Empty title={t("No pools yet")}>{t("They appear when an app registers them.")}</Empty>}
      columns={[
        {
          header: t("Pool"),
          accessorKey: "name",
          cell: ({ row: { original: pool } }) => (
            <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
              <Link href={to(["pools", pool.name])}>{pool.name}</Link>
              {pool.paused && <Badge tone="warn">{t("paused")}</Badge>}
            </span>
          ),
        },
        {
          header: t("Running"),
          id: "running",
          accessorFn: runningIn,
          cell: ({ row: { original: pool } }) => (
            <span className="flex items-center gap-2 whitespace-nowrap">
              {t("{n} of {total}", { n: runningIn(pool), total: pool.workers })}
              <span className="hidden w-20 sm:block">
                <RunningMeter pool={pool} />
              </span>
            </span>
          ),
        },
        numbers<Pool>(t("Queued"), "queued"),
        numbers<Pool>(t("Waiting"), "waiting", "md"),
        numbers<Pool>(t("Oldest wait"), "oldest_wait_seconds", undefined, duration),
        numbers<Pool>(t("95 % waited"), "wait_p95_seconds", "sm", duration),
        numbers<Pool>(t("Completed"), "completed", "md"),
        numbers<Pool>(t("Failed"), "failed", "md"),
        numbers<Pool>(t("Dead"), "dead", "sm"),
      ]}
    />
  );
}
