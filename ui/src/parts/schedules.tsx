/** Actions on stored schedules and on the schedules of workers, and the fields that say when something runs. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay, usePreview, useWorker, useWorkerNames } from "../data/queries";
import type { Job, Payload, Schedule, Timing, Worker, WorkerDetail } from "../data/types";
import { language, t } from "../language";
import { go, to } from "../router";
import { duration, moment } from "../words";
import { inZone, zone, zoneName } from "../zone";
import { READ_ONLY } from "./actions";
import { Button, Loading } from "./basics";
import { Ask, Labelled } from "./dialog";
import { PayloadForm } from "./form";
import { Typed } from "./typed";

type Unit = "days" | "hours" | "minutes" | "seconds";
const UNITS: [Unit, number][] = [
  ["days", 86_400],
  ["hours", 3_600],
  ["minutes", 60],
  ["seconds", 1],
];
/** The zones that the browser knows; any other can be typed. */
const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

/** The fire times on the schedule's own clock, which may not be the reader's. */
export function FireTimes({ times, label = t("Next fire times") }: { times: string[]; label?: string }) {
  return (
    <ol aria-label={label} className="grid gap-x-6 gap-y-1 text-sm sm:grid-flow-col sm:grid-cols-2 sm:grid-rows-5">
      {times.map((time) => (
        <li
          key={time}
          className="whitespace-nowrap tabular-nums"
          title={t("{time} in {zone}", { time: moment(Date.parse(time)), zone: zoneName(zone) })}
        >
          {weekday(time)} {time.slice(0, 10)} {time.slice(11, 19)}{" "}
          <span className="text-xs text-muted">{time.slice(19) === "+00:00" ? "UTC" : time.slice(19)}</span>
        </li>
      ))}
    </ol>
  );
}

const weekday = (time: string) =>
  new Date(`${time.slice(0, 10)}T00:00:00Z`).toLocaleDateString(language, { weekday: "short", timeZone: "UTC" });

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
    next: Partial<{ kind: "cron" | "interval"; cron: string; zone: string; unit: Unit; amount: string }>,
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
        <div role="group" aria-label={t("Schedule")} className="flex gap-1">
          <Button
            small
            kind={kind === "cron" ? "plain" : "quiet"}
            aria-pressed={kind === "cron"}
            onClick={() => take({ kind: "cron" })}
          >
            {t("By the clock")}
          </Button>
          <Button
            small
            kind={kind === "interval" ? "plain" : "quiet"}
            aria-pressed={kind === "interval"}
            onClick={() => take({ kind: "interval" })}
          >
            {t("At an interval")}
          </Button>
        </div>
      )}
      {kind === "cron" ? (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label={t("Cron")} hint={t("minute hour day month weekday")}>
            <input
              className="field font-mono"
              required
              autoComplete="off"
              value={cron}
              onChange={(event) => take({ cron: event.target.value })}
            />
          </Labelled>
          <Labelled label={t("Time zone")}>
            <Typed
              label={t("Time zone")}
              value={zone}
              take={(written) => take({ zone: written || "UTC" })}
              names={ZONES}
            />
          </Labelled>
        </div>
      ) : (
        <div className="grid grid-cols-2 gap-3">
          <Labelled label={pause ? t("Pause after a run") : t("Every")}>
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
          <Labelled label={t("Unit")}>
            <select className="field" value={unit} onChange={(event) => take({ unit: event.target.value as Unit })}>
              {[...UNITS].reverse().map(([name]) => (
                <option key={name} value={name}>
                  {t(name)}
                </option>
              ))}
            </select>
          </Labelled>
        </div>
      )}
    </>
  );
}

const sizeOf = (unit: Unit) => UNITS.find(([name]) => name === unit)?.[1] ?? 1;
const unitOf = (seconds: number) => UNITS.find(([, size]) => seconds > 0 && seconds % size === 0)?.[0] ?? "seconds";
const timingOf = (now: { kind: string; cron: string; zone: string; unit: Unit; amount: string }): Timing =>
  now.kind === "cron"
    ? { cron: now.cron.trim(), interval_seconds: null, timezone: now.zone }
    : { cron: null, interval_seconds: Number(now.amount) * sizeOf(now.unit), timezone: null };

