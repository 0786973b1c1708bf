import { useHistory, usePool, usePools } from "../data/queries";
import { instants, rate, zeroed } from "../data/series";
import type { Event, History, Pool } from "../data/types";
import { t } from "../language";
import { PoolActions } from "../parts/actions";
import { Answer, Badge, Empty, Facts, Heading, Panel, Stat, Time } from "../parts/basics";
import { BreakersOf } from "../parts/breakers";
import { Chart, type Mark } from "../parts/chart";
import { Instances } from "../parts/instances";
import { RunningMeter, runningIn } from "../parts/running";
import { Spans, useSpan } from "../parts/spans";
import { numbers, Table } from "../parts/table";
import { WhatIf } from "../parts/whatif";
import { Link, to } from "../router";
import { compact, count, duration } from "../words";
import { inZone } from "../zone";

export function PoolsPage() {
  const pools = usePools();
  return (
    <>
      <Heading title={t("Pools")} about={t("Each pool scales between its bounds, by queue depth and waiting time")} />
      <Panel flush>
        <Answer of={pools}>
          {({ pools: rows }) => (
            <Table
              label={t("Pools")}
              rows={rows}
              id={(pool) => pool.name}
              empty={<Empty title={t("No pools yet")}>{t("They appear when an app registers them.")}</Empty>}
              columns={[
                {
                  header: t("Pool"),
                  accessorKey: "name",
                  cell: ({ row: { original } }) => (
                    <>
                      <Link href={to(["pools", original.name])}>{original.name}</Link>
                      <span className="mt-0.5 block sm:hidden">
                        <States pool={original} />
                      </span>
                    </>
                  ),
                },
                {
                  header: t("State"),
                  id: "state",
                  enableSorting: false,
                  meta: { from: "sm" },
                  cell: ({ row: { original } }) => <States pool={original} />,
                },
                { header: t("Kind"), accessorKey: "kind", meta: { from: "wide" } },
                {
                  header: t("Slots"),
                  accessorKey: "workers",
                  cell: ({ row: { original } }) => <Size pool={original} />,
                },
                numbers<Pool>(t("Queued"), "queued"),
                numbers<Pool>(t("Waiting"), "waiting", "wide"),
                numbers<Pool>(t("Oldest wait"), "oldest_wait_seconds", "sm", duration),
                numbers<Pool>(t("95 % waited"), "wait_p95_seconds", "xl", duration),
                numbers<Pool>(t("Dead"), "dead", "lg"),
              ]}
              actions={(pool) => <PoolActions pool={pool} small />}
            />
          )}
        </Answer>
      </Panel>
    </>
  );
}

function States({ pool }: { pool: Pool }) {
  return (
    <span className="flex flex-wrap gap-1">
      {!pool.paused ? (
        <Serving pool={pool} />
      ) : pool.running > 0 ? (
        <Badge tone="warn">{t("‖ draining, {n} still running", { n: pool.running })}</Badge>
      ) : (
        <Badge tone="warn">{t("‖ paused, drained")}</Badge>
      )}
      {pool.failing.length > 0 && <Badge tone="bad">{t("✕ cannot start")}</Badge>}
      {pool.unplaced && <Badge tone="warn">{t("no room")}</Badge>}
      {pool.bounds_changed && <Badge>{t("bounds set by hand")}</Badge>}
    </span>
  );
}

function Serving({ pool }: { pool: Pool }) {
  return pool.instances ? <Badge tone="ok">{t("✓ serving")}</Badge> : <Badge>{t("no instances")}</Badge>;
}

function Size({ pool }: { pool: Pool }) {
  return (
    <span className="flex items-center gap-2 whitespace-nowrap">
      <span className="min-w-16">{t("{n} of {total} running", { n: runningIn(pool), total: pool.workers })}</span>
      <span className="hidden w-24 lg:block">
        <RunningMeter pool={pool} />
      </span>
      <span className="hidden text-xs text-muted lg:inline">
        {pool.min_workers ?? "?"}–{pool.max_workers ?? "?"}
      </span>
    </span>
  );
}

export function PoolPage({ name }: { name: string }) {
  const pool = usePool(name);
  const span = useSpan();
  const history = useHistory(span, name);
  return (
    <Answer of={pool}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["pools"])}>
                  {t("Pools")}
                </Link>
                <span className="text-muted">/</span> {seen.name} <States pool={seen} />
              </>
            }
          >
            <PoolActions pool={seen} />
          </Heading>
          <div className="flex flex-col gap-3">
            <Notices pool={seen} />
            <BreakersOf pool={name} />
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
              <Stat
                label={t("Slots")}
                value={seen.workers}
                note={t("{wanted} wanted, {min}–{max} allowed", {
                  wanted: seen.wanted,
                  min: seen.min_workers ?? "?",
                  max: seen.max_workers ?? "?",
                })}
              />
              <Stat
                label={t("Running")}
                value={runningIn(seen)}
                note={t("{n} {n:instance|instances}", { n: seen.instances })}
              />
              <Stat
                label={t("Queued")}
                value={count(seen.queued)}
                note={t("{retrying} to retry, {waiting} waiting", seen)}
                href={to(["jobs"], { pool: name, status: "queued" })}
              />
              <Stat
                label={t("Oldest wait")}
                value={duration(seen.oldest_wait_seconds ?? 0)}
                note={t("95 % waited less than {time}", { time: duration(seen.wait_p95_seconds) })}
              />
              <Stat
                label={t("Completed")}
                value={compact(seen.completed)}
                note={t("{n} {n:attempt|attempts} failed", { n: seen.failed })}
              />
              <Stat
                label={t("Dead")}
                value={count(seen.dead)}
                tone={seen.dead ? "bad" : undefined}
                href={to(["jobs"], { pool: name, status: "dead" })}
              />
            </div>
            <Panel title={t("Slots and queue depth")} side={<Spans />}>
              <Answer of={history}>
                {(past) => <PoolCharts name={name} history={past} steps={seen.events} span={span} />}
              </Answer>
            </Panel>
            <WhatIf key={seen.name} pool={seen} />
            <Panel title={t("Instances")} flush>
              <Instances rows={seen.instance_list} />
            </Panel>
            <div className="grid gap-3 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
              <Panel title={t("Scaling steps")} flush>
                <Steps events={seen.events} />
              </Panel>
              <Panel title={t("About")}>
                <Facts
                  items={[
                    [t("Kind"), seen.kind ?? t("unknown: no node has registered it")],
                    [t("Processes"), spread(seen)],
                    [
                      t("Bounds"),
                      [
                        t("{min} to {max}", { min: seen.min_workers ?? "?", max: seen.max_workers ?? "?" }),
                        ...(seen.bounds_why ? [inZone(seen.bounds_why)] : []),
                      ].join(t(", ")),
                    ],
                    [
                      t("Jobs"),
                      <Link key="jobs" href={to(["jobs"], { pool: name })}>
                        {t("All jobs of this pool")}
                      </Link>,
                    ],
                    [
                      t("Workers"),
                      <Link key="workers" href={to(["workers"], { pool: name })}>
                        {t("All workers of this pool")}
                      </Link>,
                    ],
                  ]}
                />
              </Panel>
            </div>
          </div>
        </>
      )}
    </Answer>
  );
}

