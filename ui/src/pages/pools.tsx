import { useHistory, usePool, usePools } from "../data/queries";
import { instants, rate, zeroed } from "../data/series";
import type { Event, History, Pool } from "../data/types";
import { PoolActions } from "../parts/actions";
import { Answer, Badge, Empty, Facts, Heading, Meter, Panel, Stat, Time } from "../parts/basics";
import { Chart, type Mark } from "../parts/chart";
import { Instances } from "../parts/instances";
import { Spans, useSpan } from "../parts/spans";
import { numbers, Table } from "../parts/table";
import { WhatIf } from "../parts/whatif";
import { Link, to } from "../router";
import { compact, count, counted, duration } from "../words";

export function PoolsPage() {
  const pools = usePools();
  return (
    <>
      <Heading title="Pools" about="Each pool scales between its bounds, by queue depth and waiting time" />
      <Panel flush>
        <Answer of={pools}>
          {({ pools: rows }) => (
            <Table
              label="Pools"
              rows={rows}
              id={(pool) => pool.name}
              empty={<Empty title="No pools yet">They appear when an app registers them.</Empty>}
              columns={[
                {
                  header: "Pool",
                  accessorKey: "name",
                  cell: ({ row: { original } }) => <Link href={to(["pools", original.name])}>{original.name}</Link>,
                },
                {
                  header: "State",
                  id: "state",
                  enableSorting: false,
                  cell: ({ row: { original } }) => <States pool={original} />,
                },
                { header: "Kind", accessorKey: "kind", meta: { from: "md" } },
                {
                  header: "Slots",
                  accessorKey: "workers",
                  cell: ({ row: { original } }) => <Size pool={original} />,
                },
                numbers<Pool>("Queued", "queued"),
                numbers<Pool>("Waiting", "waiting", "md"),
                numbers<Pool>("Running", "running", "sm"),
                numbers<Pool>("Oldest wait", "oldest_wait_seconds", "sm", duration),
                numbers<Pool>("95 % waited", "wait_p95_seconds", "lg", duration),
                numbers<Pool>("Dead", "dead", "lg"),
                {
                  header: () => <span className="sr-only">Actions</span>,
                  id: "actions",
                  enableSorting: false,
                  meta: { from: "md" },
                  cell: ({ row: { original } }) => (
                    <span className="flex justify-end gap-1.5">
                      <PoolActions pool={original} small />
                    </span>
                  ),
                },
              ]}
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
        <Badge tone="ok">✓ active</Badge>
      ) : pool.running > 0 ? (
        <Badge tone="warn">‖ draining, {count(pool.running)} still running</Badge>
      ) : (
        <Badge tone="warn">‖ paused, drained</Badge>
      )}
      {pool.failing.length > 0 && <Badge tone="bad">✕ cannot start</Badge>}
      {pool.unplaced && <Badge tone="warn">no room</Badge>}
      {pool.bounds_changed && <Badge>bounds set by hand</Badge>}
    </span>
  );
}

function Size({ pool }: { pool: Pool }) {
  const most = pool.max_workers ?? pool.workers;
  return (
    <span className="flex items-center gap-2 whitespace-nowrap">
      <span className="min-w-16">
        {pool.busy} of {pool.workers} busy
      </span>
      <span className="hidden w-24 lg:block">
        <Meter value={pool.workers} most={most} label={`Slots of ${pool.name}, at most ${most}`} />
      </span>
      <span className="hidden text-xs text-muted lg:inline">
        {pool.min_workers ?? "?"}–{pool.max_workers ?? "?"}
      </span>
    </span>
  );
}

