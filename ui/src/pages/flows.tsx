import { Fragment, useState } from "react";
import type { FlowsQuery } from "shiftwork";
import { api } from "../data/client";
import { useStillFlows } from "../data/held";
import { useAct, useFlow, useMay, useWorkerNames } from "../data/queries";
import type { Flow, WholeFlow } from "../data/types";
import { rich, t } from "../language";
import { READ_ONLY, Reason, reasonIn } from "../parts/actions";
import { Answer, Badge, Button, Empty, Heading, Meter, Panel, StatusBadge, Time } from "../parts/basics";
import { Ask } from "../parts/dialog";
import { FlowView, MOST_BOXES, numbersOf } from "../parts/flow";
import { brief } from "../parts/jobtable";
import { NewAbove } from "../parts/newabove";
import { Pager, usePages } from "../parts/pager";
import { Typed } from "../parts/typed";
import { Link, to, useParams } from "../router";
import { ROW } from "../shortcuts";
import { duration, spent } from "../words";

const PAGE = 50;
/** How many jobs of a critical path are shown, the last ones. */
const SHOWN = 20;
const TONES = { running: "accent", broken: "bad", completed: "ok", cancelled: "plain" } as const;

function StateBadge({ state }: { state: Flow["state"] }) {
  return <Badge tone={TONES[state]}>{t(state)}</Badge>;
}

function inWords(flow: Flow): string {
  return numbersOf(flow.counts).join(t(", "));
}

export function FlowsPage() {
  const [params] = useParams();
  const pages = usePages();
  const filter = filterOf(params);
  const filtered = Object.keys(filter).length > 0;
  const flows = useStillFlows(filter, pages.after, PAGE);
  return (
    <>
      <Heading title={t("Flows")} about={t("Jobs that need each other, newest first")} />
      <Panel flush>
        <Filters params={params} pick={pages.pick} />
        <Answer of={flows}>
          {(page) => (
            <>
              {page.fresh > 0 && <NewAbove n={page.fresh} more={page.more} show={page.show} />}
              {page.rows.length ? (
                <ul className="divide-y divide-line">
                  {page.rows.map((flow) => (
                    <Row key={flow.id} flow={flow} gone={page.gone.has(flow.id)} />
                  ))}
                </ul>
              ) : filtered || pages.after ? (
                <Empty title={t("No matching flows")}>{t("Remove a filter, or look further back.")}</Empty>
              ) : (
                <Empty title={t("No flows")}>{t("Calls that are added with enqueue_flow appear here.")}</Empty>
              )}
              <div className="flex flex-wrap items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
                <span>{howMany(pages.number, page.rows.length, page.next_after)}</span>
                {page.gone.size > 0 && (
                  <span>{t("{n} in italics: no longer in this part of the list", { n: page.gone.size })}</span>
                )}
                {filtered && page.next_after && (
                  <span>{t("The search stops after a moment; Older continues it.")}</span>
                )}
                <Pager pages={pages} next={page.next_after} />
              </div>
            </>
          )}
        </Answer>
      </Panel>
    </>
  );
}