function Notices({ pool }: { pool: Pool }) {
  const said: string[] = [
    ...(pool.paused
      ? [
          pool.reason
            ? t("Paused: {reason}. Queued jobs wait until it is resumed.", { reason: pool.reason })
            : t("Paused. Queued jobs wait until it is resumed."),
        ]
      : []),
    ...(pool.unplaced ? [t("The pool has fewer slots than it needs: {why}", { why: inZone(pool.unplaced) })] : []),
    ...pool.failing.map((failure) => t("Processes cannot be started on {node}: {error}", failure)),
  ];
  return said.map((text) => (
    <p key={text} className="rounded-md border border-warn bg-warn-soft px-3 py-2 text-sm break-words text-warn">
      {text}
    </p>
  ));
}

function PoolCharts({ name, history, steps, span }: { name: string; history: History; steps: Event[]; span: number }) {
  const past = history.pools[name];
  if (!past || history.at.length < 2)
    return <Empty title={t("No history yet")}>{t("The charts start with the first node.")}</Empty>;
  const at = instants(history);
  const marks = steps.filter((step) => step.name === "pool.scaled").map(markOf);
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Chart
        label={t("Slots")}
        steps="whole"
        at={at}
        span={span}
        marks={marks}
        hint={t("▴ more and ▾ fewer slots: hover over one to see why")}
        format={compact}
        height={170}
        lines={[
          { name: t("running jobs"), ink: "series-3", values: past.processing, fill: true },
          { name: t("slots"), ink: "series-1", values: past.workers, step: true },
          { name: t("wanted"), ink: "series-7", values: past.wanted, step: true, dash: true },
        ]}
      />
      <Chart
        label={t("Jobs waiting")}
        steps="whole"
        at={at}
        span={span}
        marks={marks}
        format={compact}
        height={170}
        lines={[{ name: t("queued"), ink: "series-2", values: past.queued, fill: true }]}
      />
      <Chart
        label={t("Waiting time")}
        steps="time"
        at={at}
        span={span}
        format={duration}
        height={130}
        lines={[
          { name: t("oldest"), ink: "series-2", values: zeroed(past, past.oldest_wait) },
          { name: t("95 % less than"), ink: "series-4", values: past.wait_p95, through: true },
        ]}
      />
      <Chart
        label={t("Ended attempts per second")}
        at={at}
        span={span}
        format={compact}
        height={130}
        lines={[
          { name: t("completed"), ink: "ok-fill", values: rate(past.completed, history.step), fill: true },
          { name: t("failed"), ink: "bad-fill", values: rate(past.failed, history.step) },
        ]}
      />
    </div>
  );
}

/** The message without the pool's name, which is on the page already. */
function said({ message, subject }: Event): string {
  const rest = message.slice(message.indexOf(subject) + subject.length);
  return inZone(/^[:：]/.test(rest) ? rest.slice(1).trimStart() : message);
}

function markOf(step: Event): Mark {
  const [, from, until] = /(\d+) → (\d+)/.exec(step.message) ?? [];
  const way = from && until ? (Number(until) > Number(from) ? "up" : "down") : undefined;
  return { at: Date.parse(step.at) / 1000, text: said(step), way };
}

function Steps({ events }: { events: Event[] }) {
  if (events.length === 0)
    return <Empty title={t("No scaling steps yet")}>{t("Each change of size appears here, with its reason.")}</Empty>;
  return (
    <ol tabIndex={0} aria-label={t("Scaling steps")} className="max-h-80 divide-y divide-line overflow-y-auto">
      {[...events]
        .sort((a, b) => b.seq - a.seq)
        .map((event) => (
          <li key={event.seq} className="flex gap-3 px-3 py-2 text-sm">
            <span className="w-28 shrink-0 text-xs leading-5 text-muted">
              <Time at={event.at} />
            </span>
            <span className="min-w-0 break-words">{said(event)}</span>
          </li>
        ))}
    </ol>
  );
}

/** Over how many processes a pool is spread, in words. */
function spread(pool: Pool): string {
  if (pool.kind === "process") return t("one for each slot");
  if (pool.processes === "auto") return t("one for each core of a node");
  return pool.processes === null ? t("unknown") : t("{n} on each node", { n: pool.processes });
}
