/** Breakers: their state, why, and the buttons that close or open one by hand. */

import { useState } from "react";
import type { BreakerView } from "shiftwork";
import { api } from "../data/client";
import { useAct, useBreakers, useMay, useWorkers } from "../data/queries";
import { rich, t, wordOf } from "../language";
import { Link, to } from "../router";
import { millis } from "../words";
import { READ_ONLY, Reason, reasonIn } from "./actions";
import { Badge, Button, Lasting, Panel, Time, type Tone } from "./basics";
import { Ask } from "./dialog";

const LOOK: Record<string, [Tone, string]> = {
  closed: ["ok", t("closed")],
  open: ["bad", t("open")],
  half_open: ["warn", t("half open")],
  "half-open": ["warn", t("half open")],
};

export function BreakerState({ breaker }: { breaker: BreakerView }) {
  const [tone, word] = LOOK[breaker.state] ?? ["plain", wordOf(breaker.state)];
  return <Badge tone={tone}>{word}</Badge>;
}

export const isTripped = (breaker: BreakerView) => breaker.state !== "closed";

/** An instant, which may be epoch seconds. */
export const atOf = (at: number | string | null) => (at === null ? null : new Date(millis(at)).toISOString());

/** Since when it is as it is, until when, and why. */
export function BreakerFacts({ breaker }: { breaker: BreakerView }) {
  return (
    <span className="min-w-0 text-sm break-words">
      {breaker.since !== null && <Lasting at={millis(breaker.since)} />}
      {breaker.until !== null && (
        <>
          {t(", ")}
          {rich("tries again {time}", { time: <Time at={atOf(breaker.until)} /> })}
        </>
      )}
      {isTripped(breaker) && breaker.failures > 0 && (
        <>
          {t(", ")}
          {t("{n} {n:failure|failures}", { n: breaker.failures })}
        </>
      )}
      {breaker.forced_by && (
        <>
          {t(", ")}
          {t("set by hand by {who}", { who: breaker.forced_by })}
        </>
      )}
      {breaker.reason && (
        <>
          {t(", ")}
          {breaker.reason}
        </>
      )}
    </span>
  );
}

export function BreakerActions({ breaker }: { breaker: BreakerView }) {
  const may = useMay();
  const [asking, setAsking] = useState<"close" | "open" | null>(null);
  const act = useAct(t("Done: breaker {name}", breaker));
  const title = may ? undefined : READ_ONLY;
  const close = () => setAsking(null);
  return (
    <>
      {isTripped(breaker) && (
        <Button
          small
          disabled={!may}
          title={title}
          aria-label={t("Close breaker {name}", breaker)}
          onClick={() => setAsking("close")}
        >
          {t("Close breaker")}
        </Button>
      )}
      {!breaker.forced_by && (
        <Button
          small
          kind="danger"
          disabled={!may}
          title={title}
          aria-label={t("Open breaker {name}", breaker)}
          onClick={() => setAsking("open")}
        >
          {t("Open breaker")}
        </Button>
      )}
      {asking && (
        <Ask
          title={asking === "close" ? t("Close breaker {name}?", breaker) : t("Open breaker {name}?", breaker)}
          verb={asking === "close" ? t("Close breaker") : t("Open breaker")}
          danger={asking === "open"}
          busy={act.isPending}
          close={close}
          submit={(data) => {
            const change = asking === "open" ? api.openBreaker : api.closeBreaker;
            act.mutate(() => change.call(api, breaker.name, reasonIn(data)), { onSuccess: close });
          }}
        >
          <p>
            {asking === "close"
              ? t("Its jobs start at once. If what it guards is still broken, it opens again after as many failures.")
              : t("Its jobs wait, on all nodes, until the breaker is closed by hand.")}
          </p>
          <Reason />
        </Ask>
      )}
    </>
  );
}

/** The breakers of a worker, or of the workers of a pool; of a pool, only those that hold jobs back. */
export function BreakersOf({ worker, pool }: { worker?: string; pool?: string }) {
  const breakers = useBreakers();
  const workers = useWorkers(pool !== undefined && Boolean(breakers.data?.breakers.some(isTripped)));
  const names = worker
    ? [worker]
    : (workers.data?.workers.filter((one) => one.pool === pool).map((one) => one.name) ?? []);
  const shown = (breakers.data?.breakers ?? []).filter(
    (one) => one.workers.some((name) => names.includes(name)) && (worker !== undefined || isTripped(one)),
  );
  if (shown.length === 0) return null;
  return (
    <Panel title={t("Breakers")} flush>
      <ul className="divide-y divide-line">
        {shown.map((breaker) => (
          <li key={breaker.name} className="flex flex-wrap items-center gap-x-3 gap-y-1.5 px-3 py-2 text-sm">
            <Link href={to(["breakers"], { breaker: breaker.name })}>{breaker.name}</Link>
            <BreakerState breaker={breaker} />
            <BreakerFacts breaker={breaker} />
            <span className="ml-auto flex gap-1.5">
              <BreakerActions breaker={breaker} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
