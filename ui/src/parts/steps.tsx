/** The steps of a durable function, and the signals that were sent to it. */

import type { Step, WholeJob } from "../data/types";
import { rich, t } from "../language";
import { duration, span } from "../words";
import { Badge, Panel, Time } from "./basics";
import { Json } from "./json";

const SIGNS: Record<Step["kind"], string> = {
  step: "✓",
  failed: "✗",
  sleep: "◷",
  wait: "◌",
  signal: "⚑",
  timeout: "⌛",
};

/** The most names of signals that are listed. */
const MOST_NAMES = 20;

export function Steps({ job }: { job: WholeJob }) {
  const unused = job.signals.length;
  return (
    <Panel title={t("Steps")} flush>
      {job.steps.length < job.step_count && (
        <p className="px-3 py-2 text-xs text-muted">
          {t("The newest {shown} of {n} steps", { shown: job.steps.length, n: job.step_count })}
        </p>
      )}
      <ol className="divide-y divide-line" aria-label={t("Steps")}>
        {job.steps.map((step) => (
          <li key={step.number} className="px-3 py-2 text-sm">
            <StepRow step={step} />
          </li>
        ))}
      </ol>
      {unused > 0 && (
        <p className="px-3 py-2 text-xs text-muted">
          {t("{n} {n:signal|signals} sent that the function has not waited for: {names}", {
            n: unused,
            names: [...new Set(job.signals.map((signal) => signal.name))].slice(0, MOST_NAMES).join(t(", ")),
          })}
        </p>
      )}
    </Panel>
  );
}

function StepRow({ step }: { step: Step }) {
  const head = (
    <>
      <span aria-hidden="true" className="w-4 text-center text-muted">
        {SIGNS[step.kind]}
      </span>
      <span className="font-medium">{step.name}</span>
      {step.until_at ? (
        <span className="text-xs text-muted">{rich("ends {time}", { time: <Time at={step.until_at} /> })}</span>
      ) : (
        <span className="text-xs text-muted">
          <Time at={step.ended_at} />
          {(step.kind === "step" || step.kind === "failed") &&
            t(", ") + duration(span(step.started_at, step.ended_at, Date.now()))}
        </span>
      )}
      {step.kind === "signal" && <Badge tone="ok">{t("signal")}</Badge>}
      {step.kind === "failed" && <Badge tone="bad">{t("failed")}</Badge>}
      {step.kind === "timeout" && <Badge tone="warn">{t("timed out")}</Badge>}
    </>
  );
  if (step.result === null) return <div className="flex flex-wrap items-center gap-2">{head}</div>;
  return (
    <details>
      <summary className="flex flex-wrap items-center gap-2">{head}</summary>
      <Json value={step.result} label={t("result of {name}", step)} />
    </details>
  );
}
