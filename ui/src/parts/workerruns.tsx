/** A worker over time: run times, throughput, and its errors by group. */

import { useMemo } from "react";
import { ApiError } from "../data/client";
import { useWorkerRuns } from "../data/queries";
import type { WorkerRuns as Runs, WorkerMinute } from "../data/types";
import { t } from "../language";
import { Link, to } from "../router";
import { compact, count, duration, millis, percent } from "../words";
import { Answer, Empty, Panel, Stat, Time } from "./basics";
import { atOf } from "./breakers";
import { Chart } from "./chart";

const NOT_FOUND = 404;
const MINUTE = 60;
const HOUR = 3_600;

export function WorkerRuns({ name }: { name: string }) {
  const runs = useWorkerRuns(name);
  if (runs.error instanceof ApiError && runs.error.status === NOT_FOUND)
    return (
      <Panel title={t("Run times and throughput")}>
        <p className="text-sm text-muted">
          {t("This server does not keep the run times of workers. Update it to see them.")}
        </p>
      </Panel>
    );
  return <Answer of={runs}>{(seen) => <Seen name={name} runs={seen} />}</Answer>;
}

function Seen({ name, runs }: { name: string; runs: Runs }) {
  const ended = runs.completed + runs.failed;
  const first = runs.minutes[0];
  const minutes = first ? Math.max(1, (Date.now() - millis(first.at)) / 60_000 + 1) : 0;
  return (
    <>
      <div className="grid grid-cols-2 gap-3 sm:grid-cols-4">
        <Stat
          label={t("Run time")}
          value={duration(runs.p50)}
          note={t("half took less; 95 % less than {time}", { time: duration(runs.p95) })}
        />
        <Stat label={t("Longest run")} value={duration(runs.longest)} note={t("in the last hour")} />
        <Stat
          label={t("Throughput")}
          value={minutes ? t("{n} /min", { n: compact(runs.completed / minutes) }) : "–"}
          note={t("{n} {n:attempt|attempts} completed", { n: runs.completed })}
        />
        <Stat
          label={t("Failed")}
          value={count(runs.failed)}
          tone={runs.failed ? "bad" : undefined}
          note={ended ? t("{share} of the attempts", { share: percent(runs.failed / ended) }) : t("no attempts yet")}
        />
      </div>
      <div className="grid gap-3 lg:grid-cols-2">
        <Panel>
          <Drawn runs={runs} />
        </Panel>
        <Panel title={t("Errors")} flush>
          <Errors name={name} runs={runs} />
        </Panel>
      </div>
    </>
  );
}

function Drawn({ runs }: { runs: Runs }) {
  const [at, lines, times] = useMemo(() => {
    const minutes = everyMinute(runs.minutes);
    const known = minutes.some((one) => one.p50 != null || one.p95 != null);
    return [
      minutes.map((one) => millis(one.at) / 1_000),
      [
        { name: t("completed"), ink: "ok-fill", fill: true, values: minutes.map((one) => one.completed / MINUTE) },
        { name: t("failed"), ink: "bad-fill", values: minutes.map((one) => one.failed / MINUTE) },
      ],
      known
        ? [
            {
              name: t("half less than"),
              ink: "series-1",
              values: minutes.map((one) => one.p50 ?? null),
              through: true,
            },
            {
              name: t("95 % less than"),
              ink: "series-4",
              values: minutes.map((one) => one.p95 ?? null),
              through: true,
            },
          ]
        : null,
    ];
  }, [runs]);
  if (at.length < 2) return <Empty title={t("No history yet")}>{t("It starts with the first runs.")}</Empty>;
  return (
    <div className="flex flex-col gap-4">
      <Chart label={t("Ended attempts per second")} at={at} span={HOUR} lines={lines} format={compact} height={130} />
      {times && (
        <Chart label={t("Run time")} steps="time" at={at} span={HOUR} lines={times} format={duration} height={130} />
      )}
    </div>
  );
}

/** The minutes with those in which nothing ended. */
function everyMinute(known: WorkerMinute[]): WorkerMinute[] {
  const at = new Map(known.map((one) => [Math.round(millis(one.at) / 60_000), one]));
  const [first, last] = [Math.min(...at.keys()), Math.max(...at.keys())];
  return Array.from({ length: known.length ? last - first + 1 : 0 }, (_, place) => {
    const minute = first + place;
    const instant = new Date(minute * 60_000).toISOString();
    return at.get(minute) ?? { at: instant, completed: 0, failed: 0, p50: null, p95: null, longest: null };
  });
}

function Errors({ name, runs }: { name: string; runs: Runs }) {
  if (runs.errors.length === 0 && runs.failed > 0)
    return (
      <Empty title={t("No failed jobs are left")}>
        {t("The jobs of the failed attempts wait to run again, or have run since.")}
      </Empty>
    );
  if (runs.errors.length === 0)
    return <Empty title={t("No errors")}>{t("Errors of failed attempts appear here, by group.")}</Empty>;
  return (
    <ul className="max-h-80 divide-y divide-line overflow-y-auto" tabIndex={0} aria-label={t("Errors")}>
      {runs.errors.map((one) => (
        <li key={one.error} className="flex items-baseline gap-3 px-3 py-2 text-sm">
          <span className="w-12 shrink-0 text-right font-semibold text-bad">{compact(one.count)}</span>
          <Link
            className="min-w-0 grow font-mono text-xs break-words hover:underline"
            href={to(["jobs"], { worker: name, error: gist(one.error) })}
          >
            {one.error}
          </Link>
          <span className="shrink-0 text-xs text-muted">
            <Time at={atOf(one.last)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The longest part of an error without numbers: errors of one group differ only in numbers. */
export function gist(error: string): string {
  return error.split(/0x[0-9a-f]+|\d+/).reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}
