import { useState } from "react";
import { useEvents } from "../data/queries";
import type { Event } from "../data/types";
import { Answer, Badge, Button, Empty, Heading, Panel, type Tone } from "../parts/basics";
import { Typed } from "../parts/typed";
import { Link, to, useParams } from "../router";
import { counted, moment } from "../words";

const MORE = 100;
const MOST = 1000;
const NAMES = [
  "job.dead",
  "job.lost",
  "jobs.amended",
  "job.triggered",
  "token.created",
  "token.revoked",
  "worker.disabled",
  "worker.enabled",
  "pool.scaled",
  "pool.paused",
  "pool.resumed",
  "pool.bounds",
  "pool.failing",
  "pool.recovered",
  "node.started",
  "node.stopped",
  "node.drained",
  "leader.elected",
  "breaker.opened",
  "breaker.closed",
  "schedule.skipped",
  "health.problem",
  "health.recovered",
];

const TONES: Record<string, Tone> = {
  "job.dead": "bad",
  "job.lost": "warn",
  "worker.disabled": "bad",
  "worker.enabled": "ok",
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
  const [limit, setLimit] = useState(MORE);
  const name = params.get("name") ?? "";
  const subject = params.get("subject") ?? "";
  const events = useEvents({ name, subject }, limit);
  return (
    <>
      <Heading title="Events" about="The audit log: who, or which rule, did what, and why" />
      <Panel flush>
        <div className="flex flex-wrap gap-2 border-b border-line p-2">
          <select
            className="field"
            aria-label="Kind of event"
            value={name}
            onChange={(event) => change({ name: event.target.value })}
          >
            <option value="">any event</option>
            {NAMES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <Typed
            label="Subject: a pool, worker, node or job"
            size={36}
            value={subject}
            take={(written) => change({ subject: written })}
          />
        </div>
        <Answer of={events} rows={10}>
          {(page) => (
            <>
              {page.events.length ? (
                <ol className="divide-y divide-line">
                  {[...page.events]
                    .sort((a, b) => b.seq - a.seq)
                    .map((event) => (
                      <Row key={event.seq} event={event} />
                    ))}
                </ol>
              ) : (
                <Empty title="Nothing has happened">
                  {name || subject ? "Not of this kind." : "What the rules and people do is told here."}
                </Empty>
              )}
              <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                <span>{counted(page.events.length, "event")}, newest first</span>
                {page.events.length >= limit && limit < MOST && (
                  <Button small className="ml-auto" onClick={() => setLimit(Math.min(limit * 2, MOST))}>
                    Show more
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

function addressOf({ name, subject }: Event): string | null {
  const kind = name.split(".")[0];
  if (kind === "pool") return to(["pools", subject]);
  if (kind === "worker" || kind === "schedule") return to(["workers", subject]);
  if (kind === "node" || kind === "leader") return to(["nodes"], { node: subject });
  if (kind === "job") return to(["jobs", subject]);
  return null;
}

function Row({ event }: { event: Event }) {
  const address = addressOf(event);
  const by = typeof event.data?.by === "string" ? event.data.by : null;
  return (
    <li className="grid grid-cols-[minmax(0,1fr)] gap-x-3 gap-y-0.5 px-3 py-2 text-sm md:grid-cols-[9.5rem_8.5rem_minmax(0,1fr)]">
      <time dateTime={event.at} className="text-xs leading-5 whitespace-nowrap text-muted">
        {moment(Date.parse(event.at))}
      </time>
      <span>
        <Badge tone={TONES[event.name] ?? "plain"}>{event.name}</Badge>
      </span>
      <span className="min-w-0 break-words">
        {event.message}{" "}
        {address && (
          <Link className="link text-xs whitespace-nowrap" href={address} aria-label={`Open ${event.subject}`}>
            open
          </Link>
        )}
        {by && <span className="block text-xs text-muted">by {by}</span>}
      </span>
    </li>
  );
}
