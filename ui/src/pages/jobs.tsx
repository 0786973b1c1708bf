import type { RowSelectionState } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { useStillJobs } from "../data/held";
import { type JobFilter, useOverview, usePools, useWorkerNames, useWorkers } from "../data/queries";
import { type PlacedJob, STATUSES, type Status } from "../data/types";
import { t } from "../language";
import { Answer, Button, Empty, Heading, Panel } from "../parts/basics";
import { BulkButton } from "../parts/bulk";
import { ENDED } from "../parts/jobactions";
import { JobTable } from "../parts/jobtable";
import { NewAbove } from "../parts/newabove";
import { Pager, usePages } from "../parts/pager";
import { Typed } from "../parts/typed";
import { useParams } from "../router";
import { compact } from "../words";
import { fromField, inField, zone, zoneName } from "../zone";

const PAGE = 50;
const SINCE: [string, string, number][] = [
  ["15m", t("last 15 min"), 900],
  ["1h", t("last hour"), 3_600],
  ["1d", t("last day"), 86_400],
  ["7d", t("last 7 days"), 604_800],
];
const BETWEEN = "between";
const TEXTS: [keyof JobFilter & string, string][] = [
  ["payload", t("Payload contains")],
  ["error", t("Error contains")],
  ["key", t("Key")],
  ["tag", t("Tag")],
];

export function JobsPage() {
  const [params] = useParams();
  const text = params.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(text)), [text]);
  const pages = usePages();
  const { after, pick } = pages;
  const [chosen, setChosen] = useState<RowSelectionState>({});
  const [narrow, setNarrow] = useState(false);
  const filtered = Object.keys(filter).length > 0;
  const ids = Object.keys(chosen).filter((id) => chosen[id]);
  const oldest = params.get("order") === "oldest";
  const jobs = useStillJobs(oldest ? { ...filter, order: "oldest" } : filter, after, PAGE, ids);
  return (
    <>
      <Heading
        title={t("Jobs")}
        about={
          oldest
            ? t("Oldest first; order and filters are part of the address")
            : t("Newest first; order and filters are part of the address")
        }
      >
        <Button
          kind={filter.waits_for_signal ? "primary" : "plain"}
          aria-pressed={Boolean(filter.waits_for_signal)}
          onClick={() => pick({ waits_for_signal: filter.waits_for_signal ? null : "true", status: null })}
        >
          {t("Waiting for a person")}
        </Button>
        {filtered && (
          <Button
            kind="quiet"
            onClick={() =>
              pick(
                Object.fromEntries([...params.keys()].filter((name) => name !== "order").map((name) => [name, null])),
              )
            }
          >
            {t("Clear filters")}
          </Button>
        )}
        <Button className="sm:hidden" aria-expanded={narrow} onClick={() => setNarrow(!narrow)}>
          {t("Filters")}
        </Button>
      </Heading>
      <Panel flush>
        <Filters params={params} pick={pick} open={narrow} />
        <div className="flex min-h-10 flex-wrap items-center gap-2 border-b border-line px-3 py-1.5 text-xs text-muted">
          {ids.length ? (
            <>
              <Chosen ids={ids} />
              <Button small kind="quiet" onClick={() => setChosen({})}>
                {t("Clear selection")}
              </Button>
            </>
          ) : (
            <>
              <span>{filtered ? t("All matching jobs:") : t("All jobs:")}</span>
              <BulkButton small action="retry" filter={filter} label={t("Retry all")} />
              <BulkButton small action="cancel" filter={filter} label={t("Cancel all")} />
              <BulkButton small action="discard" filter={filter} label={t("Discard all")} />
            </>
          )}
        </div>
        <Answer of={jobs} rows={12}>
          {(page) => (
            <>
              {page.fresh > 0 && <NewAbove n={page.fresh} more={page.more} above={!oldest} show={page.show} />}
              <JobTable
                order={{
                  of: oldest ? "oldest" : "newest",
                  change: (order) => pick({ order: order === "oldest" ? order : null }),
                }}
                gone={page.gone}
                jobs={page.jobs}
                selection={{ chosen, choose: setChosen }}
                empty={
                  filter.waits_for_signal && !page.next_after ? (
                    <Empty title={t("No job waits for a person")}>
                      {t("Jobs whose functions wait for a signal appear here.")}
                    </Empty>
                  ) : filtered || after ? (
                    <Empty title={t("No matching jobs")}>{t("Remove a filter, or look further back.")}</Empty>
                  ) : (
                    <Empty title={t("No jobs yet")}>{t("Enqueue one or trigger a worker, and it appears here.")}</Empty>
                  )
                }
              />
              <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                <span>{howMany(pages.number, page)}</span>
                {page.gone.size > 0 && (
                  <span>{t("{n} in italics: no longer in this part of the list", { n: page.gone.size })}</span>
                )}
                {unindexed(filter) && page.next_after && (
                  <span>
                    {oldest
                      ? t("The search stops after a moment; Newer continues it.")
                      : t("The search stops after a moment; Older continues it.")}
                  </span>
                )}
                <Pager pages={pages} next={page.next_after} oldest={oldest} />
              </div>
            </>
          )}
        </Answer>
      </Panel>
    </>
  );
}

