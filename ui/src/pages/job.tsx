import { useNow } from "../data/live";
import { useJob, useWhy } from "../data/queries";
import type { Attempt, Estimate, Step, WholeJob } from "../data/types";
import { rich, t, wordOf } from "../language";
import { Answer, Badge, Facts, Heading, Meter, Panel, StatusBadge, Time } from "../parts/basics";
import { Copy, Verbatim } from "../parts/copy";
import { ENDED, JobActions } from "../parts/jobactions";
import { brief } from "../parts/jobtable";
import { Json } from "../parts/json";
import { Log } from "../parts/log";
import { Steps } from "../parts/steps";
import { Link, to } from "../router";
import { duration, moment, span } from "../words";
import { inZone } from "../zone";

const KINDS: Record<string, [string, "ok" | "warn" | "bad" | "plain"]> = {
  raised: [t("raised"), "bad"],
  timed_out: [t("timed out"), "bad"],
  crashed: [t("crashed"), "bad"],
  undecodable: [t("payload could not be decoded"), "bad"],
};

export function JobPage({ id }: { id: string }) {
  const job = useJob(id);
  return (
    <Answer of={job} rows={14}>
      {(seen) => (
        <>
          <Heading
            title={
              <>
                <Link className="crumb" href={to(["jobs"])}>
                  {t("Jobs")}
                </Link>
                <span className="text-muted">/</span>
                <span className="font-mono text-base" title={seen.id}>
                  {brief(seen.id)}
                </span>
                <StatusBadge {...seen} waitsFor={seen.waits_for_signal} />
              </>
            }
          >
            <JobActions job={seen} waitsFor={seen.waits_for_signal} />
          </Heading>
          <div className="grid gap-3 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
            <div className="flex min-w-0 flex-col gap-3">
              {!ENDED.includes(seen.status) && <Why job={seen} />}
              {seen.progress && <ProgressPanel job={seen} />}
              <Panel title={t("Timeline")}>
                <Timeline job={seen} />
              </Panel>
              {seen.steps.length + seen.signals.length > 0 && <Steps job={seen} />}
              {seen.attempts.length > 0 && (
                <Panel title={t("Failed attempts")} flush>
                  <Attempts job={seen} />
                </Panel>
              )}
              {(seen.logs.length > 0 || seen.status === "processing") && (
                <Log lines={seen.logs} live={seen.status === "processing"} />
              )}
            </div>
            <div className="flex min-w-0 flex-col gap-3">
              <Panel title={t("About")}>
                <About job={seen} />
              </Panel>
              <Panel title={t("Payload")} flush>
                <Json value={seen.payload} label={t("payload")} />
              </Panel>
              {seen.status === "completed" && (
                <Panel title={t("Result")} flush>
                  <Json value={seen.result} label={t("result")} />
                </Panel>
              )}
            </div>
          </div>
        </>
      )}
    </Answer>
  );
}

function Long({ text, what }: { text: string; what: string }) {
  return (
    <span className="flex items-center gap-2">
      <span className="min-w-0 font-mono text-xs break-all">{text}</span>
      <Copy text={text} what={what} />
    </span>
  );
}

function About({ job }: { job: WholeJob }) {
  const items: [string, React.ReactNode][] = [
    [
      t("Worker"),
      <Link key="w" href={to(["workers", job.worker])}>
        {job.worker}
      </Link>,
    ],
    [
      t("Pool"),
      <Link key="p" href={to(["pools", job.pool])}>
        {job.pool}
      </Link>,
    ],
    [t("Id"), <Long key="i" text={job.id} what={t("job id")} />],
    [t("Cause"), wordOf(job.cause)],
    [t("Priority"), wordOf(job.priority)],
    [
      t("Attempt"),
      job.crashes ? t("{n}, {crashes} {crashes:crash|crashes}", { n: job.attempt, crashes: job.crashes }) : job.attempt,
    ],
    [t("Created"), <Time key="c" at={job.created_at} />],
    [t("Due"), <Time key="d" at={job.run_at} />],
  ];
  if (job.expires_at && !ENDED.includes(job.status))
    items.push([
      t("Expires"),
      <span key="x">
        <Time at={job.expires_at} />
        <span className="text-muted"> {t("if it has not started")}</span>
      </span>,
    ]);
  if (job.max_retries !== null) items.push([t("Retries"), t("{n} at most, for this job", { n: job.max_retries })]);
  if (job.timeout_seconds !== null)
    items.push([t("Timeout"), t("{time}, for this job", { time: duration(job.timeout_seconds) })]);
  if (job.tags.length) items.push([t("Tags"), <Tags key="tags" of={job} />]);
  if (job.instance)
    items.push([
      job.status === "processing" ? t("Runs on") : t("Ran on"),
      <span key="n" className="font-mono text-xs">
        {job.instance}
      </span>,
    ]);
  if (job.flow)
    items.push([
      t("Flow"),
      <Link key="f" className="font-mono text-xs" href={to(["flows", job.flow])}>
        {brief(job.flow)}
      </Link>,
    ]);
  if (job.unique_key) items.push([t("Unique key"), job.unique_key]);
  if (job.concurrency_key) items.push([t("Concurrency key"), job.concurrency_key]);
  items.push([t("Fence"), job.fence]);
  if (job.trace_id) items.push([t("Trace"), <Long key="t" text={job.trace_id} what={t("trace id")} />]);
  return <Facts items={items} />;
}

