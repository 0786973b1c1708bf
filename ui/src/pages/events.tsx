import { Fragment } from "react";
import { useEventLog } from "../data/eventlog";
import type { Event } from "../data/types";
import { given, t } from "../language";
import { Answer, Badge, Button, Empty, Heading, Panel, type Tone } from "../parts/basics";
import { brief } from "../parts/jobtable";
import { Typed } from "../parts/typed";
import { Link, to, useParams } from "../router";
import { clock, day } from "../words";

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
  const name = params.get("name") ?? "";
  const subject = params.get("subject") ?? "";
  const log = useEventLog({ name, subject });
  return (
    <>
      <Heading title={t("Events")} about={t("The audit log: who, or which rule, did what, and why")}>
        {(name || subject) && (
          <Button kind="quiet" onClick={() => change({ name: null, subject: null })}>
            {t("Clear filters")}
          </Button>
        )}
      </Heading>
      <Panel flush>
        <div className="flex flex-wrap gap-2 border-b border-line p-2">
          <select
            className="field"
            aria-label={t("Kind of event")}
            value={name}
            onChange={(event) => change({ name: event.target.value })}
          >
            <option value="">{t("any event")}</option>
            {NAMES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <Typed
            label={t("Subject: a pool, worker, node or job")}
            size={36}
            value={subject}
            take={(written) => change({ subject: written })}
          />
        </div>
        <Answer of={log.answer} rows={10}>
          {({ events }) => (
            <>
              {events.length ? (
                <List events={events} only={(chosen) => change({ subject: chosen })} />
              ) : (
                <Empty title={log.older ? t("No recent events match") : t("No events")}>
                  {log.older
                    ? t("Load older ones below.")
                    : name || subject
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
  return null;
}

/** Rows outside the viewport are not rendered: there may be thousands. */
const UNSEEN = "[contain-intrinsic-size:auto_2.4rem] [content-visibility:auto]";

function Row({ event, only }: { event: Event; only: (subject: string) => void }) {
  const address = addressOf(event);
  const by = typeof event.data?.by === "string" ? event.data.by : null;
  return (
    <li
      className={`grid grid-cols-[4.5rem_minmax(0,1fr)] gap-x-3 gap-y-0.5 border-b border-line px-3 py-2 text-sm last:border-0 hover:bg-sunken md:grid-cols-[4.5rem_8.5rem_minmax(0,1fr)_10rem] ${UNSEEN}`}
    >
      <time dateTime={event.at} className="text-xs leading-5 whitespace-nowrap text-muted">
        {clock(Date.parse(event.at))}
      </time>
      <span>
        <Badge tone={TONES[event.name] ?? "plain"}>{event.name}</Badge>
      </span>
      <span className="min-w-0 break-words max-md:col-span-2">
        {given(event.message)}
        {by && <span className="ml-2 text-xs whitespace-nowrap text-muted">{t("by {who}", { who: by })}</span>}
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