/** The filter in the address. "Last hour" starts on a full minute, so that the query stays the same for a while. */
function filterOf(params: URLSearchParams): JobFilter {
  const filter: JobFilter = {};
  const status = params.getAll("status");
  if (status.length) filter.status = status as Status[];
  for (const name of [
    "worker",
    "pool",
    "key",
    "flow",
    "tag",
    "error",
    "payload",
    "created_after",
    "created_before",
  ] as const) {
    const value = params.get(name);
    if (value) filter[name] = value;
  }
  if (params.get("waits_for_signal")) filter.waits_for_signal = "true";
  const since = SINCE.find(([name]) => name === params.get("since"));
  if (since) {
    const from = Math.floor(Date.now() / 60_000) * 60_000 - since[2] * 1000;
    filter.created_after = new Date(from).toISOString();
  }
  return filter;
}

function Filters({
  params,
  pick,
  open,
}: {
  params: URLSearchParams;
  pick: (changed: Record<string, string | string[] | null>) => void;
  open: boolean;
}) {
  const [near, setNear] = useState(false);
  const names = useWorkerNames(near);
  const pools = usePools();
  const status = params.getAll("status");
  const counts = useCounts(params);
  const between = params.get("since") === BETWEEN || params.has("created_after") || params.has("created_before");
  return (
    <div className={`${open ? "flex" : "hidden"} flex-col gap-2 border-b border-line p-2 sm:flex`}>
      <div role="group" aria-label={t("Status")} className="flex flex-wrap gap-1">
        {STATUSES.map((one) => {
          const on = status.includes(one);
          return (
            <button
              key={one}
              type="button"
              aria-pressed={on}
              className={`h-7 rounded-full border px-2.5 text-xs font-medium ${on ? "border-accent bg-accent text-on-accent" : "border-edge text-muted hover:text-ink"}`}
              onClick={() => pick({ status: on ? status.filter((other) => other !== one) : [...status, one] })}
            >
              {one === "failed" ? t("failed, to be retried") : t(one)}
              {counts[one] !== undefined && <span className={on ? "" : "font-normal"}> {compact(counts[one])}</span>}
            </button>
          );
        })}
      </div>
      <div className="grid grid-cols-2 gap-2 md:grid-cols-3 xl:grid-cols-7">
        <Typed
          label={t("Worker")}
          value={params.get("worker") ?? ""}
          take={(written) => pick({ worker: written })}
          names={names.data ?? []}
          near={() => setNear(true)}
        />
        <select
          className="field"
          aria-label={t("Pool")}
          value={params.get("pool") ?? ""}
          onChange={(event) => pick({ pool: event.target.value })}
        >
          <option value="">{t("any pool")}</option>
          {pools.data?.pools.map((pool) => (
            <option key={pool.name}>{pool.name}</option>
          ))}
        </select>
        <select
          className="field"
          aria-label={t("Created")}
          value={between ? BETWEEN : (params.get("since") ?? "")}
          onChange={(event) => pick({ since: event.target.value, created_after: null, created_before: null })}
        >
          <option value="">{t("any time")}</option>
          {SINCE.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          <option value={BETWEEN}>{t("between…")}</option>
        </select>
        {TEXTS.map(([name, label]) => (
          <Typed
            key={name}
            label={label}
            value={params.get(name) ?? ""}
            take={(written) => pick({ [name]: written })}
          />
        ))}
      </div>
      {between && (
        <div className="flex flex-wrap items-center gap-2 text-xs text-muted">
          <Instant
            label={t("Created after")}
            value={params.get("created_after")}
            take={(at) => pick({ created_after: at })}
          />
          <Instant
            label={t("Created before")}
            value={params.get("created_before")}
            take={(at) => pick({ created_before: at })}
          />
          <span>{zoneName(zone)}</span>
        </div>
      )}
    </div>
  );
}

/** How many jobs have which status, as far as the store counts them: of all, of a pool, or of a worker. */
function useCounts(params: URLSearchParams): Partial<Record<Status, number>> {
  const overview = useOverview();
  const worker = params.get("worker");
  const workers = useWorkers(Boolean(worker));
  const uncounted = ["key", "flow", "tag", "error", "payload", "since", "created_after", "created_before"];
  if (uncounted.some((name) => params.get(name)) || (worker && params.get("pool"))) return {};
  const pool = params.get("pool");
  const of = worker
    ? workers.data?.workers.filter(({ name }) => name === worker)
    : overview.data?.pools.filter(({ name }) => !pool || name === pool);
  if (!of?.length) return {};
  const sum = (count: "queued" | "running" | "scheduled" | "waiting" | "retrying" | "dead") =>
    of.reduce((all, one) => all + one[count], 0);
  return {
    queued: sum("queued"),
    processing: sum("running"),
    waiting: sum("waiting"),
    scheduled: sum("scheduled"),
    failed: sum("retrying"),
    dead: sum("dead"),
  };
}

/** An instant, typed in the page's time zone and kept in UTC. */
function Instant({ label, value, take }: { label: string; value: string | null; take: (at: string | null) => void }) {
  return (
    <label className="flex items-center gap-2">
      {label}
      <input
        type="datetime-local"
        className="field"
        value={value ? inField(value) : ""}
        onChange={(event) => take(event.target.value ? fromField(event.target.value) : null)}
      />
    </label>
  );
}

/** Whether a search reads one job after the other. The server then stops after a moment. */
const unindexed = (filter: JobFilter) =>
  Boolean(filter.payload || filter.error || filter.key || filter.waits_for_signal);

function howMany(
  number: number,
  { jobs, total, next_after }: { jobs: PlacedJob[]; total: number | null; next_after: string | null },
) {
  const seen = { page: number, n: jobs.length };
  if (total !== null) return t("Page {page}, {n} of {total} {total:job|jobs}", { ...seen, total });
  if (!next_after) return t("Page {page}, the last one, {n} {n:job|jobs}", seen);
  return t("Page {page}, {n} of more than {total} jobs", { ...seen, total: (number - 1) * PAGE + jobs.length });
}

const LIVE: Status[] = ["queued", "processing", "waiting", "scheduled", "failed"];
const STOPPED: Status[] = ["dead", "cancelled", "failed"];

function Chosen({ ids }: { ids: string[] }) {
  const what = t("among the selected ones, as their states allow");
  return (
    <>
      <span className="font-medium text-ink">{t("{n} {n:job|jobs} selected:", { n: ids.length })}</span>
      <BulkButton small action="retry" filter={{ ids, status: STOPPED }} label={t("Retry")} what={what} />
      <BulkButton small action="cancel" filter={{ ids, status: LIVE }} label={t("Cancel")} what={what} />
      <BulkButton small action="discard" filter={{ ids, status: ENDED }} label={t("Discard")} what={what} />
    </>
  );
}