function filterOf(params: URLSearchParams): FlowsQuery {
  const asked = FILTERS.map((name) => [name, params.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(asked) as FlowsQuery;
}

const FILTERS = ["state", "worker", "tag"];

function Filters({
  params,
  pick,
}: {
  params: URLSearchParams;
  pick: (changed: Record<string, string | string[] | null>) => void;
}) {
  const [near, setNear] = useState(false);
  const names = useWorkerNames(near);
  return (
    <div className="grid grid-cols-2 gap-2 border-b border-line p-2 sm:flex">
      <select
        className="field"
        aria-label={t("State")}
        value={params.get("state") ?? ""}
        onChange={(event) => pick({ state: event.target.value })}
      >
        <option value="">{t("any state")}</option>
        {(Object.keys(TONES) as Flow["state"][]).map((state) => (
          <option key={state} value={state}>
            {t(state)}
          </option>
        ))}
      </select>
      <Typed
        label={t("Worker")}
        value={params.get("worker") ?? ""}
        take={(written) => pick({ worker: written })}
        names={names.data ?? []}
        near={() => setNear(true)}
      />
      <Typed label={t("Tag")} value={params.get("tag") ?? ""} take={(written) => pick({ tag: written })} />
    </div>
  );
}

function Row({ flow, gone }: { flow: Flow; gone: boolean }) {
  return (
    <li
      {...ROW}
      className={`flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm hover:bg-sunken ${gone ? "text-muted italic" : ""}`}
    >
      <Link className="link font-mono text-xs" href={to(["flows", flow.id])} title={flow.id} data-row-link="">
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
        <Meter value={flow.ended} most={flow.jobs} label={t("Progress of flow {id}", { id: flow.id })} />
      </span>
      <span className="text-xs text-muted">{inWords(flow)}</span>
      <span className="ml-auto text-xs text-muted">
        <Time at={flow.created_at} />
      </span>
    </li>
  );
}

/** No store counts flows: how many there are is known on the last page alone. */
function howMany(page: number, n: number, next: string | null): string {
  if (!next) return t("Page {page}, the last one, {n} {n:flow|flows}", { page, n });
  return t("Page {page}, {n} {n:flow|flows}", { page, n });
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
                  {t("Flows")}
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
                <Meter value={seen.ended} most={seen.jobs} label={t("Progress")} />
                <span className="whitespace-nowrap">
                  {t("{n} of {total} {total:job|jobs}", { n: seen.ended, total: seen.jobs })}
                </span>
              </div>
              <p className="mt-1 text-xs text-muted">
                {Object.keys(seen.counts).map((status, place) => (
                  <Fragment key={status}>
                    <Link className="link" href={to(["jobs"], { flow: seen.id, status })}>
                      {numbersOf(seen.counts)[place]}
                    </Link>
                    {t(", ")}
                  </Fragment>
                ))}
                {rich("added {time}", { time: <Time at={seen.created_at} /> })}
              </p>
              {seen.stranded > 0 && (
                <p className="mt-1 text-sm text-bad">
                  {t("{n} {n:job|jobs} cannot run: a job before is dead or cancelled. Retry the flow, or cancel it.", {
                    n: seen.stranded,
                  })}
                </p>
              )}
            </Panel>
            <Panel title={t("Jobs")}>
              {seen.boxes.length > MOST_BOXES ? (
                <Empty title={t("{n} boxes are too many to draw", { n: seen.boxes.length })}>
                  <Link href={to(["jobs"], { flow: seen.id })}>{t("List its jobs")}</Link>
                </Empty>
              ) : (
                <FlowView flow={seen} />
              )}
            </Panel>
            {seen.critical_path.length > 1 && (
              <Panel title={t("Critical path")}>
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
    <ol className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm" aria-label={t("Critical path")}>
      {flow.critical_path.slice(-SHOWN).map((job, place) => (
        <li key={job.id} className="flex items-center gap-2">
          {place > 0 && <span aria-hidden="true">→</span>}
          <Link className="link inline-flex min-h-6 items-center" href={to(["jobs", job.id])}>
            {job.worker}
          </Link>
          {job.status !== "completed" && <StatusBadge status={job.status} />}
          {job.started_at && <span className="text-xs text-muted">{duration(spent(job, now))}</span>}
        </li>
      ))}
    </ol>
  );
}

function FlowActions({ flow }: { flow: WholeFlow }) {
  const may = useMay();
  const [asking, setAsking] = useState<"retry" | "cancel" | null>(null);
  const act = useAct<{ changed: number }>((answer) => t("Done: {n} {n:job|jobs}", { n: answer.changed }));
  const broken = (flow.counts.dead ?? 0) + (flow.counts.cancelled ?? 0);
  const close = () => setAsking(null);
  const title = may ? undefined : READ_ONLY;
  return (
    <>
      <Link className="link text-sm" href={to(["jobs"], { flow: flow.id })}>
        {t("All jobs")}
      </Link>
      {broken > 0 && (
        <Button kind="primary" disabled={!may} title={title} onClick={() => setAsking("retry")}>
          {t("Retry")}
        </Button>
      )}
      {flow.ended < flow.jobs && (
        <Button kind="danger" disabled={!may} title={title} onClick={() => setAsking("cancel")}>
          {t("Cancel")}
        </Button>
      )}
      {asking === "retry" && (
        <Ask
          title={t("Retry this flow?")}
          verb={t("Retry {n} {n:job|jobs}", { n: broken })}
          busy={act.isPending}
          close={close}
          submit={(data) => act.mutate(() => api.retryFlow(flow.id, reasonIn(data)), { onSuccess: close })}
        >
          <p>{t("Its dead and cancelled jobs are queued again, and it continues from there.")}</p>
          <Reason />
        </Ask>
      )}
      {asking === "cancel" && (
        <Ask
          title={t("Cancel this flow?")}
          verb={t("Cancel its jobs")}
          danger
          busy={act.isPending}
          close={close}
          submit={(data) => act.mutate(() => api.cancelFlow(flow.id, reasonIn(data)), { onSuccess: close })}
        >
          <p>{t("All its jobs that have not ended are cancelled. Running ones are asked to stop.")}</p>
          <Reason />
        </Ask>
      )}
    </>
  );
}
