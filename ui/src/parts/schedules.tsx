/** Actions on stored schedules and on the schedules of workers, and the fields that say when something runs. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay, usePreview, useWorker, useWorkerNames } from "../data/queries";
import type { Job, Payload, Schedule, Timing, Worker, WorkerDetail } from "../data/types";
import { go, to } from "../router";
import { duration } from "../words";
import { READ_ONLY } from "./actions";
import { Button, Loading } from "./basics";
import { Ask, Labelled } from "./dialog";
import { PayloadForm } from "./form";
import { Typed } from "./typed";

const UNITS: [string, number][] = [
  ["days", 86_400],
  ["hours", 3_600],
  ["minutes", 60],
  ["seconds", 1],
];
/** The zones that the browser knows; any other can be typed. */
const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

/** The fire times on the schedule's own clock, which may not be the reader's. */
export function FireTimes({ times, label = "Next fire times" }: { times: string[]; label?: string }) {
  return (
    <ol aria-label={label} className="grid gap-x-6 gap-y-1 text-sm sm:grid-flow-col sm:grid-cols-2 sm:grid-rows-5">
      {times.map((time) => (
        <li key={time} className="whitespace-nowrap tabular-nums" title={new Date(time).toLocaleString()}>
          {weekday(time)} {time.slice(0, 10)} {time.slice(11, 19)}{" "}
          <span className="text-xs text-muted">{time.slice(19) === "+00:00" ? "UTC" : time.slice(19)}</span>
        </li>
      ))}
    </ol>
  );
}

const weekday = (time: string) =>
  new Date(`${time.slice(0, 10)}T00:00:00Z`).toLocaleDateString("en", { weekday: "short", timeZone: "UTC" });