/** Each tag leads to the other jobs that have it. */
function Tags({ of: { tags } }: { of: WholeJob }) {
  return (
    <span className="flex flex-wrap gap-1">
      {tags.map((tag) => (
        <Link
          key={tag}
          className="max-w-full truncate rounded-full border border-edge px-2 text-xs leading-5 hover:bg-sunken"
          href={to(["jobs"], { tag })}
          title={t("All jobs tagged {tag}", { tag })}
        >
          {tag}
        </Link>
      ))}
    </span>
  );
}

function Why({ job }: { job: WholeJob }) {
  const why = useWhy(job.id, true);
  const title = job.status === "processing" ? t("Where it runs") : t("Why is it waiting?");
  return (
    <Panel title={title}>
      {job.waits_for_signal ? (
        <Awaited job={job} />
      ) : !why.data || why.data.waits.length < 2 ? (
        <p className="text-sm">{inZone(why.data?.text ?? job.why)}</p>
      ) : (
        <ul className="flex flex-col gap-1.5">
          {why.data.waits.map((wait) => (
            <li key={`${wait.code} ${wait.by}`} className="flex flex-wrap items-baseline gap-2 text-sm">
              <Badge tone="warn">{wait.code}</Badge>
              <span className="min-w-0 break-words">{inZone(wait.why)}</span>
              {wait.until_at && (
                <span className="text-xs text-muted">
                  {/* A rate limit opens for one job, which need not be this one. */}
                  {rich(wait.code === "rate_limit" ? "the next job starts {time}" : "ends {time}", {
                    time: <Time at={wait.until_at} />,
                  })}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {why.data && <PositionAndBasis of={{ ...job, ...why.data } as Estimate} />}
    </Panel>
  );
}

/** A durable wait: for which signal, since when and until when. */
function Awaited({ job }: { job: WholeJob }) {
  const wait = job.steps.findLast((step) => step.kind === "wait");
  return (
    <p className="text-sm">
      {rich("waits for {signal} since {time}", {
        signal: <strong>{job.waits_for_signal}</strong>,
        time: moment(Date.parse(wait?.ended_at ?? job.started_at ?? job.created_at)),
      })}
      {wait?.until_at && (
        <span className="text-muted">
          {t(", ")}
          {rich("gives up {time}", { time: <Time at={wait.until_at} /> })}
        </span>
      )}
    </p>
  );
}

/** The job's place in the queue, and when it is likely to start. */
function PositionAndBasis({ of: { position, position_exact = true, estimate, estimate_basis } }: { of: Estimate }) {
  if (position === null || position === undefined) return null;
  return (
    <div className="mt-2 flex flex-wrap items-baseline gap-x-4 gap-y-1 border-t border-line pt-2 text-sm">
      <span>
        {position_exact
          ? t("Position {n} in the queue", { n: position })
          : t("About position {n} in the queue", { n: position })}
      </span>
      {estimate !== null && estimate !== undefined ? (
        <span className="font-medium">{t("starts in about {time}", { time: duration(estimate) })}</span>
      ) : (
        !estimate_basis && <span className="font-medium">{t("No estimate")}</span>
      )}
      {estimate_basis && (
        <span className="w-full text-xs text-muted first-letter:uppercase">{inZone(estimate_basis)}</span>
      )}
    </div>
  );
}

function ProgressPanel({ job }: { job: WholeJob }) {
  const progress = job.progress;
  if (!progress) return null;
  return (
    <Panel title={t("Progress")}>
      <div className="flex items-center gap-3 text-sm">
        {progress.total ? (
          <>
            <Meter value={progress.done} most={progress.total} label={t("Progress")} />
            <span className="whitespace-nowrap">
              {t("{n} of {total}", { n: progress.done, total: progress.total })}
            </span>
          </>
        ) : (
          <span>{t("{n} done", { n: progress.done })}</span>
        )}
      </div>
      <p className="mt-1 text-xs text-muted">
        {progress.message && progress.message + t(", ")}
        <Time at={progress.at} />
      </p>
    </Panel>
  );
}

interface Bar {
  label: string;
  from: number;
  until: number;
  look: string;
}

function Timeline({ job }: { job: WholeJob }) {
  const now = useNow();
  const bars = barsOf(job, now);
  const first = Math.min(...bars.map((bar) => bar.from));
  const last = Math.max(...bars.map((bar) => bar.until), first + 1);
  const at = (ms: number) => ((ms - first) / (last - first)) * 100;
  return (
    <>
      <ol className="flex flex-col gap-1">
        {bars.map((bar) => (
          <li
            key={`${bar.label} ${bar.from}`}
            className="grid grid-cols-[6.5rem_minmax(0,1fr)_4.5rem] items-center gap-2 text-xs"
          >
            <span className="truncate text-muted">{bar.label}</span>
            <span className="relative h-3 rounded-xs bg-sunken" title={moment(bar.from)}>
              <span
                className={`absolute h-full min-w-0.5 rounded-xs ${bar.look}`}
                style={{ left: `${at(bar.from)}%`, width: `${at(bar.until) - at(bar.from)}%` }}
              />
            </span>
            <span className="num">{duration((bar.until - bar.from) / 1000)}</span>
          </li>
        ))}
      </ol>
      <p className="mt-2 flex justify-between text-xs text-muted">
        <span>{t("created {time}", { time: moment(first) })}</span>
        <span>{ENDED.includes(job.status) ? t("ended {time}", { time: moment(last) }) : t("now")}</span>
      </p>
    </>
  );
}

/** The most steps that are drawn, the newest. */
const MOST_STEPS = 30;

function stepBar(step: Step, now: number): Bar {
  const from = Date.parse(step.started_at);
  const waits = step.kind === "sleep" || step.kind === "wait";
  const until = waits && step.until_at ? Math.min(Date.parse(step.until_at), now) : Date.parse(step.ended_at);
  return {
    label: step.name,
    from,
    until,
    look: waits ? "bg-edge" : step.kind === "failed" ? "bg-bad-fill" : "bg-ok-fill",
  };
}

function barsOf(job: WholeJob, now: number): Bar[] {
  const bars: Bar[] = [];
  let from = Date.parse(job.created_at);
  const runs = job.attempts.filter((attempt) => attempt.started_at);
  for (const attempt of runs) {
    const start = Date.parse(attempt.started_at as string);
    const end = attempt.ended_at ? Date.parse(attempt.ended_at) : now;
    bars.push({ label: t("waited"), from, until: start, look: "bg-edge" });
    bars.push({
      label: t("attempt {n}", { n: attempt.number }),
      from: start,
      until: end,
      look: "bg-bad-fill",
    });
    from = end;
  }
  // Failed attempts are drawn above; the current or successful one is in the job itself.
  const drawn = runs.some((attempt) => (attempt.ended_at ?? "") >= (job.started_at ?? ""));
  if (job.started_at && !drawn && (job.ended_at || job.status === "processing")) {
    const start = Date.parse(job.started_at);
    const end = job.ended_at ? Date.parse(job.ended_at) : now;
    bars.push({ label: t("waited"), from, until: start, look: "bg-edge" });
    const look = job.status === "completed" ? "bg-ok-fill" : job.status === "processing" ? "bg-accent-fill" : "bg-edge";
    bars.push({
      label: job.attempt ? t("attempt {n}", { n: job.attempt }) : t("handed back"),
      from: start,
      until: end,
      look,
    });
  } else if (!job.ended_at) {
    bars.push({ label: t("waiting"), from, until: Math.max(now, from), look: "bg-edge" });
  }
  for (const step of job.steps.slice(-MOST_STEPS)) bars.push(stepBar(step, now));
  return bars.filter((bar) => bar.until >= bar.from);
}

function Attempts({ job }: { job: WholeJob }) {
  const failed = [...job.attempts].reverse();
  return (
    <ol className="divide-y divide-line">
      {failed.map((attempt, index) => (
        <li key={`${attempt.number} ${attempt.started_at}`}>
          <AttemptRow attempt={attempt} open={index === 0} />
        </li>
      ))}
    </ol>
  );
}

function AttemptRow({ attempt, open }: { attempt: Attempt; open: boolean }) {
  const [word, tone] = KINDS[attempt.kind] ?? [wordOf(attempt.kind.replaceAll("_", " ")), "warn"];
  return (
    <details open={open} className="group">
      <summary className="flex flex-wrap items-center gap-2 px-3 py-2 text-sm hover:bg-sunken">
        <span aria-hidden="true" className="text-muted group-open:rotate-90">
          ▸
        </span>
        <span className="font-medium">{t("Attempt {n}", { n: attempt.number })}</span>
        <Badge tone={tone}>{word}</Badge>
        <span className="text-xs text-muted">
          <Time at={attempt.started_at} />
          {t(", ")}
          {duration(span(attempt.started_at, attempt.ended_at, Date.now()))}
        </span>
        {attempt.error && <span className="w-full min-w-0 pl-4 text-xs break-words text-bad">{attempt.error}</span>}
      </summary>
      <div className="px-3 pb-3">
        {attempt.instance && (
          <p className="pb-1 pl-4 text-xs text-muted">{t("on {instance}", { instance: attempt.instance })}</p>
        )}
        {attempt.traceback ? (
          <Verbatim text={attempt.traceback} what={t("Traceback of attempt {n}", { n: attempt.number })} />
        ) : (
          <p className="pl-4 text-xs text-muted">{t("No traceback.")}</p>
        )}
      </div>
    </details>
  );
}
