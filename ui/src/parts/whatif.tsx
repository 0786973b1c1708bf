/** What other bounds of a pool would have done in the last day: a form, and both courses side by side. */

import { type FormEvent, useState } from "react";
import { ApiError } from "../data/client";
import { type Tried, useWhatIf } from "../data/queries";
import { instants } from "../data/series";
import type { Pool, WhatIf as Result } from "../data/types";
import { rich, t } from "../language";
import { compact, count, duration } from "../words";
import { inZone } from "../zone";
import { Button, Empty, Failure, Loading, Panel } from "./basics";
import { Chart } from "./chart";
import { Labelled } from "./dialog";

const CONFLICT = 409;

export function WhatIf({ pool }: { pool: Pool }) {
  const [tried, setTried] = useState<Tried | null>(null);
  const answer = useWhatIf(pool.name, tried);
  return (
    <Panel title={t("What would these bounds have done yesterday?")}>
      <Form pool={pool} busy={answer.isFetching} submit={setTried} />
      {tried === null ? (
        <p className="mt-3 text-sm text-muted">
          {t(
            "The last 24 hours are simulated with other bounds: the same jobs, by the rules that scale the pool. Nothing is changed.",
          )}
        </p>
      ) : answer.data ? (
        <Outcome result={answer.data} />
      ) : answer.error ? (
        <Refusal error={answer.error} again={() => answer.refetch()} />
      ) : (
        <Loading rows={4} />
      )}
    </Panel>
  );
}

function Form({ pool, busy, submit }: { pool: Pool; busy: boolean; submit: (tried: Tried) => void }) {
  const [min, setMin] = useState(String(pool.min_workers ?? 1));
  const [max, setMax] = useState(String(pool.max_workers ?? 10));
  const [threshold, setThreshold] = useState("");
  const crossed = min !== "" && max !== "" && Number(min) > Number(max);
  const send = (event: FormEvent) => {
    event.preventDefault();
    submit({ min: Number(min), max: Number(max), scale_up_threshold: threshold === "" ? null : Number(threshold) });
  };
  const field = { type: "number", className: "field w-28", max: 10_000 };
  return (
    <form onSubmit={send} className="flex flex-wrap items-end gap-3 text-sm">
      <Labelled label={t("At least")}>
        <input {...field} min={0} required value={min} onChange={(event) => setMin(event.target.value)} />
      </Labelled>
      <Labelled label={t("At most")}>
        <input {...field} min={1} required value={max} onChange={(event) => setMax(event.target.value)} />
      </Labelled>
      <Labelled label="scale_up_threshold">
        <input
          {...field}
          min={1}
          placeholder={t("as it is")}
          value={threshold}
          onChange={(event) => setThreshold(event.target.value)}
        />
      </Labelled>
      <Button type="submit" kind="primary" disabled={busy || crossed}>
        {busy ? t("Simulating…") : t("Simulate")}
      </Button>
      {crossed && <p className="pb-1.5 text-bad">{t("The minimum is above the maximum.")}</p>}
    </form>
  );
}

function Refusal({ error, again }: { error: Error; again: () => void }) {
  if (error instanceof ApiError && error.status === CONFLICT)
    return <Empty title={t("Yesterday cannot be simulated")}>{inZone(error.message)}</Empty>;
  return <Failure error={error} again={again} />;
}

function Outcome({ result }: { result: Result }) {
  const { real, simulated, tried } = result;
  const at = instants(result);
  const lines = (kind: "slots" | "queued", ink: string) => [
    { name: t("as it was"), ink: "series-7", values: real[kind], dash: true, step: kind === "slots" },
    {
      name: t("with {min} to {max} slots", tried),
      ink,
      values: simulated[kind],
      step: kind === "slots",
      fill: kind === "queued",
    },
  ];
  return (
    <div className="mt-3 flex flex-col gap-3">
      <p role="status" className="text-sm">
        {rich(
          "With {min} to {max} slots, the {n} {n:job|jobs} of the last 24 hours would have taken {hours} instead of {before}, in {steps} scaling {steps:step|steps}.",
          {
            min: tried.min,
            max: tried.max,
            n: result.jobs,
            hours: <strong>{hours(simulated.slot_hours)}</strong>,
            before: hours(real.slot_hours) + change(simulated.slot_hours, real.slot_hours),
            steps: result.scaling_steps,
          },
        )}
      </p>
      {result.notes.map((note) => (
        <p key={note} className="text-sm text-warn">
          {inZone(note)}
        </p>
      ))}
      <Comparison result={result} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Chart
          label={t("Slots")}
          steps="whole"
          at={at}
          format={compact}
          height={170}
          lines={lines("slots", "series-1")}
        />
        <Chart
          label={t("Jobs waiting")}
          steps="whole"
          at={at}
          format={compact}
          height={170}
          lines={lines("queued", "series-2")}
        />
      </div>
    </div>
  );
}

function Comparison({ result: { real, simulated, tried } }: { result: Result }) {
  const rows: [string, string, string][] = [
    [t("95 % waited less than"), duration(real.waits.p95), duration(simulated.waits.p95)],
    [t("99 % waited less than"), duration(real.waits.p99), duration(simulated.waits.p99)],
    [t("Most jobs waiting"), count(real.most_queued), count(simulated.most_queued)],
    [t("Most slots"), compact(real.most_slots), compact(simulated.most_slots)],
    [t("Slot-hours"), compact(real.slot_hours), compact(simulated.slot_hours)],
  ];
  return (
    <div className="overflow-x-auto">
      <table className="text-sm">
        <caption className="sr-only">{t("The last 24 hours, as they were and as they would have been")}</caption>
        <thead>
          <tr className="text-left text-xs text-muted">
            <td />
            <th scope="col" className="px-4 py-1 text-right font-medium">
              {t("As it was")}
            </th>
            <th scope="col" className="py-1 text-right font-medium">
              {t("With {min} to {max}", tried)}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, was, would]) => (
            <tr key={name} className="border-t border-line">
              <th scope="row" className="py-1 text-left font-normal text-muted">
                {name}
              </th>
              <td className="px-4 py-1 text-right">{was}</td>
              <td className="py-1 text-right font-medium">{would}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const hours = (n: number) => t("{n} slot-hours", { n: compact(n) });

/** How much more or less, where that can be said in percent. */
function change(after: number, before: number): string {
  const share = before > 0 ? Math.round((100 * (after - before)) / before) : 0;
  if (share === 0) return "";
  return share < 0 ? t(" ({n} % less)", { n: -share }) : t(" ({n} % more)", { n: share });
}
