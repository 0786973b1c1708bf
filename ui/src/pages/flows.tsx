import { Fragment, useState } from "react";
import { segment } from "../data/client";
import { useAct, useFlow, useFlows, useMay } from "../data/queries";
import type { Flow, WholeFlow } from "../data/types";
import { Answer, Badge, Button, Empty, Heading, Meter, Panel, StatusBadge, Time } from "../parts/basics";
import { Ask } from "../parts/dialog";
import { FlowView, MOST_BOXES } from "../parts/flow";
import { brief } from "../parts/jobtable";
import { Link, to, useParams } from "../router";
import { count, counted, duration, span } from "../words";

const PAGE = 50;
/** How many jobs of a critical path are shown, the last ones. */
const SHOWN = 20;
const TONES = { running: "accent", broken: "bad", completed: "ok", cancelled: "plain" } as const;

function StateBadge({ state }: { state: Flow["state"] }) {
  return <Badge tone={TONES[state]}>{state}</Badge>;
}

function inWords(flow: Flow): string {
  return Object.entries(flow.counts)
    .map(([status, number]) => `${count(number)} ${status}`)
    .join(", ");
}

export function FlowsPage() {
  const [params, change] = useParams();
  const flows = useFlows(params.get("after"), PAGE);
  return (
    <>
      <Heading title="Flows" about="Jobs that need each other, newest first" />
      <Panel flush>
        <Answer of={flows}>
          {({ flows: seen, next_after }) =>
            seen.length ? (
              <>
                <ul className="divide-y divide-line">
                  {seen.map((flow) => (
                    <li key={flow.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
                      <Link className="link font-mono text-xs" href={to(["flows", flow.id])}>
                        {brief(flow.id)}
                      </Link>
                      <span className="font-medium">{flow.worker}</span>
                      {flow.tags.map((tag) => (
                        <Badge key={tag} tone="plain">
                          {tag}
                        </Badge>
                      ))}
                      <StateBadge state={flow.state} />
                      <span className="w-40">
                        <Meter value={flow.ended} most={flow.jobs} label={`Progress of flow ${flow.id}`} />
                      </span>
                      <span className="text-xs text-muted">{inWords(flow)}</span>
                      <span className="ml-auto text-xs text-muted">
                        <Time at={flow.created_at} />
                      </span>
                    </li>
                  ))}
                </ul>
                <p className="flex gap-2 p-2">
                  {params.get("after") && (
                    <Button small kind="quiet" onClick={() => change({ after: null })}>
                      Newest
                    </Button>
                  )}
                  {next_after && (
                    <Button small kind="quiet" onClick={() => change({ after: next_after })}>
                      Older
                    </Button>
                  )}
                </p>
              </>
            ) : (
              <Empty title="No flows">Calls that are added with enqueue_flow appear here.</Empty>
            )
          }
        </Answer>
      </Panel>
    </>
  );
}

export function FlowPage({ id }: { id: string }) {
  const flow = useFlow(id);
  return (
    <Answer of={flow} rows={10}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["flows"])}>
                  Flows
                </Link>
                <span className="text-muted">/</span>
                <span className="font-mono text-base" title={seen.id}>
                  {brief(seen.id)}
                </span>
                <StateBadge state={seen.state} />
              </>
            }
          >
            <FlowActions flow={seen} />
          </Heading>
          <div className="flex flex-col gap-3">
            <Panel>
              <div className="flex items-center gap-3 text-sm">
                <Meter value={seen.ended} most={seen.jobs} label="Progress" />
                <span className="whitespace-nowrap">
                  {count(seen.ended)} of {counted(seen.jobs, "job")}
                </span>
              </div>
              <p className="mt-1 text-xs text-muted">
                {Object.entries(seen.counts).map(([status, number]) => (
                  <Fragment key={status}>
                    <Link className="link" href={to(["jobs"], { flow: seen.id, status })}>
                      {count(number)} {status}
                    </Link>
                    {", "}
                  </Fragment>
                ))}
                added <Time at={seen.created_at} />
              </p>
            </Panel>
            <Panel title="Jobs">
              {seen.boxes.length > MOST_BOXES ? (
                <Empty title={`${count(seen.boxes.length)} boxes are too many to draw`}>
                  <Link href={to(["jobs"], { flow: seen.id })}>List its jobs</Link>
                </Empty>
              ) : (
                <FlowView flow={seen} />
              )}
            </Panel>
            {seen.critical_path.length > 1 && (
              <Panel title="Critical path">
                <Critical flow={seen} />
              </Panel>
            )}
          </div>
        </>
      )}
    </Answer>
  );
}

function Critical({ flow }: { flow: WholeFlow }) {
  const now = Date.now();
  return (
    <ol className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm" aria-label="Critical path">
      {flow.critical_path.slice(-SHOWN).map((job, place) => (
        <li key={job.id} className="flex items-center gap-2">
          {place > 0 && <span aria-hidden="true">→</span>}
          <Link href={to(["jobs", job.id])}>{job.worker}</Link>
          {job.status !== "completed" && <StatusBadge status={job.status} />}
          {job.started_at && (
            <span className="text-xs text-muted">{duration(span(job.started_at, job.ended_at, now))}</span>
          )}
        </li>
      ))}
    </ol>
  );
}

function FlowActions({ flow }: { flow: WholeFlow }) {
  const may = useMay();
  const [asking, setAsking] = useState(false);
  const act = useAct<{ changed: number }>((answer) => `Done: ${counted(answer.changed, "job")}`);
  const path = `flows/${segment(flow.id)}`;
  const broken = (flow.counts.dead ?? 0) + (flow.counts.cancelled ?? 0) > 0;
  const close = () => setAsking(false);
  return (
    <>
      <Link className="link text-sm" href={to(["jobs"], { flow: flow.id })}>
        All jobs
      </Link>
      {broken && (
        <Button kind="primary" disabled={!may || act.isPending} onClick={() => act.mutate({ path: `${path}/retry` })}>
          Retry
        </Button>
      )}
      {flow.ended < flow.jobs && (
        <Button kind="danger" disabled={!may} onClick={() => setAsking(true)}>
          Cancel
        </Button>
      )}
      {asking && (
        <Ask
          title="Cancel this flow?"
          verb="Cancel its jobs"
          danger
          busy={act.isPending}
          close={close}
          submit={() => act.mutate({ path: `${path}/cancel` }, { onSuccess: close })}
        >
          <p>All its jobs that have not ended are cancelled. Running ones are asked to stop.</p>
        </Ask>
      )}
    </>
  );
}
