/** An action on all jobs that match a filter: counts them, asks, then acts. */

import { useState } from "react";
import { api } from "../data/client";
import { useNow } from "../data/live";
import { type JobFilter, useAct, useMay } from "../data/queries";
import type { BulkAnswer } from "../data/types";
import { clock, counted, duration } from "../words";
import { Button } from "./basics";
import { Ask } from "./dialog";

export type BulkAction = "cancel" | "retry" | "discard";
const DONE = { cancel: "cancelled", retry: "requeued", discard: "discarded" };
const SECONDS = { s: 1, m: 60 };
type Unit = keyof typeof SECONDS;

export function BulkButton({
  action,
  filter,
  label,
  small,
  what = "that match the filter",
}: {
  action: BulkAction;
  filter: JobFilter;
  label: string;
  small?: boolean;
  what?: string;
}) {
  const may = useMay();
  const [found, setFound] = useState<number | null>(null);
  const [most, setMost] = useState("");
  const [unit, setUnit] = useState<Unit>("s");
  const look = useAct<BulkAnswer>(null);
  const act = useAct<BulkAnswer>(({ changed, until }) =>
    until
      ? `${counted(changed, "job")} requeued; the last one is due at ${clock(Date.parse(until))}`
      : `${counted(changed, "job")} ${DONE[action]}`,
  );
  const close = () => setFound(null);
  const refused = reasonAgainst(filter);
  const change = (dry_run: boolean) => () =>
    api.changeJobs(
      action === "retry"
        ? { action, filter, dry_run, rate: most ? `${most}/${unit}` : null }
        : { action, filter, dry_run },
    );
  return (
    <>
      <Button
        small={small}
        kind={action === "retry" ? "plain" : "danger"}
        disabled={!may || look.isPending || refused !== undefined}
        title={refused}
        onClick={() => look.mutate(change(true), { onSuccess: (answer) => setFound(answer.matched) })}
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
          submit={() => act.mutate(change(false), { onSuccess: close })}
        >
          <p className="break-words">
            {found === 0 ? "No jobs" : counted(found, "job")} {what}.
            {action === "discard" &&
              " Discarded jobs are deleted, with their payloads and history. This cannot be undone."}
            {action === "cancel" && " Running jobs are asked to stop."}
          </p>
          {action === "retry" && found > 0 && (
            <Rate count={found} most={most} setMost={setMost} unit={unit} setUnit={setUnit} />
          )}
        </Ask>
      )}
    </>
  );
}

function reasonAgainst(filter: JobFilter): string | undefined {
  if (Object.keys(filter).length === 0) return "Set a filter first: this would affect all jobs";
  if (filter.payload) return "Jobs found by payload cannot be changed in bulk: select them in the list";
  return undefined;
}

/** How fast to requeue: a service that has just recovered may not take all jobs at once. */
function Rate({
  count,
  most,
  setMost,
  unit,
  setUnit,
}: {
  count: number;
  most: string;
  setMost: (most: string) => void;
  unit: Unit;
  setUnit: (unit: Unit) => void;
}) {
  const now = useNow();
  const takes = most ? ((count - 1) * SECONDS[unit]) / Number(most) : 0;
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-xs font-medium text-muted">Rate</legend>
      <div className="flex items-center gap-2">
        <span>at most</span>
        <input
          type="number"
          min={1}
          step={1}
          className="field w-24"
          aria-label="Jobs at most"
          placeholder="all"
          value={most}
          onChange={(event) => setMost(event.target.value)}
        />
        <select
          className="field"
          aria-label="Per"
          value={unit}
          onChange={(event) => setUnit(event.target.value as Unit)}
        >
          <option value="s">per second</option>
          <option value="m">per minute</option>
        </select>
      </div>
      <p className="text-xs text-muted" aria-live="polite">
        {Number(most) > 0
          ? `This takes ${duration(takes)}, until ${clock(now + takes * 1000)}. You can close the page meanwhile.`
          : "Leave empty to requeue all at once."}
      </p>
    </fieldset>
  );
}
