/** Actions on pools, workers and nodes: a button each, with a dialog where one is needed. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay, useWorker } from "../data/queries";
import type { Node, Payload, Pool, Triggered, Worker, WorkerDetail } from "../data/types";
import { rich, t } from "../language";
import { go, Link, to } from "../router";
import { inZone } from "../zone";
import { Button, Loading } from "./basics";
import { Ask, Labelled } from "./dialog";
import { PayloadForm } from "./form";

/** The tooltip of disabled buttons. */
export const READ_ONLY = t("Your token may only read");

export function Reason({ label = t("Reason, for the audit log") }: { label?: string }) {
  return (
    <Labelled label={label}>
      <input name="reason" className="field" autoComplete="off" />
    </Labelled>
  );
}

export const reasonIn = (data: FormData) => ({ reason: String(data.get("reason") ?? "").trim() || null });

function useOpen() {
  const [open, setOpen] = useState(false);
  return { open, show: () => setOpen(true), hide: () => setOpen(false) };
}

export function PoolActions({ pool, small }: { pool: Pool; small?: boolean }) {
  const may = useMay();
  const pausing = useOpen();
  const bounding = useOpen();
  const act = useAct(t("Done: pool {name}", pool));
  const title = may ? undefined : READ_ONLY;
  const close = () => {
    pausing.hide();
    bounding.hide();
  };
  return (
    <>
      {pool.paused ? (
        <Button small={small} disabled={!may} title={title} onClick={() => act.mutate(() => api.resumePool(pool.name))}>
          {t("Resume")}
        </Button>
      ) : (
        <Button small={small} disabled={!may} title={title} onClick={pausing.show}>
          {small ? t("Pause") : t("Pause and drain")}
        </Button>
      )}
      <Button small={small} disabled={!may || pool.kind === null} title={title} onClick={bounding.show}>
        {t("Bounds")}
      </Button>
      {pausing.open && (
        <Ask
          title={t("Pause pool {name}?", pool)}
          verb={t("Pause")}
          busy={act.isPending}
          close={close}
          submit={(data) => act.mutate(() => api.pausePool(pool.name, reasonIn(data)), { onSuccess: close })}
        >
          <p>
            {t(
              "No more jobs start, on any node. Running jobs continue, and the pool shows when the last one has ended; queued jobs wait.",
            )}
          </p>
          <Reason />
        </Ask>
      )}
      {bounding.open && <Bounds pool={pool} close={close} act={act} />}
    </>
  );
}

function Bounds({ pool, close, act }: { pool: Pool; close: () => void; act: ReturnType<typeof useAct> }) {
  const [min, setMin] = useState(String(pool.min_workers ?? ""));
  const [max, setMax] = useState(String(pool.max_workers ?? ""));
  const crossed = min !== "" && max !== "" && Number(min) > Number(max);
  const send = (body: { min: number | null; max: number | null }) =>
    act.mutate(() => api.boundPool(pool.name, body), { onSuccess: close });
  return (
    <Ask
      title={t("Slots of pool {name}", pool)}
      verb={t("Set bounds")}
      busy={act.isPending}
      disabled={crossed}
      close={close}
      submit={() => send({ min: min === "" ? null : Number(min), max: max === "" ? null : Number(max) })}
    >
      <p>{t("The bounds hold for all nodes together, and are kept through restarts until they are reset.")}</p>
      <div className="grid grid-cols-2 gap-3">
        <Labelled label={t("At least")}>
          <input type="number" min={0} className="field" value={min} onChange={(event) => setMin(event.target.value)} />
        </Labelled>
        <Labelled label={t("At most")}>
          <input type="number" min={1} className="field" value={max} onChange={(event) => setMax(event.target.value)} />
        </Labelled>
      </div>
      {crossed && <p className="text-bad">{t("The minimum is above the maximum.")}</p>}
      {pool.bounds_changed && (
        <Button className="self-start" onClick={() => send({ min: null, max: null })}>
          {t("Reset to the app's own bounds")}
        </Button>
      )}
    </Ask>
  );
}