/** What a schedule means before it is stored. */
function Preview({ timing }: { timing: Timing }) {
  const preview = usePreview(timing);
  const { data } = preview;
  return (
    <section aria-label={t("Preview")} className="rounded-md border border-line bg-ground p-3">
      {preview.error ? (
        <p className="text-bad">{inZone(preview.error.message)}</p>
      ) : !data ? (
        <Loading rows={3} />
      ) : data.problem ? (
        <p className="text-bad">{inZone(data.problem)}</p>
      ) : (
        <>
          <p className="mb-2 font-medium">{t("Runs {schedule}", { schedule: inZone(data.words ?? "") })}</p>
          <FireTimes times={data.times} />
        </>
      )}
    </section>
  );
}

export function ScheduleActions({ schedule, small, gone }: { schedule: Schedule; small?: boolean; gone?: () => void }) {
  const may = useMay();
  const [asking, setAsking] = useState<"edit" | "delete" | null>(null);
  const act = useAct(t("Done: schedule {name}", schedule));
  const run = useAct<{ job: Job }>(t("Running {worker} now", schedule));
  const title = may ? undefined : READ_ONLY;
  const named = (verb: string) => (small ? t("{action} {name}", { action: verb, name: schedule.name }) : undefined);
  const close = () => setAsking(null);
  return (
    <>
      <Button
        small={small}
        kind={small ? "plain" : "primary"}
        disabled={!may || run.isPending}
        title={title}
        aria-label={named(t("Run now"))}
        onClick={() =>
          run.mutate(() => api.runSchedule(schedule.name), { onSuccess: ({ job }) => go(to(["jobs", job.id])) })
        }
      >
        {t("Run now")}
      </Button>
      <Button
        small={small}
        disabled={!may || act.isPending}
        title={title}
        aria-label={named(schedule.paused ? t("Resume") : t("Pause"))}
        onClick={() =>
          act.mutate(() => (schedule.paused ? api.resumeSchedule(schedule.name) : api.pauseSchedule(schedule.name)))
        }
      >
        {schedule.paused ? t("Resume") : t("Pause")}
      </Button>
      {!small && (
        <Button disabled={!may} title={title} onClick={() => setAsking("edit")}>
          {t("Change")}
        </Button>
      )}
      <Button
        small={small}
        kind="danger"
        disabled={!may}
        title={title}
        aria-label={named(t("Delete"))}
        onClick={() => setAsking("delete")}
      >
        {t("Delete")}
      </Button>
      {asking === "edit" && <PutSchedule schedule={schedule} close={close} />}
      {asking === "delete" && (
        <Ask
          title={t("Delete schedule {name}?", schedule)}
          verb={t("Delete")}
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
          <p>{t("It fires no more. Jobs that it has added continue.")}</p>
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
  const act = useAct<Schedule>((put) =>
    t("Schedule {name} runs {schedule}", { name: put.name, schedule: inZone(put.schedule) }),
  );
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
      title={schedule ? t("Change schedule {name}", schedule) : t("New schedule")}
      verb={schedule ? t("Change") : t("Add")}
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
          <Labelled label={t("Name")}>
            <input
              className="field"
              required
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.target.value.trim())}
            />
          </Labelled>
          <Labelled label={t("Worker")}>
            <Typed label={t("Worker")} value={worker} take={setWorker} names={names.data} />
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
  return known.error ? <p className="text-bad">{inZone(known.error.message)}</p> : <Loading rows={2} />;
}

/** Gives a worker another schedule than the one in the code, and back. */
export function Reschedule({ worker }: { worker: WorkerDetail }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  const [timing, setTiming] = useState<Timing>(() => configured(worker.config));
  const act = useAct<Worker>((changed) =>
    t("{name} runs {schedule}", { name: changed.name, schedule: inZone(changed.schedule) }),
  );
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
        {t("Reschedule")}
      </Button>
      {open && (
        <Ask
          title={t("Schedule of {name}", worker)}
          verb={t("Reschedule")}
          wide
          busy={act.isPending}
          close={close}
          submit={() => act.mutate(() => api.rescheduleWorker(worker.name, zoned(timing)), { onSuccess: close })}
        >
          <p>{t("The new schedule holds on all nodes and wins over the one in the code until it is reset.")}</p>
          <TimingFields start={timing} change={setTiming} pause={worker.mode === "continuous"} />
          {timing.cron === null ? (
            <p className="text-muted">
              {t("{time}, counted from the end of the last run", { time: duration(timing.interval_seconds) })}
            </p>
          ) : (
            <Preview timing={timing} />
          )}
          {worker.rescheduled_at && (
            <Button
              className="self-start"
              disabled={act.isPending}
              onClick={() => act.mutate(() => api.rescheduleWorker(worker.name, { reset: true }), { onSuccess: close })}
            >
              {t("Reset to the schedule in the code")}
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
