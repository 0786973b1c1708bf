/** An action on all jobs that match a filter: counts them, asks, then acts. */

import { useState } from "react";
import { api } from "../data/client";
import { useNow } from "../data/live";
import { type JobFilter, useAct, useMay } from "../data/queries";
import type { BulkAnswer } from "../data/types";
import { t } from "../language";
import { clock, duration } from "../words";
import { Reason, reasonIn } from "./actions";
import { Button } from "./basics";
import { Ask } from "./dialog";

export type BulkAction = "cancel" | "retry" | "discard";
const DONE = {
  cancel: "{n} {n:job|jobs} cancelled",
  retry: "{n} {n:job|jobs} queued again",
  discard: "{n} {n:job|jobs} discarded",
} as const;
const SECONDS = { s: 1, m: 60 };
type Unit = keyof typeof SECONDS;

export function BulkButton({
  action,
  filter,
  label,
  small,
  what = t("that match the filter"),
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
      ? t("{n} {n:job|jobs} queued again; the last one is due at {time}", {
          n: changed,
          time: clock(Date.parse(until)),
        })
      : t(DONE[action], { n: changed }),
  );
  const close = () => setFound(null);
  const refused = reasonAgainst(filter);
  const change =
    (dry_run: boolean, reason: string | null = null) =>
    () =>
      api.changeJobs({
        ...(action === "retry"
          ? { action, filter, dry_run, rate: most ? `${most}/${unit}` : null }
          : { action, filter, dry_run }),
        ...(reason && { reason }),
      });
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
          title={t("{action}: {n} {n:job|jobs}", { action: label, n: found })}
          verb={t("{action} {n} {n:job|jobs}", { action: label, n: found })}
          danger={action !== "retry"}
          busy={act.isPending}
          disabled={found === 0}
          close={close}
          submit={(data) => act.mutate(change(false, reasonIn(data).reason), { onSuccess: close })}
        >
          <p className="break-words">
            {found === 0
              ? t("No jobs {which}.", { which: what })
              : t("{n} {n:job|jobs} {which}.", { n: found, which: what })}
            {t(" ")}
            {action === "discard" &&
              t("Discarded jobs are deleted, with their payloads and history. This cannot be undone.")}
            {action === "cancel" && t("Running jobs are asked to stop.")}
          </p>
          {action === "retry" && found > 0 && (
            <Rate count={found} most={most} setMost={setMost} unit={unit} setUnit={setUnit} />
          )}
          {found > 0 && <Reason />}
        </Ask>
      )}
    </>
  );
}

function reasonAgainst(filter: JobFilter): string | undefined {
  if (Object.keys(filter).length === 0) return t("Set a filter first: this would affect all jobs");
  if (filter.payload || filter.waits_for_signal)
    return t("Jobs found by payload or by wait cannot be changed in bulk: select them in the list");
  return undefined;
}

/** How fast to retry: a service that has just recovered may not take all jobs at once. */
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
      <legend className="mb-1 text-xs font-medium text-muted">{t("Rate")}</legend>
      <div className="flex items-center gap-2">
        <span>{t("at most")}</span>
        <input
          type="number"
          min={1}
          step={1}
          className="field w-24"
          aria-label={t("Jobs at most")}
          placeholder={t("all")}
          value={most}
          onChange={(event) => setMost(event.target.value)}
        />
        <select
          className="field"
          aria-label={t("Per")}
          value={unit}
          onChange={(event) => setUnit(event.target.value as Unit)}
        >
          <option value="s">{t("per second")}</option>
          <option value="m">{t("per minute")}</option>
        </select>
      </div>
      <p className="text-xs text-muted" aria-live="polite">
        {Number(most) > 0
          ? t("This takes {time}, until {end}. You can close the page meanwhile.", {
              time: duration(takes),
              end: clock(now + takes * 1000),
            })
          : t("Leave empty to retry all at once.")}
      </p>
    </fieldset>
  );
}