/** Fields for a cron expression or an interval, with what it means. */
function TimingFields({ start, change, pause }: { start: Timing; change: (timing: Timing) => void; pause?: boolean }) {
  const [kind, setKind] = useState<"cron" | "interval">(
    start.interval_seconds === null && !pause ? "cron" : "interval",
  );
  const [cron, setCron] = useState(start.cron ?? "0 3 * * *");
  const [zone, setZone] = useState(start.timezone ?? "UTC");
  const [unit, setUnit] = useState(unitOf(start.interval_seconds ?? 300));
  const [amount, setAmount] = useState(
    String((start.interval_seconds ?? 300) / sizeOf(unitOf(start.interval_seconds ?? 300))),
  );
  const take = (
    next: Partial<{ kind: "cron" | "interval"; cron: string; zone: string; unit: string; amount: string }>,
  ) => {
    const now = { kind, cron, zone, unit, amount, ...next };
    setKind(now.kind);
    setCron(now.cron);
    setZone(now.zone);
    setUnit(now.unit);
    setAmount(now.amount);
    change(timingOf(now));
  };
  return (
    <>
      {!pause && (
        <div role="group" aria-label="Runs" className="flex gap-1">
          <Button
            small
            kind={kind === "cron" ? "plain" : "quiet"}
            aria-pressed={kind === "cron"}
            onClick={() => take({ kind: "cron" })}
          >
            By the clock
          </Button>
          <Button
            small
            kind={kind === "interval" ? "plain" : "quiet"}
            aria-pressed={kind === "interval"}
            onClick={() => take({ kind: "interval" })}
          >
            At an interval
          </Button>
        </div>
      )}
      {kind === "cron" ? (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label="Cron" hint="minute hour day month weekday">
            <input
              className="field font-mono"
              required
              autoComplete="off"
              value={cron}
              onChange={(event) => take({ cron: event.target.value })}
            />
          </Labelled>
          <Labelled label="Time zone">
            <Typed label="Time zone" value={zone} take={(written) => take({ zone: written || "UTC" })} names={ZONES} />
          </Labelled>
        </div>
      ) : (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label={pause ? "Pause after a run" : "Every"}>
            <input
              type="number"
              className="field"
              required
              min={0}
              step="any"
              value={amount}
              onChange={(event) => take({ amount: event.target.value })}
            />
          </Labelled>
          <Labelled label="Unit">
            <select className="field" value={unit} onChange={(event) => take({ unit: event.target.value })}>
              {[...UNITS].reverse().map(([name]) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </Labelled>
        </div>
      )}
    </>
  );
}

const sizeOf = (unit: string) => UNITS.find(([name]) => name === unit)?.[1] ?? 1;
const unitOf = (seconds: number) => UNITS.find(([, size]) => seconds > 0 && seconds % size === 0)?.[0] ?? "seconds";
const timingOf = (now: { kind: string; cron: string; zone: string; unit: string; amount: string }): Timing =>
  now.kind === "cron"
    ? { cron: now.cron.trim(), interval_seconds: null, timezone: now.zone }
    : { cron: null, interval_seconds: Number(now.amount) * sizeOf(now.unit), timezone: null };

/** What a schedule means before it is stored. */
function Preview({ timing }: { timing: Timing }) {
  const preview = usePreview(timing);
  const { data } = preview;
  return (
    <section aria-label="Preview" className="rounded-md border border-line bg-ground p-3">
      {preview.error ? (
        <p className="text-bad">{preview.error.message}</p>
      ) : !data ? (
        <Loading rows={3} />
      ) : data.problem ? (
        <p className="text-bad">{data.problem}</p>
      ) : (
        <>
          <p className="mb-2 font-medium">Runs {data.words}</p>
          <FireTimes times={data.times} />
        </>
      )}
    </section>
  );
}

export function ScheduleActions({ schedule, small, gone }: { schedule: Schedule; small?: boolean; gone?: () => void }) {
  const may = useMay();
  const [asking, setAsking] = useState<"edit" | "delete" | null>(null);
  const act = useAct(`Done: schedule ${schedule.name}`);
  const run = useAct<{ job: Job }>(`Running ${schedule.worker} now`);
  const title = may ? undefined : READ_ONLY;
  const named = (verb: string) => (small ? `${verb} ${schedule.name}` : undefined);
  const close = () => setAsking(null);
  return (
    <>
      <Button
        small={small}
        kind={small ? "plain" : "primary"}
        disabled={!may || run.isPending}
        title={title}
        aria-label={named("Run now")}
        onClick={() =>
          run.mutate(() => api.runSchedule(schedule.name), { onSuccess: ({ job }) => go(to(["jobs", job.id])) })
        }
      >
        Run now
      </Button>
      <Button
        small={small}
        disabled={!may || act.isPending}
        title={title}
        aria-label={named(schedule.paused ? "Resume" : "Pause")}
        onClick={() =>
          act.mutate(() => (schedule.paused ? api.resumeSchedule(schedule.name) : api.pauseSchedule(schedule.name)))
        }
      >
        {schedule.paused ? "Resume" : "Pause"}
      </Button>
      {!small && (
        <Button disabled={!may} title={title} onClick={() => setAsking("edit")}>
          Change
        </Button>
      )}
      <Button
        small={small}
        kind="danger"
        disabled={!may}
        title={title}
        aria-label={named("Delete")}
        onClick={() => setAsking("delete")}
      >
        Delete
      </Button>
      {asking === "edit" && <PutSchedule schedule={schedule} close={close} />}
      {asking === "delete" && (
        <Ask
          title={`Delete schedule ${schedule.name}?`}
          verb="Delete"
          danger
          busy={act.isPending}
          close={close}
          submit={() =>
            act.mutate(() => api.deleteSchedule(schedule.name), {
              onSuccess: () => {
                close();
                gone?.();
              },
            })
          }
        >
          <p>It fires no more. Jobs that it has added continue.</p>
        </Ask>
      )}
    </>
  );
}

/** The form for a new schedule, or for another version of an existing one. */
export function PutSchedule({
  schedule,
  worker: chosen,
  close,
}: {
  schedule?: Schedule;
  worker?: string;
  close: () => void;
}) {
  const [name, setName] = useState(schedule?.name ?? "");
  const [worker, setWorker] = useState(schedule?.worker ?? chosen ?? "");
  const [payload, setPayload] = useState<unknown>(undefined);
  const [timing, setTiming] = useState<Timing>(
    schedule ?? { cron: "0 3 * * *", interval_seconds: null, timezone: "UTC" },
  );
  const names = useWorkerNames(!schedule);
  const act = useAct<Schedule>((put) => `Schedule ${put.name} runs ${put.schedule}`);
  const kept = schedule && {
    catch_up: schedule.catch_up,
    overlap: schedule.overlap,
    priority: schedule.priority,
    unique_key: schedule.unique_key,
    max_retries: schedule.max_retries,
    timeout_seconds: schedule.timeout_seconds,
    expires_seconds: schedule.expires_seconds,
    tags: schedule.tags,
  };
  const done = (put: Schedule) => {
    close();
    go(to(["schedules", put.name]));
  };
  return (
    <Ask
      title={schedule ? `Change schedule ${schedule.name}` : "New schedule"}
      verb={schedule ? "Change" : "Add"}
      wide
      busy={act.isPending}
      close={close}
      submit={() =>
        act.mutate(
          () => api.putSchedule(name, { ...kept, ...zoned(timing), worker, payload: (payload ?? {}) as Payload }),
          { onSuccess: done },
        )
      }
    >
      {!schedule && (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label="Name">
            <input
              className="field"
              required
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.target.value.trim())}
            />
          </Labelled>
          <Labelled label="Worker">
            <Typed label="Worker" value={worker} take={setWorker} names={names.data} />
          </Labelled>
        </div>
      )}
      <TimingFields start={timing} change={setTiming} />
      <Preview timing={timing} />
      {worker && <Arguments key={worker} worker={worker} start={schedule?.payload} change={setPayload} />}
    </Ask>
  );
}