export function WorkerActions({ worker, small }: { worker: Worker; small?: boolean }) {
  const may = useMay();
  const disabling = useOpen();
  const triggering = useOpen();
  const forgetting = useOpen();
  const act = useAct(t("Done: {name}", worker));
  const title = may ? undefined : READ_ONLY;
  return (
    <>
      {worker.mode !== "continuous" && (
        <Button
          small={small}
          kind={small ? "plain" : "primary"}
          disabled={!may || !worker.enabled}
          title={worker.enabled ? title : t("The worker is disabled: enable it first")}
          aria-label={small ? t("Trigger {name}", worker) : undefined}
          onClick={triggering.show}
        >
          {t("Trigger")}
        </Button>
      )}
      {worker.enabled ? (
        <Button
          small={small}
          disabled={!may}
          title={title}
          aria-label={small ? t("Disable {name}", worker) : undefined}
          onClick={disabling.show}
        >
          {t("Disable")}
        </Button>
      ) : (
        <Button
          small={small}
          disabled={!may}
          title={title}
          aria-label={small ? t("Enable {name}", worker) : undefined}
          onClick={() => act.mutate(() => api.enableWorker(worker.name))}
        >
          {t("Enable")}
        </Button>
      )}
      {disabling.open && (
        <Ask
          title={t("Disable {name}?", worker)}
          verb={t("Disable")}
          busy={act.isPending}
          close={disabling.hide}
          submit={(data) =>
            act.mutate(() => api.disableWorker(worker.name, reasonIn(data)), { onSuccess: disabling.hide })
          }
        >
          <p>{t("Its schedule stops; running jobs continue; queued jobs wait until it is enabled again.")}</p>
          <Reason />
        </Ask>
      )}
      {!worker.known && (
        <Button
          small={small}
          kind="danger"
          disabled={!may}
          title={title}
          aria-label={small ? t("Forget {name}", worker) : undefined}
          onClick={forgetting.show}
        >
          {t("Forget")}
        </Button>
      )}
      {triggering.open && <Trigger name={worker.name} close={triggering.hide} />}
      {forgetting.open && <Forget worker={worker} close={forgetting.hide} />}
    </>
  );
}

function Forget({ worker, close }: { worker: Worker; close: () => void }) {
  const act = useAct(t("Forgot {name}", worker));
  const live = worker.queued + worker.scheduled + worker.waiting + worker.retrying + worker.running;
  const forgotten = () => {
    close();
    go(to(["workers"]));
  };
  return (
    <Ask
      title={t("Forget {name}?", worker)}
      verb={t("Forget")}
      danger
      busy={act.isPending}
      disabled={live > 0}
      close={close}
      submit={() => act.mutate(() => api.forgetWorker(worker.name), { onSuccess: forgotten })}
    >
      <p>
        {t(
          "Its definition is deleted, with its state and how far its schedule has fired. Its ended jobs stay. This cannot be undone.",
        )}
      </p>
      {live > 0 && (
        <p className="text-bad">
          {rich("{n} {n:job|jobs} of it {n:has|have} not ended: {cancel}.", {
            n: live,
            cancel: (
              <Link href={to(["jobs"], { worker: worker.name })}>{t("cancel {n:it|them} first", { n: live })}</Link>
            ),
          })}
        </p>
      )}
    </Ask>
  );
}

function Trigger({ name, close }: { name: string; close: () => void }) {
  const worker = useWorker(name);
  if (worker.data) return <TriggerForm worker={worker.data} close={close} />;
  return (
    <Ask title={t("Trigger {name}", { name })} verb={t("Run now")} disabled close={close} submit={() => {}}>
      {worker.error ? <p className="text-bad">{inZone(worker.error.message)}</p> : <Loading rows={3} />}
    </Ask>
  );
}

function TriggerForm({ worker, close }: { worker: WorkerDetail; close: () => void }) {
  const [payload, setPayload] = useState<unknown>(undefined);
  const act = useAct<Triggered>(t("Triggered {name}", worker));
  const done = ({ job }: Triggered) => {
    close();
    go(to(["jobs", job.id]));
  };
  return (
    <Ask
      title={t("Trigger {name}", worker)}
      verb={t("Run now")}
      busy={act.isPending}
      close={close}
      submit={() =>
        act.mutate(() => api.triggerWorker(worker.name, { payload: (payload ?? {}) as Payload }), { onSuccess: done })
      }
    >
      <PayloadForm
        schema={worker.payload_schema ?? (worker.mode === "triggered" ? null : { type: "object" })}
        change={setPayload}
      />
    </Ask>
  );
}

export function NodeActions({ node }: { node: Node }) {
  const may = useMay();
  const draining = useOpen();
  const act = useAct(t("Done: {name}", node));
  const title = may ? undefined : READ_ONLY;
  if (node.drained_at) {
    return (
      <Button small disabled={!may} title={title} onClick={() => act.mutate(() => api.undrainNode(node.name))}>
        {t("Undo drain")}
      </Button>
    );
  }
  return (
    <>
      <Button small disabled={!may || node.status === "stopping"} title={title} onClick={draining.show}>
        {t("Drain")}
      </Button>
      {draining.open && (
        <Ask
          title={t("Drain {name}?", node)}
          verb={t("Drain")}
          busy={act.isPending}
          close={draining.hide}
          submit={(data) => act.mutate(() => api.drainNode(node.name, reasonIn(data)), { onSuccess: draining.hide })}
        >
          <p>{t("Its processes finish their running jobs and exit; other nodes take over.")}</p>
          <Reason />
        </Ask>
      )}
    </>
  );
}
