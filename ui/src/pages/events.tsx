import { Fragment, useMemo, useState } from "react";
import type { Event } from "shiftwork";
import type { EventsFilter } from "../data/client";
import { useEventLog } from "../data/eventlog";
import { usePools, useWorkerNames } from "../data/queries";
import { t } from "../language";
import { Answer, Badge, Button, Empty, Heading, Panel, type Tone } from "../parts/basics";
import { brief } from "../parts/jobtable";
import { NewAbove } from "../parts/newabove";
import { Typed } from "../parts/typed";
import { Link, to, useParams } from "../router";
import { ROW } from "../shortcuts";
import { clock, day } from "../words";
import { inZone } from "../zone";

const NAMES = [
  "job.dead",
  "job.lost",
  "jobs.expired",
  "jobs.amended",
  "job.triggered",
  "job.inspected",
  "job.signalled",
  "flow.cancelled",
  "flow.retried",
  "token.created",
  "token.revoked",
  "worker.disabled",
  "worker.enabled",
  "worker.forgotten",
  "worker.rescheduled",
  "pool.scaled",
  "pool.paused",
  "pool.resumed",
  "pool.bounds",
  "pool.failing",
  "pool.recovered",
  "node.started",
  "node.stopped",
  "node.drained",
  "node.lost",
  "leader.elected",
  "breaker.opened",
  "breaker.closed",
  "store.emptied",
  "schedule.skipped",
  "schedule.pulled_back",
  "schedule.put",
  "schedule.paused",
  "schedule.resumed",
  "schedule.deleted",
  "schedule.run",
  "health.problem",
  "health.recovered",
];

const TONES: Record<string, Tone> = {
  "job.dead": "bad",
  "job.lost": "warn",
  "jobs.expired": "warn",
  "worker.disabled": "bad",
  "worker.enabled": "ok",
  "node.lost": "bad",
  "store.emptied": "bad",
  "pool.paused": "warn",
  "pool.resumed": "ok",
  "pool.failing": "bad",
  "pool.recovered": "ok",
  "pool.scaled": "accent",
  "breaker.opened": "bad",
  "breaker.closed": "ok",
  "health.problem": "warn",
  "health.recovered": "ok",
};

export function EventsPage() {
  const [params, change] = useParams();
  const text = params.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(text)), [text]);
  const filtered = Object.keys(filter).length > 0;
  const log = useEventLog(filter);
  return (
    <>
      <Heading title={t("Events")} about={t("The audit log: who, or which rule, did what, and why")}>
        {filtered && (
          <Button kind="quiet" onClick={() => change(Object.fromEntries([...params.keys()].map((one) => [one, null])))}>
            {t("Clear filters")}
          </Button>
        )}
      </Heading>
      <Panel flush>
        <Filters params={params} change={change} />
        <Answer of={log.answer} rows={10}>
          {({ events }) => (
            <>
              {log.fresh > 0 && <NewAbove n={log.fresh} show={log.show} />}
              {events.length ? (
                <List events={events} only={(chosen) => change({ subject: chosen })} />
              ) : (
                <Empty title={log.older ? t("No recent events match") : t("No events")}>
                  {log.older
                    ? t("Load older ones below.")
                    : filtered
                      ? t("No kept event matches the filters.")
                      : t("Actions of people and of rules are recorded here.")}
                </Empty>
              )}
              <div className="flex min-h-10 items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                <span>
                  {log.older
                    ? t("{n} {n:event|events}, newest first", { n: events.length })
                    : t("{n} {n:event|events}, newest first; older ones are not kept", { n: events.length })}
                </span>
                {log.older && (
                  <Button small className="ml-auto" disabled={log.busy} onClick={log.older}>
                    {log.busy ? t("Loading…") : t("Older")}
                  </Button>
                )}
              </div>
            </>
          )}
        </Answer>
      </Panel>
    </>
  );
}

const FILTERS = ["name", "subject", "worker", "pool", "by"] as const;
const SINCE: [string, string, number][] = [
  ["1h", t("last hour"), 3_600],
  ["1d", t("last day"), 86_400],
  ["7d", t("last 7 days"), 604_800],
];

/** The filter in the address. "Last hour" starts on a full minute, so that the query stays the same for a while. */
function filterOf(params: URLSearchParams): EventsFilter {
  const filter: EventsFilter = {};
  for (const one of FILTERS) {
    const value = params.get(one);
    if (value) filter[one] = value;
  }
  const since = SINCE.find(([value]) => value === params.get("since"));
  if (since) filter.since = new Date(Math.floor(Date.now() / 60_000) * 60_000 - since[2] * 1_000).toISOString();
  return filter;
}