/** An interval has no time zone. */
const zoned = (timing: Timing) =>
  timing.cron === null
    ? { interval_seconds: timing.interval_seconds }
    : { cron: timing.cron, timezone: timing.timezone };

function Arguments({ worker, start, change }: { worker: string; start: unknown; change: (payload: unknown) => void }) {
  const known = useWorker(worker);
  if (known.data) {
    const schema = known.data.payload_schema ?? (known.data.mode === "triggered" ? null : { type: "object" });
    return <PayloadForm schema={schema} start={start} change={change} />;
  }
  return known.error ? <p className="text-bad">{known.error.message}</p> : <Loading rows={2} />;
}

/** Gives a worker another schedule than the one in the code, and back. */
export function Reschedule({ worker }: { worker: WorkerDetail }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  const [timing, setTiming] = useState<Timing>(() => configured(worker.config));
  const act = useAct<Worker>((changed) => `${changed.name} runs ${changed.schedule}`);
  const close = () => setOpen(false);
  return (
    <>
      <Button
        disabled={!may}
        title={may ? undefined : READ_ONLY}
        onClick={() => {
          setTiming(configured(worker.config));
          setOpen(true);
        }}
      >
        Reschedule
      </Button>
      {open && (
        <Ask
          title={`Schedule of ${worker.name}`}
          verb="Reschedule"
          wide
          busy={act.isPending}
          close={close}
          submit={() => act.mutate(() => api.rescheduleWorker(worker.name, zoned(timing)), { onSuccess: close })}
        >
          <p>The new schedule holds on all nodes and wins over the one in the code until it is reset.</p>
          <TimingFields start={timing} change={setTiming} pause={worker.mode === "continuous"} />
          {timing.cron === null ? (
            <p className="text-muted">{duration(timing.interval_seconds)}, counted from the end of the last run</p>
          ) : (
            <Preview timing={timing} />
          )}
          {worker.rescheduled_at && (
            <Button
              className="self-start"
              disabled={act.isPending}
              onClick={() => act.mutate(() => api.rescheduleWorker(worker.name, { reset: true }), { onSuccess: close })}
            >
              Reset to the schedule in the code
            </Button>
          )}
        </Ask>
      )}
    </>
  );
}

const configured = ({ cron, interval_seconds, timezone }: WorkerDetail["config"]): Timing => ({
  cron,
  interval_seconds: cron === null ? interval_seconds : null,
  timezone,
});
