/** Actions on one job. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay, useWorker } from "../data/queries";
import type { Job, Payload, Status } from "../data/types";
import { t } from "../language";
import { go, to } from "../router";
import { Button, Loading } from "./basics";
import { Ask } from "./dialog";
import { PayloadForm } from "./form";
import { SendButton } from "./send";
import { StackButton } from "./stack";

export const ENDED: Status[] = ["completed", "dead", "cancelled"];

export function JobActions({ job, waitsFor = null }: { job: Job; waitsFor?: string | null }) {
  const may = useMay();
  const [asking, setAsking] = useState<"edit" | "discard" | null>(null);
  const act = useAct(t("Done: job {id}", { id: job.id.slice(0, 13) }));
  const ended = ENDED.includes(job.status);
  const again = job.status === "dead" || job.status === "cancelled" || job.status === "failed";
  const close = () => setAsking(null);
  return (
    <>
      {job.status === "processing" && <StackButton id={job.id} />}
      {waitsFor && <SendButton id={job.id} name={waitsFor} />}
      {again && (
        <Button kind="primary" disabled={!may || act.isPending} onClick={() => act.mutate(() => api.retryJob(job.id))}>
          {t("Retry")}
        </Button>
      )}
      {again && (
        <Button disabled={!may} onClick={() => setAsking("edit")}>
          {t("Edit and retry")}
        </Button>
      )}
      {!ended && (
        <Button
          kind="danger"
          disabled={!may || job.cancelling || act.isPending}
          onClick={() => act.mutate(() => api.cancelJob(job.id))}
        >
          {job.cancelling ? t("Cancelling") : t("Cancel")}
        </Button>
      )}
      {ended && (
        <Button kind="danger" disabled={!may} onClick={() => setAsking("discard")}>
          {t("Discard")}
        </Button>
      )}
      {asking === "edit" && <EditAndRetry job={job} close={close} />}
      {asking === "discard" && (
        <Ask
          title={t("Discard this job?")}
          verb={t("Discard")}
          danger
          busy={act.isPending}
          close={close}
          submit={() => act.mutate(() => api.discardJob(job.id), { onSuccess: () => go(to(["jobs"])) })}
        >
          <p>{t("The job is deleted, with its payload and history. This cannot be undone.")}</p>
        </Ask>
      )}
    </>
  );
}

export function EditAndRetry({ job, close }: { job: Job; close: () => void }) {
  const worker = useWorker(job.worker);
  const [payload, setPayload] = useState<unknown>(job.payload);
  const act = useAct(t("Queued again with its new payload"));
  return (
    <Ask
      title={t("Edit and retry a job of {worker}", job)}
      verb={t("Retry")}
      wide
      busy={act.isPending}
      disabled={worker.isPending}
      close={close}
      submit={() => act.mutate(() => api.retryJob(job.id, { payload: payload as Payload }), { onSuccess: close })}
    >
      {worker.isPending ? (
        <Loading rows={3} />
      ) : (
        <PayloadForm schema={worker.data?.payload_schema ?? null} start={job.payload} change={setPayload} />
      )}
    </Ask>
  );
}
