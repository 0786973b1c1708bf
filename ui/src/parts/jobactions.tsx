/** What a person can do to one job, and to all jobs that a filter finds. */

import { useState } from "react";
import { segment } from "../data/client";
import { type JobFilter, useAct, useMay, useWorker } from "../data/queries";
import type { Job } from "../data/types";
import { go, to } from "../router";
import { counted } from "../words";
import { Button, Loading } from "./basics";
import { Ask } from "./dialog";
import { PayloadForm } from "./form";

export const ENDED = ["completed", "dead", "cancelled"];

export function JobActions({ job }: { job: Job }) {
  const may = useMay();
  const [asking, setAsking] = useState<"edit" | "discard" | null>(null);
  const act = useAct(`Done: job ${job.id.slice(0, 13)}`);
  const path = `jobs/${segment(job.id)}`;
  const ended = ENDED.includes(job.status);
  const again = job.status === "dead" || job.status === "cancelled" || job.status === "failed";
  const close = () => setAsking(null);
  return (
    <>
      {again && (
        <Button kind="primary" disabled={!may || act.isPending} onClick={() => act.mutate({ path: `${path}/retry` })}>
          Retry
        </Button>
      )}
      {again && (
        <Button disabled={!may} onClick={() => setAsking("edit")}>
          Edit and requeue
        </Button>
      )}
      {!ended && (
        <Button
          kind="danger"
          disabled={!may || job.cancelling || act.isPending}
          onClick={() => act.mutate({ path: `${path}/cancel` })}
        >
          {job.cancelling ? "Cancelling" : "Cancel"}
        </Button>
      )}
      {ended && (
        <Button kind="danger" disabled={!may} onClick={() => setAsking("discard")}>
          Discard
        </Button>
      )}
      {asking === "edit" && <EditAndRequeue job={job} close={close} />}
      {asking === "discard" && (
        <Ask
          title="Discard this job?"
          verb="Discard"
          danger
          busy={act.isPending}
          close={close}
          submit={() => act.mutate({ path: `${path}/discard` }, { onSuccess: () => go(to(["jobs"])) })}
        >
          <p>It is deleted, with its payload and its history. This cannot be undone.</p>
        </Ask>
      )}
    </>
  );
}

export function EditAndRequeue({ job, close }: { job: Job; close: () => void }) {
  const worker = useWorker(job.worker);
  const [payload, setPayload] = useState<unknown>(job.payload);
  const [wrong, setWrong] = useState<string | null>(null);
  const act = useAct("Requeued with its new payload");
  return (
    <Ask
      title={`Edit and requeue a job of ${job.worker}`}
      verb="Requeue"
      wide
      busy={act.isPending}
      disabled={wrong !== null || worker.isPending}
      close={close}
      submit={() => act.mutate({ path: `jobs/${segment(job.id)}/retry`, body: { payload } }, { onSuccess: close })}
    >
      {worker.isPending ? (
        <Loading rows={3} />
      ) : (
        <PayloadForm
          schema={worker.data?.payload_schema ?? null}
          start={job.payload}
          change={(value, problem) => {
            setPayload(value);
            setWrong(problem);
          }}
        />
      )}
      {wrong && <p className="text-bad">{wrong}</p>}
    </Ask>
  );
}

export type BulkAction = "cancel" | "retry" | "discard";
type Counted = { matched: number; changed: number };
const DONE = { cancel: "cancelled", retry: "requeued", discard: "discarded" };

/** Counts first, then asks, then does. */
export function BulkButton({
  action,
  filter,
  label,
  small,
  what = "that the filter finds",
}: {
  action: BulkAction;
  filter: JobFilter;
  label: string;
  small?: boolean;
  what?: string;
}) {
  const may = useMay();
  const [found, setFound] = useState<number | null>(null);
  const look = useAct<Counted>(null);
  const act = useAct<Counted>((answer) => `${counted(answer.changed, "job")} ${DONE[action]}`);
  const close = () => setFound(null);
  const refused =
    Object.keys(filter).length === 0
      ? "Set a filter first: all jobs are seldom meant"
      : filter.payload
        ? "Payloads can be searched, but not changed in bulk: choose jobs in the list"
        : undefined;
  const body = (dry_run: boolean) => ({ path: "jobs/bulk", body: { action, filter, dry_run } });
  return (
    <>
      <Button
        small={small}
        kind={action === "retry" ? "plain" : "danger"}
        disabled={!may || look.isPending || refused !== undefined}
        title={refused}
        onClick={() => look.mutate(body(true), { onSuccess: (answer) => setFound(answer.matched) })}
      >
        {label}
      </Button>
      {found !== null && (
        <Ask
          title={`${label}: ${counted(found, "job")}`}
          verb={`${label} ${counted(found, "job")}`}
          danger={action !== "retry"}
          busy={act.isPending}
          disabled={found === 0}
          close={close}
          submit={() => act.mutate(body(false), { onSuccess: close })}
        >
          <p>
            {found === 0 ? "There is none" : counted(found, "job")} {what}.
            {action === "discard" &&
              " Discarded jobs are deleted, with their payloads and history. This cannot be undone."}
            {action === "cancel" && " Running ones are asked to stop."}
          </p>
        </Ask>
      )}
    </>
  );
}