export function PoolPage({ name }: { name: string }) {
  const pool = usePool(name);
  const history = useHistory(useSpan(), name);
  return (
    <Answer of={pool}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["pools"])}>
                  Pools
                </Link>
                <span className="text-muted">/</span> {seen.name} <States pool={seen} />
              </>
            }
          >
            <PoolActions pool={seen} />
          </Heading>
          <div className="flex flex-col gap-3">
            <Notices pool={seen} />
            <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
              <Stat
                label="Slots"
                value={seen.workers}
                note={`${seen.wanted} wanted, ${seen.min_workers ?? "?"}–${seen.max_workers ?? "?"} allowed`}
              />
              <Stat label="Busy" value={seen.busy} note={counted(seen.instances, "process", "processes")} />
              <Stat
                label="Queued"
                value={count(seen.queued)}
                note={`${count(seen.retrying)} to retry, ${count(seen.waiting)} waiting`}
                href={to(["jobs"], { pool: name, status: "queued" })}
              />
              <Stat
                label="Oldest wait"
                value={duration(seen.oldest_wait_seconds ?? 0)}
                note={`95 % waited less than ${duration(seen.wait_p95_seconds)}`}
              />
              <Stat label="Completed" value={compact(seen.completed)} note={`${count(seen.failed)} attempts failed`} />
              <Stat
                label="Dead"
                value={count(seen.dead)}
                tone={seen.dead ? "bad" : undefined}
                href={to(["jobs"], { pool: name, status: "dead" })}
              />
            </div>
            <Panel title="Slots and queue depth" side={<Spans />}>
              <Answer of={history}>{(past) => <PoolCharts name={name} history={past} steps={seen.events} />}</Answer>
            </Panel>
            <WhatIf key={seen.name} pool={seen} />
            <Panel title="Processes" flush>
              <Instances rows={seen.instance_list} />
            </Panel>
            <div className="grid gap-3 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
              <Panel title="Scaling steps" flush>
                <Steps events={seen.events} />
              </Panel>
              <Panel title="About">
                <Facts
                  items={[
                    ["Kind", seen.kind ?? "unknown: no node has registered it"],
                    ["Processes", spread(seen)],
                    [
                      "Bounds",
                      `${seen.min_workers ?? "?"} to ${seen.max_workers ?? "?"}${seen.bounds_why ? `, ${seen.bounds_why}` : ""}`,
                    ],
                    [
                      "Jobs",
                      <Link key="jobs" href={to(["jobs"], { pool: name })}>
                        All jobs of this pool
                      </Link>,
                    ],
                    [
                      "Workers",
                      <Link key="workers" href={to(["workers"], { pool: name })}>
                        All workers of this pool
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
    ...(pool.paused ? [`Paused${pool.reason ? `: ${pool.reason}` : ""}. Queued jobs wait until it is resumed.`] : []),
    ...(pool.unplaced ? [`The pool has fewer slots than it needs: ${pool.unplaced}`] : []),
    ...pool.failing.map(({ node, error }) => `Processes cannot be started on ${node}: ${error}`),
  ];
  return said.map((text) => (
    <p key={text} className="rounded-md border border-warn bg-warn-soft px-3 py-2 text-sm break-words text-warn">
      {text}
    </p>
  ));
}

function PoolCharts({ name, history, steps }: { name: string; history: History; steps: Event[] }) {
  const past = history.pools[name];
  if (!past || history.at.length < 2)
    return <Empty title="No history yet">The charts start with the first node.</Empty>;
  const at = instants(history);
  const marks = steps.filter((step) => step.name === "pool.scaled").map(markOf);
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Chart
        label="Slots"
        steps="whole"
        at={at}
        marks={marks}
        hint="▴ more and ▾ fewer slots: hover over one to see why"
        format={compact}
        height={170}
        lines={[
          { name: "running jobs", ink: "series-3", values: past.processing, fill: true },
          { name: "slots", ink: "series-1", values: past.workers, step: true },
          { name: "wanted", ink: "series-7", values: past.wanted, step: true, dash: true },
        ]}
      />
      <Chart
        label="Jobs waiting"
        steps="whole"
        at={at}
        marks={marks}
        format={compact}
        height={170}
        lines={[{ name: "queued", ink: "series-2", values: past.queued, fill: true }]}
      />
      <Chart
        label="Waiting time"
        steps="time"
        at={at}
        format={duration}
        height={130}
        lines={[
          { name: "oldest", ink: "series-2", values: zeroed(past, past.oldest_wait) },
          { name: "95 % less than", ink: "series-4", values: past.wait_p95, through: true },
        ]}
      />
      <Chart
        label="Ended attempts per second"
        at={at}
        format={compact}
        height={130}
        lines={[
          { name: "completed", ink: "ok-fill", values: rate(past.completed, history.step), fill: true },
          { name: "failed", ink: "bad-fill", values: rate(past.failed, history.step) },
        ]}
      />
    </div>
  );
}

/** The message without the pool's name, which is on the page already. */
const said = (event: Event) => event.message.replace(/^pool \S+: /, "");

function markOf(step: Event): Mark {
  const [, from, until] = /(\d+) → (\d+)/.exec(step.message) ?? [];
  const way = from && until ? (Number(until) > Number(from) ? "up" : "down") : undefined;
  return { at: Date.parse(step.at) / 1000, text: said(step), way };
}

function Steps({ events }: { events: Event[] }) {
  if (events.length === 0)
    return <Empty title="No scaling steps yet">Each change of size appears here, with its reason.</Empty>;
  return (
    <ol tabIndex={0} aria-label="Scaling steps" className="max-h-80 divide-y divide-line overflow-y-auto">
      {[...events]
        .sort((a, b) => b.seq - a.seq)
        .map((event) => (
          <li key={event.seq} className="flex gap-3 px-3 py-2 text-sm">
            <span className="w-20 shrink-0 text-xs leading-5 text-muted">
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
  if (pool.kind === "process") return "one for each slot";
  if (pool.processes === "auto") return "one for each core of a node";
  return pool.processes === null ? "unknown" : `${pool.processes} on each node`;
}
