/** Actions on pools, workers and nodes: a button each, with a dialog where one is needed. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay, useWorker } from "../data/queries";
import type { Node, Payload, Pool, Triggered, Worker, WorkerDetail } from "../data/types";
import { go, Link, to } from "../router";
import { counted } from "../words";
import { Button, Loading } from "./basics";
import { Ask, Labelled } from "./dialog";
import { PayloadForm } from "./form";

/** The tooltip of disabled buttons. */
export const READ_ONLY = "Your token may only read";

function Reason({ label = "Reason, for the audit log" }: { label?: string }) {
  return (
    <Labelled label={label}>
      <input name="reason" className="field" autoComplete="off" />
    </Labelled>
  );
}

const reasonIn = (data: FormData) => ({ reason: String(data.get("reason") ?? "").trim() || null });

function useOpen() {
  const [open, setOpen] = useState(false);
  return { open, show: () => setOpen(true), hide: () => setOpen(false) };
}

export function PoolActions({ pool, small }: { pool: Pool; small?: boolean }) {
  const may = useMay();
  const pausing = useOpen();
  const bounding = useOpen();
  const act = useAct(`Done: pool ${pool.name}`);
  const title = may ? undefined : READ_ONLY;
  const close = () => {
    pausing.hide();
    bounding.hide();
  };
  return (
    <>
      {pool.paused ? (
        <Button small={small} disabled={!may} title={title} onClick={() => act.mutate(() => api.resumePool(pool.name))}>
          Resume
        </Button>
      ) : (
        <Button small={small} disabled={!may} title={title} onClick={pausing.show}>
          {small ? "Pause" : "Pause and drain"}
        </Button>
      )}
      <Button small={small} disabled={!may || pool.kind === null} title={title} onClick={bounding.show}>
        Bounds
      </Button>
      {pausing.open && (
        <Ask
          title={`Pause pool ${pool.name}?`}
          verb="Pause"
          busy={act.isPending}
          close={close}
          submit={(data) => act.mutate(() => api.pausePool(pool.name, reasonIn(data)), { onSuccess: close })}
        >
          <p>
            No more jobs start, on any node. Running jobs continue, and the pool shows when the last one has ended;
            queued jobs wait.
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
      title={`Slots of pool ${pool.name}`}
      verb="Set bounds"
      busy={act.isPending}
      disabled={crossed}
      close={close}
      submit={() => send({ min: min === "" ? null : Number(min), max: max === "" ? null : Number(max) })}
    >
      <p>The bounds hold for all nodes together, and are kept through restarts until they are reset.</p>
      <div className="grid grid-cols-2 gap-3">
        <Labelled label="At least">
          <input type="number" min={0} className="field" value={min} onChange={(event) => setMin(event.target.value)} />
        </Labelled>
        <Labelled label="At most">
          <input type="number" min={1} className="field" value={max} onChange={(event) => setMax(event.target.value)} />
        </Labelled>
      </div>
      {crossed && <p className="text-bad">The minimum is above the maximum.</p>}
      {pool.bounds_changed && (
        <Button className="self-start" onClick={() => send({ min: null, max: null })}>
          Reset to the app's own bounds
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
  const act = useAct(`Done: ${worker.name}`);
  const title = may ? undefined : READ_ONLY;
  return (
    <>
      {worker.mode !== "continuous" && (
        <Button
          small={small}
          kind={small ? "plain" : "primary"}
          disabled={!may || !worker.enabled}
          title={worker.enabled ? title : "The worker is disabled: enable it first"}
          aria-label={small ? `Trigger ${worker.name}` : undefined}
          onClick={triggering.show}
        >
          Trigger
        </Button>
      )}
      {worker.enabled ? (
        <Button
          small={small}
          disabled={!may}
          title={title}
          aria-label={small ? `Disable ${worker.name}` : undefined}
          onClick={disabling.show}
        >
          Disable
        </Button>
      ) : (
        <Button
          small={small}
          disabled={!may}
          title={title}
          aria-label={small ? `Enable ${worker.name}` : undefined}
          onClick={() => act.mutate(() => api.enableWorker(worker.name))}
        >
          Enable
        </Button>
      )}
      {disabling.open && (
        <Ask
          title={`Disable ${worker.name}?`}
          verb="Disable"
          busy={act.isPending}
          close={disabling.hide}
          submit={(data) =>
            act.mutate(() => api.disableWorker(worker.name, reasonIn(data)), { onSuccess: disabling.hide })
          }
        >
          <p>Its schedule stops; running jobs continue; queued jobs wait until it is enabled again.</p>
          <Reason />
        </Ask>
      )}
      {!worker.known && (
        <Button
          small={small}
          kind="danger"
          disabled={!may}
          title={title}
          aria-label={small ? `Forget ${worker.name}` : undefined}
          onClick={forgetting.show}
        >
          Forget
        </Button>
      )}
      {triggering.open && <Trigger name={worker.name} close={triggering.hide} />}
      {forgetting.open && <Forget worker={worker} close={forgetting.hide} />}
    </>
  );
}

function Forget({ worker, close }: { worker: Worker; close: () => void }) {
  const act = useAct(`Forgot ${worker.name}`);
  const live = worker.queued + worker.scheduled + worker.waiting + worker.retrying + worker.running;
  const forgotten = () => {
    close();
    go(to(["workers"]));
  };
  return (
    <Ask
      title={`Forget ${worker.name}?`}
      verb="Forget"
      danger
      busy={act.isPending}
      disabled={live > 0}
      close={close}
      submit={() => act.mutate(() => api.forgetWorker(worker.name), { onSuccess: forgotten })}
    >
      <p>
        Its definition is deleted, with its state and how far its schedule has fired. Its ended jobs stay. This cannot
        be undone.
      </p>
      {live > 0 && (
        <p className="text-bad">
          {counted(live, "job")} of it {live === 1 ? "has" : "have"} not ended:{" "}
          <Link href={to(["jobs"], { worker: worker.name })}>cancel {live === 1 ? "it" : "them"} first</Link>.
        </p>
      )}
    </Ask>
  );
}

function Trigger({ name, close }: { name: string; close: () => void }) {
  const worker = useWorker(name);
  if (worker.data) return <TriggerForm worker={worker.data} close={close} />;
  return (
    <Ask title={`Trigger ${name}`} verb="Run now" disabled close={close} submit={() => {}}>
      {worker.error ? <p className="text-bad">{worker.error.message}</p> : <Loading rows={3} />}
    </Ask>
  );
}

function TriggerForm({ worker, close }: { worker: WorkerDetail; close: () => void }) {
  const [payload, setPayload] = useState<unknown>(undefined);
  const act = useAct<Triggered>(`Triggered ${worker.name}`);
  const done = ({ job }: Triggered) => {
    close();
    go(to(["jobs", job.id]));
  };
  return (
    <Ask
      title={`Trigger ${worker.name}`}
      verb="Run now"
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
  const act = useAct(`Done: ${node.name}`);
  const title = may ? undefined : READ_ONLY;
  if (node.drained_at) {
    return (
      <Button small disabled={!may} title={title} onClick={() => act.mutate(() => api.undrainNode(node.name))}>
        Undo drain
      </Button>
    );
  }
  return (
    <>
      <Button small disabled={!may || node.status === "stopping"} title={title} onClick={draining.show}>
        Drain
      </Button>
      {draining.open && (
        <Ask
          title={`Drain ${node.name}?`}
          verb="Drain"
          busy={act.isPending}
          close={draining.hide}
          submit={(data) => act.mutate(() => api.drainNode(node.name, reasonIn(data)), { onSuccess: draining.hide })}
        >
          <p>Its processes finish their running jobs and exit; other nodes take over.</p>
          <Reason />
        </Ask>
      )}
    </>
  );
}