function Filters({
  params,
  change,
}: {
  params: URLSearchParams;
  change: (changed: Record<string, string | null>) => void;
}) {
  const [near, setNear] = useState(false);
  const names = useWorkerNames(near);
  const pools = usePools();
  const value = (name: string) => params.get(name) ?? "";
  return (
    <div className="grid grid-cols-2 gap-2 border-b border-line p-2 md:grid-cols-3 xl:grid-cols-6">
      <select
        className="field"
        aria-label={t("Kind of event")}
        value={value("name")}
        onChange={(event) => change({ name: event.target.value })}
      >
        <option value="">{t("any event")}</option>
        {NAMES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <Typed label={t("Subject")} value={value("subject")} take={(written) => change({ subject: written })} />
      <Typed
        label={t("Worker")}
        value={value("worker")}
        names={names.data ?? []}
        near={() => setNear(true)}
        take={(written) => change({ worker: written })}
      />
      <select
        className="field"
        aria-label={t("Pool")}
        value={value("pool")}
        onChange={(event) => change({ pool: event.target.value })}
      >
        <option value="">{t("any pool")}</option>
        {pools.data?.pools.map((pool) => (
          <option key={pool.name}>{pool.name}</option>
        ))}
      </select>
      <Typed label={t("Who")} value={value("by")} take={(written) => change({ by: written })} />
      <select
        className="field"
        aria-label={t("When")}
        value={value("since")}
        onChange={(event) => change({ since: event.target.value })}
      >
        <option value="">{t("any time")}</option>
        {SINCE.map(([one, label]) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

function List({ events, only }: { events: Event[]; only: (subject: string) => void }) {
  let last = "";
  return (
    <ol>
      {events.map((event) => {
        const date = day(Date.parse(event.at));
        const fresh = date !== last;
        last = date;
        return (
          <Fragment key={event.seq}>
            {fresh && (
              <li className="border-b border-line bg-ground px-3 py-1 text-xs font-medium text-muted">{date}</li>
            )}
            <Row event={event} only={only} />
          </Fragment>
        );
      })}
    </ol>
  );
}

/** Events about the schedules of workers, and, if `stored` is among the data, about those that are data. */
const OF_WORKERS = ["schedule.skipped", "schedule.pulled_back"];

function addressOf({ name, subject, data }: Event): string | null {
  const kind = name.split(".")[0];
  if (kind === "pool") return to(["pools", subject]);
  if (kind === "schedule" && (data.stored || !OF_WORKERS.includes(name))) return to(["schedules", subject]);
  if (kind === "worker" || kind === "schedule" || name === "jobs.expired") return to(["workers", subject]);
  if (kind === "node" || kind === "leader") return to(["nodes"], { node: subject });
  if (kind === "job") return to(["jobs", subject]);
  if (kind === "flow") return to(["flows", subject]);
  if (kind === "breaker") return to(["breakers"], { breaker: subject });
  return null;
}

/** Rows outside the viewport are not rendered: there may be thousands. */
const UNSEEN = "[contain-intrinsic-size:auto_2.4rem] [content-visibility:auto]";

function Row({ event, only }: { event: Event; only: (subject: string) => void }) {
  const address = addressOf(event);
  const by = event.by ?? (typeof event.data?.by === "string" ? event.data.by : null);
  const count = event.count ?? 1;
  return (
    <li
      {...ROW}
      className={`grid grid-cols-[4.5rem_minmax(0,1fr)] gap-x-3 gap-y-0.5 border-b border-line px-3 py-2 text-sm last:border-0 hover:bg-sunken md:grid-cols-[4.5rem_9rem_minmax(0,1fr)_6rem_9.5rem] ${UNSEEN}`}
    >
      <time dateTime={event.at} className="text-xs leading-5 whitespace-nowrap text-muted">
        {clock(Date.parse(event.at))}
      </time>
      <span>
        <Badge tone={TONES[event.name] ?? "plain"}>{event.name}</Badge>
      </span>
      <span className="min-w-0 break-words max-md:col-span-2">
        {count > 1 && (
          <Badge tone="bad">
            {event.first_at
              ? t("{n} times since {time}", { n: count, time: clock(Date.parse(event.first_at)) })
              : t("{n} times", { n: count })}
          </Badge>
        )}{" "}
        {inZone(event.text ?? event.message)}
      </span>
      <span className="min-w-0 truncate text-xs leading-5 text-muted max-md:col-span-2" title={by ?? undefined}>
        {by && t("by {who}", { who: by })}
      </span>
      <span className="flex min-w-0 items-center gap-2 text-xs max-md:col-span-2 md:justify-end">
        {address && (
          <Link className="link min-w-0 truncate" href={address} title={event.subject}>
            {brief(event.subject)}
          </Link>
        )}
        <button
          type="button"
          className="shrink-0 rounded text-muted hover:text-ink"
          aria-label={t("Only events about {subject}", { subject: event.subject })}
          title={t("Only events about this")}
          onClick={() => only(event.subject)}
        >
          <svg aria-hidden="true" viewBox="0 0 16 16" className="size-3.5" fill="none" stroke="currentColor">
            <path strokeWidth="1.5" strokeLinejoin="round" d="M2 3h12L9.5 8.5V13l-3-1.5v-3z" />
          </svg>
        </button>
      </span>
    </li>
  );
}
