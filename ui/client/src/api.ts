/** The types and operations of the HTTP API. Written by generate.py from the OpenAPI document: do not edit. */

/** What every operation takes, besides its own arguments. */
export interface CallOptions {
  /** Ends the request. */
  signal?: AbortSignal;
  /** How long the response may take, instead of the client's own limit. */
  timeoutMs?: number;
  /** Further headers, such as `Idempotency-Key` and `traceparent`. */
  headers?: Record<string, string>;
}

/** What a request sends. */
export interface Sent {
  query?: object;
  body?: object;
}

const segment = (name: string) => encodeURIComponent(name);

/** An attempt that did not succeed. */
export interface Attempt {
  number: number;
  kind: string;
  started_at: string;
  ended_at: string;
  instance: string | null;
  error: string;
  traceback: string | null;
}

/** The jobs of one worker at one depth of a flow. */
export interface Box {
  worker: string;
  depth: number;
  jobs: number;
  counts: Partial<Record<"waiting" | "scheduled" | "queued" | "processing" | "completed" | "failed" | "dead" | "cancelled", number>>;
  /** How many of those that wait cannot run until a dead or cancelled job before them is retried. */
  stranded: number;
  /** The ids of some of its jobs: those that have ended badly first, then those that run. */
  samples: string[];
  /** Whether a job of the critical path is among them. */
  critical: boolean;
  /** The boxes that it waits for, or waited for, by their places in the list. */
  needs: number[];
}

/**
 * When to stop calling something broken: `failures` in the window open it, a probe after the cool-down decides.
 * `name` is the destination it guards; workers that name the same destination share a breaker. Without a name,
 * a worker has its own.
 */
export interface Breaker {
  failures: number;
  window_seconds: number;
  cool_down_seconds: number;
  name: string | null;
}

/** A breaker: what it guards, its state, and who holds it open, if a person does. */
export interface BreakerView {
  name: string;
  /** The workers that it guards; none if all of them are gone. */
  workers: string[];
  state: "closed" | "half-open" | "open";
  /** Since when it has had this state; null if it was never open. */
  since: string | null;
  /** How many failures opened it; while it is closed, how many it has counted lately. */
  failures: number;
  /** When a run may probe it; null if it is not open, or if only a person closes it. */
  until: string | null;
  /** Who holds it open; null if its failures opened it, or if it is not open. */
  forced_by: string | null;
  reason: string | null;
}

/** Every breaker, by name. */
export interface BreakersAnswer {
  breakers: BreakerView[];
}

/** How many jobs match, up to the limit; how many were changed; and when the last of them is due. */
export interface BulkAnswer {
  matched: number;
  changed: number;
  /** When the last job is due; null without a rate. */
  until: string | null;
}

/** Which jobs are meant: all given conditions must match. */
export interface BulkFilter {
  ids?: string[] | null;
  status?: JobStatus[] | null;
  worker?: string | null;
  pool?: string | null;
  key?: string | null;
  flow?: string | null;
  tag?: string | null;
  error?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  group?: string | null;
}

/** Cancel jobs; without a status, those that wait. */
export interface CancelJobs {
  action: "cancel";
  filter: BulkFilter;
  dry_run?: boolean;
  limit?: number;
  /** Why, for the event. */
  reason?: string | null;
  rate?: null;
}

/** The numbers of all jobs and workers. */
export interface Counts {
  queued: number;
  running: number;
  scheduled: number;
  retrying: number;
  dead: number;
  completed: number;
  failed: number;
  workers: number;
  disabled: number;
}

/** A day of a pool; lists are as long as `at`, with null where nothing is known. */
export interface Course {
  slots: (number | null)[];
  queued: (number | null)[];
  slot_hours: number;
  most_slots: number;
  most_queued: number;
  waits: WaitPercentiles;
}

/** A job of the critical path. */
export interface Critical {
  id: string;
  worker: string;
  status: JobStatus;
  started_at: string | null;
  ended_at: string | null;
}

/** The newest dead jobs, grouped by worker and error, and how many dead jobs there are. */
export interface Dead {
  total: number;
  looked_at: number;
  groups: DeadGroup[];
}

/** Dead jobs of one worker that failed alike. `key` names the group in a filter. */
export interface DeadGroup {
  key: string;
  worker: string;
  error: string;
  count: number;
  newest: string;
  oldest: string;
  sample_ids: string[];
}

/** The name of what was deleted. */
export interface Deleted {
  deleted: string;
}

/** Why it is disabled. */
export interface Disabling {
  reason?: string | null;
}

/** Delete jobs; without a status, dead ones. */
export interface DiscardJobs {
  action: "discard";
  filter: BulkFilter;
  dry_run?: boolean;
  limit?: number;
  /** Why, for the event. */
  reason?: string | null;
  rate?: null;
}

/** The id of the deleted job. */
export interface Discarded {
  id: string;
}

/** The store's settings, and what is wrong. */
export interface DoctorAnswer {
  status: "degraded" | "failing" | "ok";
  store: string;
  findings: Record<string, string>;
  problems: Problem[];
}

/** A job to add. */
export interface EnqueueBody {
  priority?: "critical" | "high" | "low" | "normal" | null;
  unique_key?: string | null;
  /** Retries, instead of the worker's. */
  max_retries?: number | null;
  /** How long a run may take, instead of the worker's. */
  timeout_seconds?: number | null;
  /** The job is cancelled if it has not started this long after it is due. */
  expires_seconds?: number | null;
  tags?: string[];
  worker: string;
  payload?: Record<string, unknown>;
  delay_seconds?: number | null;
  job_id?: string | null;
}

/** The job that was added, or the existing one that it stands for. */
export interface Enqueued {
  created: boolean;
  job: Job;
}

/**
 * Jobs that failed alike and wait for a retry, or are dead: the error of the last one, how many, and since
 * when. `last` is when the last one became dead, or when the attempt began after which it waits.
 */
export interface ErrorGroup {
  error: string;
  count: number;
  last: string;
}

/** An event, or several jobs of one worker that died of one error within a minute. */
export interface Event {
  seq: number;
  at: string;
  name: string;
  subject: string;
  message: string;
  data: Record<string, unknown>;
  /** Who caused it; null if no person and no program did. */
  by: string | null;
  /** What happened, in one sentence. */
  text: string;
  /** How many events it stands for; all other fields are those of the newest. */
  count: number;
  /** When the oldest of them happened. */
  first_at: string;
}

/** A page of events, newest last. `next_before` is the `before` of the next older page, and null at the end. */
export interface EventsAnswer {
  events: Event[];
  next_before: number | null;
}

/** Why a job is where it is. */
export interface Explanation {
  id: string;
  status: JobStatus;
  text: string;
  waits: Wait[];
  /** When the job is cancelled if it has not started by then; null is never. */
  expires_at: string | null;
  /** Its place in the queue of its pool: 1 is the first. null if it is not queued. */
  position: number | null;
  /** Whether the jobs ahead were counted; otherwise the position is about this number. */
  position_exact: boolean;
  /**
   * In how many seconds from now it will start, about; null if that is not known, or if it does not wait to
   * start.
   */
  estimate: number | null;
  /** How the estimate was worked out, or why there is none. */
  estimate_basis: string | null;
}

/** A flow, as it appears in lists. */
export interface Flow {
  id: string;
  created_at: string;
  state: "broken" | "cancelled" | "completed" | "running";
  /** How many jobs it has. */
  jobs: number;
  /** How many of them are completed, dead or cancelled. */
  ended: number;
  /** How many of them have which status. */
  counts: Partial<Record<"waiting" | "scheduled" | "queued" | "processing" | "completed" | "failed" | "dead" | "cancelled", number>>;
  /** What it is for: the worker of the last job of the call that began it. */
  worker: string;
  /** The tags of that job. */
  tags: string[];
}

/** How many jobs of the flow were changed. */
export interface FlowChanged {
  id: string;
  changed: number;
}

/**
 * A page of flows, newest first. `next_after` is the `after` of the next page, and null at the end. A search
 * takes a moment, no longer: fewer flows than `limit` does not mean that there are no more.
 */
export interface FlowsAnswer {
  flows: Flow[];
  next_after: string | null;
}

/** The worker that has only ended jobs left. */
export interface Forgotten {
  worker: string;
}

/** The dependencies and conflicts between workers. */
export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** A worker that depends on another, or two workers that never run at the same time. */
export interface GraphEdge {
  from: string;
  to: string;
  kind: "blocks" | "depends_on";
}

/** A worker in the graph. */
export interface GraphNode {
  name: string;
  pool: string;
  mode: WorkerExecutionMode;
  enabled: boolean;
  running: number;
  failures: number;
}

/** Why it is held open, and for how long; null until a person closes it. */
export interface Holding {
  reason?: string | null;
  for_seconds?: number | null;
}

/** A running instance of a pool. */
export interface Instance {
  id: string;
  pool: string;
  node: string;
  status: "busy" | "dead" | "draining" | "idle";
  slots: number;
  busy: number;
  current_jobs: string[];
  completed: number;
  failed: number;
  memory_bytes: number;
  pid: number;
  started_at: string;
  last_beat_at: string;
  cpu_percent: number | null;
  lag_seconds: number | null;
}

/** A job, as it appears in lists. */
export interface Job {
  id: string;
  worker: string;
  pool: string;
  status: JobStatus;
  /** Whether it is completed, dead or cancelled. A failed job is not over: it will be retried. */
  over: boolean;
  priority: "critical" | "high" | "low" | "normal";
  cause: string;
  attempt: number;
  crashes: number;
  error: string | null;
  created_at: string;
  run_at: string | null;
  started_at: string | null;
  /** null until it is over, also between two attempts. */
  ended_at: string | null;
  instance: string | null;
  cancelling: boolean;
  /** Whether it waits for a dead or cancelled job, directly or not, and cannot run until that one is retried. */
  stranded: boolean;
  unique_key: string | null;
  concurrency_key: string | null;
  /** The flow that it belongs to. */
  flow: string | null;
  tags: string[];
  expires_at: string | null;
  progress: Progress | null;
  /** The signal that its function waits for now. */
  waits_for_signal: string | null;
  /** Its arguments. In lists, a payload of more than 1,024 bytes is cut. */
  payload: unknown;
  /** How many bytes the whole payload has, as it is stored. */
  payload_bytes: number;
  /** Whether `payload` is only its beginning. */
  payload_truncated: boolean;
}

/** How much of a head start a job has. Old low-priority work still overtakes new high-priority work. */
export type JobPriority = 0 | 1 | 2 | 3;

/** Where a job is in its life. */
export type JobStatus = "cancelled" | "completed" | "dead" | "failed" | "processing" | "queued" | "scheduled" | "waiting";

/** A page of jobs, in the order asked for. `next_after` is the `after` of the next page, and null at the end. */
export interface JobsAnswer {
  jobs: PlacedJob[];
  /** How many jobs match in all; null if this page is not all of them and the store does not count them. */
  total: number | null;
  next_after: string | null;
}

/** A line that a job logged. */
export interface Log {
  at: string;
  level: string;
  message: string;
  attempt: number;
}

/** The visitor is logged out. */
export interface LoggedOut {
  name: null;
}

/** The token that `shiftwork token create` printed. */
export interface Login {
  token: string;
}

/** A token with its secret, which is shown only once. */
export interface MadeToken {
  id: string;
  name: string;
  role: "operate" | "read";
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  token: string;
}

/** Who sends the request, and what they may do. */
export interface Me {
  name: string;
  role: "operate" | "read";
  csrf: string | null;
  version: string;
}

/** How many slots a pool may have; null restores the registered bound. */
export interface NewBounds {
  min: number | null;
  max: number | null;
}

/** A schedule: its worker, the arguments and options of its jobs, and a cron expression or an interval. */
export interface NewSchedule {
  priority?: "critical" | "high" | "low" | "normal" | null;
  unique_key?: string | null;
  /** Retries, instead of the worker's. */
  max_retries?: number | null;
  /** How long a run may take, instead of the worker's. */
  timeout_seconds?: number | null;
  /** The job is cancelled if it has not started this long after it is due. */
  expires_seconds?: number | null;
  tags?: string[];
  worker: string;
  payload?: Record<string, unknown>;
  cron?: string | null;
  interval_seconds?: number | null;
  /** The interval in words instead of `interval_seconds`, such as `"90s"` or `"1h30m"`. */
  every?: number | string | null;
  timezone?: string | null;
  catch_up?: "all" | "latest" | "none";
  overlap?: "allow" | "skip";
}

/** A cron expression, an interval, or `reset` for the schedule in the code. */
export interface NewTiming {
  cron?: string | null;
  interval_seconds?: number | null;
  /** The interval in words instead of `interval_seconds`, such as `"90s"` or `"1h30m"`. */
  every?: number | string | null;
  timezone?: string | null;
  reset?: boolean;
}

/** A token to make. Without `valid_seconds` it is valid until it is revoked. */
export interface NewToken {
  name: string;
  role: "operate" | "read";
  valid_seconds?: number | null;
}

/** A live node. */
export interface Node {
  name: string;
  host: string;
  pid: number;
  started_at: string;
  last_beat_at: string;
  leads: boolean;
  status: "drained" | "draining" | "serving" | "stopping";
  drained_at: string | null;
  cores: number;
  memory_bytes: number;
  labels: string[];
  hosts: string[];
  runs: Runs[];
  failing: PoolFailure[];
  cpu_percent: number | null;
  memory_used_bytes: number | null;
  loop_lag_seconds: number | null;
  store_seconds: number | null;
}

/** A node that cannot start a pool's processes. */
export interface NodeFailure {
  node: string;
  error: string;
}

/** Every live node, oldest first, and the instances of all pools. */
export interface NodesAnswer {
  nodes: Node[];
  instances: Instance[];
}

/** What is wrong, the leader, the nodes, the pools, and all jobs in numbers. */
export interface OverviewAnswer {
  at: string;
  store: string;
  status: "degraded" | "failing" | "ok";
  problems: Problem[];
  leader: string | null;
  nodes: string[];
  pools: Pool[];
  counts: Counts;
}

/** A job and its place in the queue. */
export interface PlacedJob {
  id: string;
  worker: string;
  pool: string;
  status: JobStatus;
  /** Whether it is completed, dead or cancelled. A failed job is not over: it will be retried. */
  over: boolean;
  priority: "critical" | "high" | "low" | "normal";
  cause: string;
  attempt: number;
  crashes: number;
  error: string | null;
  created_at: string;
  run_at: string | null;
  started_at: string | null;
  /** null until it is over, also between two attempts. */
  ended_at: string | null;
  instance: string | null;
  cancelling: boolean;
  /** Whether it waits for a dead or cancelled job, directly or not, and cannot run until that one is retried. */
  stranded: boolean;
  unique_key: string | null;
  concurrency_key: string | null;
  /** The flow that it belongs to. */
  flow: string | null;
  tags: string[];
  expires_at: string | null;
  progress: Progress | null;
  /** The signal that its function waits for now. */
  waits_for_signal: string | null;
  /** Its arguments. In lists, a payload of more than 1,024 bytes is cut. */
  payload: unknown;
  /** How many bytes the whole payload has, as it is stored. */
  payload_bytes: number;
  /** Whether `payload` is only its beginning. */
  payload_truncated: boolean;
  /**
   * Its place in the queue of its pool: 1 is the first. null if it is not queued; in lists, also if it waits
   * for another job with its key.
   */
  position: number | null;
  /** Whether the jobs ahead were counted; otherwise the position is about this number. */
  position_exact: boolean;
  /**
   * In how many seconds from now it will start, about; null if that is not known, or if it does not wait to
   * start.
   */
  estimate: number | null;
}

/** A pool: its bounds, the numbers of its jobs, and what serves it. */
export interface Pool {
  name: string;
  kind: "async" | "process" | "thread" | null;
  min_workers: number | null;
  max_workers: number | null;
  /** Over how many processes its slots are spread on each node, as registered; null for a process pool. */
  processes: number | "auto" | null;
  instances: number;
  workers: number;
  wanted: number;
  /** Whether a person changed them. */
  bounds_changed: boolean;
  /** Where the bounds come from: "as registered", "set by hand", "by the clock since 10:00 Europe/Vienna". */
  bounds_why: string | null;
  unplaced: string | null;
  failing: NodeFailure[];
  busy: number;
  queued: number;
  running: number;
  scheduled: number;
  /** How many jobs wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  added: number;
  completed: number;
  failed: number;
  oldest_wait_seconds: number | null;
  /**
   * The 95th percentile for runs that ended in the last five minutes; only a process that serves the web knows
   * it.
   */
  wait_p95_seconds: number | null;
  paused: boolean;
  paused_at: string | null;
  reason: string | null;
}

/** A pool whose processes a node cannot start. */
export interface PoolFailure {
  pool: string;
  error: string;
}

/** A pool over time; null where a number is not known. Ended runs are counted since the previous sample. */
export interface PoolSeries {
  queued: (number | null)[];
  processing: (number | null)[];
  workers: (number | null)[];
  wanted: (number | null)[];
  oldest_wait: (number | null)[];
  completed: (number | null)[];
  failed: (number | null)[];
  retried: (number | null)[];
  wait_p95: (number | null)[];
  run_p95: (number | null)[];
}

/** Every pool. */
export interface PoolsAnswer {
  pools: Pool[];
}

/** What a schedule means: in words, and as the next ten fire times on the clock of its time zone. */
export interface PreviewAnswer {
  words: string | null;
  times: string[];
  /** What is wrong with it; null if it can work. */
  problem: string | null;
}

/** A problem, and what to do about it. */
export interface Problem {
  severity: "critical" | "warning";
  code: string;
  subject: string;
  message: string;
  remedy: string;
  /** Where the runbook explains it: an address if SHIFTWORK_DOCS is set, or a path in the source. */
  see: string;
  /** When it began, in epoch seconds; null if that cannot be known. */
  since: number | null;
  /**
   * Where it is solved: "pool:NAME", "worker:NAME", "node:NAME", "flow:ID", "breaker:NAME", "dead:POOL",
   * "dead", "store" or "leader"; empty if that is nowhere in particular.
   */
  target: string;
}

/** A problem in the form of RFC 9457. */
export interface ProblemDetails {
  /** What went wrong, for programs: `urn:shiftwork:unknown-worker`. */
  type: string;
  title: string;
  status: number;
  /** What went wrong and what to do about it, in words. */
  detail: string;
}

/** The progress that a running job reported. */
export interface Progress {
  done: number;
  total: number | null;
  message: string | null;
  at: string;
}

/** Why it is done. */
export interface Reason {
  reason?: string | null;
}

/** Which failures are tried again, and after how long: `base · factor^n`, capped, plus or minus the jitter. */
export interface Retry {
  base_seconds: number;
  factor: number;
  max_seconds: number;
  /** The share by which each wait varies. None is replaced: 0.1, or 0 for waits that are given one by one. */
  jitter: number;
  /** The wait before each retry, instead of a growing one; the last one repeats. */
  delays: number[] | null;
  /** The exceptions that are tried again; None for all. Given as classes, kept as their names. */
  on: string[] | null;
  /** The exceptions that are never tried again. Given as classes, kept as their names. */
  never_on: string[];
}

/** The new arguments; null keeps the old ones. */
export interface RetryBody {
  payload?: Record<string, unknown> | null;
}

/** Queue jobs again, now or one after the other at a rate such as "10/s"; without a status, dead ones. */
export interface RetryJobs {
  action: "retry";
  filter: BulkFilter;
  dry_run?: boolean;
  limit?: number;
  /** Why, for the event. */
  reason?: string | null;
  rate?: string | null;
}

/**
 * The runs that ended in the minute before `at`: how many, and how many seconds they took. Run times are null
 * if they are not known; `longest` is exact if one run ended, and otherwise at most too short.
 */
export interface RunMinute {
  at: string;
  completed: number;
  failed: number;
  p50: number | null;
  p95: number | null;
  longest: number | null;
}

/** The job that runs now, ahead of others. */
export interface RunSchedule {
  job: Job;
}

/** What a node runs of one pool. */
export interface Runs {
  pool: string;
  instances: number;
  workers: number;
  busy: number;
  memory_bytes: number;
}

/** How many slots a pool should have, for autoscalers. */
export interface Scale {
  wanted: number;
  current: number;
  queued: number;
}

/** A stored schedule: what it runs, when, and how far it has fired. */
export interface Schedule {
  name: string;
  worker: string;
  pool: string;
  /** The arguments of its jobs, without what is secret. */
  payload: unknown;
  priority: "critical" | "high" | "low" | "normal";
  unique_key: string | null;
  /** Instead of the worker's, as the next one. */
  max_retries: number | null;
  timeout_seconds: number | null;
  expires_seconds: number | null;
  tags: string[];
  /** When it fires, in words. */
  schedule: string;
  cron: string | null;
  interval_seconds: number | null;
  timezone: string;
  catch_up: "all" | "latest" | "none";
  overlap: "allow" | "skip";
  paused: boolean;
  paused_at: string | null;
  /** Null while it is paused. */
  next_fire_at: string | null;
  /** The next ten fire times on the clock of its own time zone. */
  next_times: string[];
  last_fire_at: string | null;
  /** The id of the last job that it added. */
  last_job: string | null;
  put_at: string | null;
  put_by: string;
}

/** A page of schedules by name. `next_after` is the `after` of the next page, and null at the end. */
export interface SchedulesAnswer {
  schedules: Schedule[];
  next_after: string | null;
}

/** All pools over time. Every list is as long as `at`. */
export interface Series {
  step: number;
  at: string[];
  pools: Record<string, PoolSeries>;
}

/** A value that was sent to a job, which its function has not taken yet. */
export interface Signal {
  name: string;
  at: string;
  /** The value; of a large one, the beginning. */
  value: unknown;
  /** How many bytes the value has, as it is stored. */
  value_bytes: number;
}

/** A value for a job whose function waits for it, or will. */
export interface SignalBody {
  name: string;
  value?: unknown;
}

/** The job that has got the signal. */
export interface SignalSent {
  id: string;
}

/** What a running job was doing. */
export interface Stack {
  job_id: string;
  at: string;
  instance: string;
  pid: number;
  stack: string;
}

/** A step of a durable function that has been run, or a wait of it. */
export interface Step {
  number: number;
  name: string;
  /**
   * `failed`: a step raised, and the function went on; `sleep` and `wait`: the function began to wait;
   * `signal`: a signal ended the wait; `timeout`: none came in time.
   */
  kind: "failed" | "signal" | "sleep" | "step" | "timeout" | "wait";
  started_at: string;
  ended_at: string;
  /** Until when the function sleeps, or waits at most. */
  until_at: string | null;
  /**
   * What a step returned; the error of a step that failed; the value of a signal. Of a large one, the
   * beginning.
   */
  result: unknown;
  /** How many bytes that has, as it is stored. */
  result_bytes: number;
}

/** A token, without its secret. */
export interface Token {
  id: string;
  name: string;
  role: "operate" | "read";
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

/** Every token that was ever made, without its secret. */
export interface TokensAnswer {
  tokens: Token[];
}

/** The configuration of a pool that is tried. */
export interface TriedBounds {
  min: number;
  max: number;
  scale_up_threshold: number;
}

/** The arguments of the run. */
export interface Trigger {
  payload?: Record<string, unknown>;
}

/** The job that runs now, ahead of all others. */
export interface Triggered {
  job: Job;
}

/** One thing that a job is waiting for. */
export interface Wait {
  code: string;
  by: string;
  why: string;
  since_at: string | null;
  until_at: string | null;
}

/** How many seconds 95 and 99 percent of the jobs waited at most; null if none ran. */
export interface WaitPercentiles {
  p95: number | null;
  p99: number | null;
}

/** The last day as it was, and as it would have been with other bounds. */
export interface WhatIfAnswer {
  pool: string;
  tried: TriedBounds;
  jobs: number;
  step: number;
  at: string[];
  real: Course;
  simulated: Course;
  scaling_steps: number;
  /** What limits the comparison, in sentences. */
  notes: string[];
}

/** A whole flow, ready to be drawn. */
export interface WholeFlow {
  id: string;
  created_at: string;
  state: "broken" | "cancelled" | "completed" | "running";
  /** How many jobs it has. */
  jobs: number;
  /** How many of them are completed, dead or cancelled. */
  ended: number;
  /** How many of them have which status. */
  counts: Partial<Record<"waiting" | "scheduled" | "queued" | "processing" | "completed" | "failed" | "dead" | "cancelled", number>>;
  /** How many of its jobs cannot run until a dead or cancelled job before them is retried. */
  stranded: number;
  /** By depth, then by the worker's name. */
  boxes: Box[];
  /** The jobs that decide how long it takes, from the first to the last. */
  critical_path: Critical[];
}

/** A whole job. */
export interface WholeJob {
  id: string;
  worker: string;
  pool: string;
  status: JobStatus;
  /** Whether it is completed, dead or cancelled. A failed job is not over: it will be retried. */
  over: boolean;
  priority: "critical" | "high" | "low" | "normal";
  cause: string;
  attempt: number;
  crashes: number;
  error: string | null;
  created_at: string;
  run_at: string | null;
  started_at: string | null;
  /** null until it is over, also between two attempts. */
  ended_at: string | null;
  instance: string | null;
  cancelling: boolean;
  /** Whether it waits for a dead or cancelled job, directly or not, and cannot run until that one is retried. */
  stranded: boolean;
  unique_key: string | null;
  concurrency_key: string | null;
  /** The flow that it belongs to. */
  flow: string | null;
  tags: string[];
  expires_at: string | null;
  progress: Progress | null;
  /** The signal that its function waits for now. */
  waits_for_signal: string | null;
  /** Its arguments. In lists, a payload of more than 1,024 bytes is cut. */
  payload: unknown;
  /** How many bytes the whole payload has, as it is stored. */
  payload_bytes: number;
  /** Whether `payload` is only its beginning. */
  payload_truncated: boolean;
  /**
   * Its place in the queue of its pool: 1 is the first. null if it is not queued; in lists, also if it waits
   * for another job with its key.
   */
  position: number | null;
  /** Whether the jobs ahead were counted; otherwise the position is about this number. */
  position_exact: boolean;
  /**
   * In how many seconds from now it will start, about; null if that is not known, or if it does not wait to
   * start.
   */
  estimate: number | null;
  fence: number;
  trace_id: string | null;
  /** How many retries it has of its own; null if as many as its worker. */
  max_retries: number | null;
  /** How long a run may take, if that differs from its worker; otherwise null. */
  timeout_seconds: number | null;
  result: unknown;
  why: string;
  /** How the estimate was worked out, or why there is none. */
  estimate_basis: string | null;
  attempts: Attempt[];
  /** The steps of a durable function that are kept, the newest 1,000. */
  steps: Step[];
  /** How many steps are kept. */
  step_count: number;
  /** How many bytes their results have. */
  step_bytes: number;
  /** The signals that its function has not taken yet. */
  signals: Signal[];
  /** How many bytes their values have. */
  signal_bytes: number;
  logs: Log[];
}

/** A pool, with its instances, the breakers of its workers, and its latest events. */
export interface WholePool {
  name: string;
  kind: "async" | "process" | "thread" | null;
  min_workers: number | null;
  max_workers: number | null;
  /** Over how many processes its slots are spread on each node, as registered; null for a process pool. */
  processes: number | "auto" | null;
  instances: number;
  workers: number;
  wanted: number;
  /** Whether a person changed them. */
  bounds_changed: boolean;
  /** Where the bounds come from: "as registered", "set by hand", "by the clock since 10:00 Europe/Vienna". */
  bounds_why: string | null;
  unplaced: string | null;
  failing: NodeFailure[];
  busy: number;
  queued: number;
  running: number;
  scheduled: number;
  /** How many jobs wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  added: number;
  completed: number;
  failed: number;
  oldest_wait_seconds: number | null;
  /**
   * The 95th percentile for runs that ended in the last five minutes; only a process that serves the web knows
   * it.
   */
  wait_p95_seconds: number | null;
  paused: boolean;
  paused_at: string | null;
  reason: string | null;
  /** The breakers that guard workers of the pool. */
  breakers: BreakerView[];
  instance_list: Instance[];
  events: Event[];
}

/** A worker, with its policy, its breaker, its latest runs, and the schema of its payload where it is known. */
export interface WholeWorker {
  name: string;
  mode: WorkerExecutionMode;
  schedule: string;
  /** When a person changed its schedule at run time; null if it is the one in the code. */
  rescheduled_at: string | null;
  rescheduled_by: string | null;
  pool: string;
  priority: "critical" | "high" | "low" | "normal";
  timeout_seconds: number | null;
  max_retries: number;
  depends_on: Record<string, string>;
  blocks: string[];
  /** The name of the breaker that guards it. */
  breaker: string | null;
  /** Whether a live node has it; true of every worker while no node is live. */
  known: boolean;
  enabled: boolean;
  reason: string | null;
  running: number;
  queued: number;
  scheduled: number;
  /** How many jobs wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  failures: number;
  last_run_at: string | null;
  last_end_at: string | null;
  last_success_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  /** Whether the last attempt that succeeded or failed is one that failed. */
  failing: boolean;
  next_due_at: string | null;
  config: WorkerConfig;
  /** The breaker that guards it, with its state; null if it has none. */
  guarded_by: BreakerView | null;
  runs: Job[];
  payload_schema: Record<string, unknown> | null;
}

/** A worker: its policy, its state, and the numbers of its jobs. */
export interface Worker {
  name: string;
  mode: WorkerExecutionMode;
  schedule: string;
  /** When a person changed its schedule at run time; null if it is the one in the code. */
  rescheduled_at: string | null;
  rescheduled_by: string | null;
  pool: string;
  priority: "critical" | "high" | "low" | "normal";
  timeout_seconds: number | null;
  max_retries: number;
  depends_on: Record<string, string>;
  blocks: string[];
  /** The name of the breaker that guards it. */
  breaker: string | null;
  /** Whether a live node has it; true of every worker while no node is live. */
  known: boolean;
  enabled: boolean;
  reason: string | null;
  running: number;
  queued: number;
  scheduled: number;
  /** How many jobs wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  failures: number;
  last_run_at: string | null;
  last_end_at: string | null;
  last_success_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  /** Whether the last attempt that succeeded or failed is one that failed. */
  failing: boolean;
  next_due_at: string | null;
}

/** A worker's policy. `shiftwork.core.options.configs` checks it; a running function finds it in its `Context`. */
export interface WorkerConfig {
  name: string;
  execution_mode: WorkerExecutionMode;
  interval_seconds: number;
  cron: string | null;
  timezone: string;
  timeout_seconds: number | null;
  max_retries: number;
  retry: Retry;
  priority: JobPriority;
  max_consecutive_failures: number | null;
  /** The workers it depends on, as they were given: names, or names with "done" or "fresh". See `demands`. */
  depends_on: string[] | Record<string, string>;
  blocks: string[];
  pool: string;
  breaker: Breaker | null;
  rate_limit: string | null;
  max_running: number | null;
  concurrency_key: string | null;
  overlap: "allow" | "queue" | "skip";
  catch_up: "all" | "latest" | "none";
  keep_completed_seconds: number;
  /** Whether a worker that was never enabled or disabled by hand is enabled. */
  enabled: boolean;
  /** Former names of the worker: jobs added under one of them run with its function. See `core.options.graph`. */
  aliases: string[];
}

/** What starts a run: the clock, a call, or the end of the previous run. */
export type WorkerExecutionMode = "continuous" | "scheduled" | "triggered";

/**
 * The runs of a worker over time: the minutes in which runs ended, and all of them together. The minutes are
 * those that the leader has written, for the busiest workers. The errors are the last ones of the newest jobs
 * that failed and wait for a retry, or are dead.
 */
export interface WorkerRunsAnswer {
  minutes: RunMinute[];
  p50: number | null;
  p95: number | null;
  longest: number | null;
  completed: number;
  failed: number;
  errors: ErrorGroup[];
}

/** A page of workers by name. `next_after` is the `after` of the next page, and null at the end. */
export interface WorkersAnswer {
  workers: Worker[];
  next_after: string | null;
}

/** What `flows` asks for; null is the same as nothing. */
export interface FlowsQuery {
  state?: "broken" | "cancelled" | "completed" | "running" | null;
  worker?: string | null;
  tag?: string | null;
  after?: string | null;
  limit?: number | null;
}

/** What `history` asks for; null is the same as nothing. */
export interface HistoryQuery {
  seconds?: number | null;
  pool?: string | null;
}

/** What `jobs` asks for; null is the same as nothing. */
export interface JobsQuery {
  status?: JobStatus[] | null;
  worker?: string | null;
  pool?: string | null;
  key?: string | null;
  unique_key?: string | null;
  instance?: string | null;
  flow?: string | null;
  tag?: string | null;
  error?: string | null;
  payload?: string | null;
  waits_for_signal?: "true" | null;
  created_after?: string | null;
  created_before?: string | null;
  order?: "newest" | "oldest" | null;
  after?: string | null;
  limit?: number | null;
}

/** What `pastEvents` asks for; null is the same as nothing. */
export interface PastEventsQuery {
  after?: number | null;
  before?: number | null;
  limit?: number | null;
  name?: string[] | null;
  subject?: string | null;
  worker?: string | null;
  pool?: string | null;
  by?: string | null;
  since?: string | null;
  until?: string | null;
}

/** What `poolWhatIf` asks for; null is the same as nothing. */
export interface PoolWhatIfQuery {
  min?: number | null;
  max?: number | null;
  scale_up_threshold?: number | null;
}

/** What `previewSchedule` asks for; null is the same as nothing. */
export interface PreviewScheduleQuery {
  cron?: string | null;
  interval_seconds?: number | null;
  every?: string | null;
  timezone?: string | null;
}

/** What `schedules` asks for; null is the same as nothing. */
export interface SchedulesQuery {
  worker?: string | null;
  after?: string | null;
  limit?: number | null;
}

/** What `workerRuns` asks for; null is the same as nothing. */
export interface WorkerRunsQuery {
  seconds?: number | null;
}

/** What `workers` asks for; null is the same as nothing. */
export interface WorkersQuery {
  after?: string | null;
  limit?: number | null;
}

/** The operations of the API, each a request. */
export abstract class Operations {
  protected abstract send<T>(method: "GET" | "POST", path: string, sent: Sent, options: CallOptions): Promise<T>;

  /** Set how many slots the pool may have, on all nodes together. Null restores the registered bound. */
  boundPool(pool: string, body: NewBounds, options: CallOptions = {}): Promise<Pool> {
    return this.send("POST", `pools/${segment(pool)}/bounds`, { body }, options);
  }

  /** Return every breaker: the workers that it guards, its state, and who holds it open. */
  breakers(options: CallOptions = {}): Promise<BreakersAnswer> {
    return this.send("GET", "breakers", {}, options);
  }

  /** Cancel all jobs of a flow that have not ended. */
  cancelFlow(id: string, body: Reason = {}, options: CallOptions = {}): Promise<FlowChanged> {
    return this.send("POST", `flows/${segment(id)}/cancel`, { body }, options);
  }

  /** Cancel a waiting job, or ask a running one to stop. */
  cancelJob(id: string, options: CallOptions = {}): Promise<Job> {
    return this.send("POST", `jobs/${segment(id)}/cancel`, { body: {} }, options);
  }

  /**
   * Cancel, retry or discard all jobs that match, or count them (`dry_run`). A `rate` spreads retries over
   * time.
   */
  changeJobs(body: CancelJobs | RetryJobs | DiscardJobs, options: CallOptions = {}): Promise<BulkAnswer> {
    return this.send("POST", "jobs/bulk", { body }, options);
  }

  /** Close the breaker, also one that a person holds open. Its failures are forgotten; its jobs start at once. */
  closeBreaker(breaker: string, body: Reason = {}, options: CallOptions = {}): Promise<BreakerView> {
    return this.send("POST", `breakers/${segment(breaker)}/close`, { body }, options);
  }

  /** Make a token that reads and return it, only this once. `shiftwork token create` makes one that operates. */
  createToken(body: NewToken, options: CallOptions = {}): Promise<MadeToken> {
    return this.send("POST", "tokens", { body }, options);
  }

  /** Return the newest dead jobs, grouped by worker and error. */
  dead(options: CallOptions = {}): Promise<Dead> {
    return this.send("GET", "dead", {}, options);
  }

  /** Delete the schedule. Jobs that it has added continue. */
  deleteSchedule(schedule: string, options: CallOptions = {}): Promise<Deleted> {
    return this.send("POST", `schedules/${segment(schedule)}/delete`, { body: {} }, options);
  }

  /** Disable the worker everywhere: it does not start, and its queued jobs wait. Running jobs continue. */
  disableWorker(worker: string, body: Disabling = {}, options: CallOptions = {}): Promise<Worker> {
    return this.send("POST", `workers/${segment(worker)}/disable`, { body }, options);
  }

  /** Delete a job that has ended. */
  discardJob(id: string, options: CallOptions = {}): Promise<Discarded> {
    return this.send("POST", `jobs/${segment(id)}/discard`, { body: {} }, options);
  }

  /** Examine the store's real settings, measure it, and return what is wrong. Answers are kept for 15 seconds. */
  doctor(options: CallOptions = {}): Promise<DoctorAnswer> {
    return this.send("POST", "doctor", { body: {} }, options);
  }

  /** Give the node no more work: its workers finish what they run, and end. */
  drainNode(node: string, body: Reason = {}, options: CallOptions = {}): Promise<Node> {
    return this.send("POST", `nodes/${segment(node)}/drain`, { body }, options);
  }

  /** Enable the worker everywhere, and reset its count of failures. */
  enableWorker(worker: string, options: CallOptions = {}): Promise<Worker> {
    return this.send("POST", `workers/${segment(worker)}/enable`, { body: {} }, options);
  }

  /** Return why the job is not running, or how it ended. */
  explanation(id: string, options: CallOptions = {}): Promise<Explanation> {
    return this.send("GET", `jobs/${segment(id)}/explanation`, {}, options);
  }

  /** Return a flow: its jobs by depth, those of one worker folded into one box, and its critical path. */
  flow(id: string, options: CallOptions = {}): Promise<WholeFlow> {
    return this.send("GET", `flows/${segment(id)}`, {}, options);
  }

  /** List flows, newest first, each with what it is for and how many of its jobs have which status. */
  flows(query: FlowsQuery = {}, options: CallOptions = {}): Promise<FlowsAnswer> {
    return this.send("GET", "flows", { query }, options);
  }

  /** Delete the definition, state and schedule of a worker that no live node, stored schedule or live job needs. */
  forgetWorker(worker: string, options: CallOptions = {}): Promise<Forgotten> {
    return this.send("POST", `workers/${segment(worker)}/forget`, { body: {} }, options);
  }

  /** Return which workers depend on which, and which never run at the same time. */
  graph(options: CallOptions = {}): Promise<Graph> {
    return this.send("GET", "graph", {}, options);
  }

  /**
   * Return every pool over time, or one: an hour in steps of seconds, a day in steps of a minute or more. A
   * pool that is unknown, and never had a job, is an error.
   */
  history(query: HistoryQuery = {}, options: CallOptions = {}): Promise<Series> {
    return this.send("GET", "history", { query }, options);
  }

  /** Return a whole job: attempts with tracebacks, progress, result, and why it is where it is. */
  job(id: string, options: CallOptions = {}): Promise<WholeJob> {
    return this.send("GET", `jobs/${segment(id)}`, {}, options);
  }

  /** Return what a running job is doing now: its own stack first, then everything else in its process. */
  jobStack(id: string, options: CallOptions = {}): Promise<Stack> {
    return this.send("POST", `jobs/${segment(id)}/stack`, { body: {} }, options);
  }

  /**
   * List jobs, newest or oldest first, each with the beginning of its payload. `payload_bytes` is that of the
   * whole. A queued job has its position and an estimate; one that waits for another with its key has them only
   * where it is read alone. A worker, pool or flow that is unknown, and never had a job, is an error. A search
   * by key, instance, error, payload or wait uses no index: it stops after a moment, so a page may be short or
   * even empty, and continues at `next_after`.
   */
  jobs(query: JobsQuery = {}, options: CallOptions = {}): Promise<JobsAnswer> {
    return this.send("GET", "jobs", { query }, options);
  }

  /** Begin a session, in a cookie that no script can read. It ends after a week, at logout, and with the token. */
  logIn(body: Login, options: CallOptions = {}): Promise<Me> {
    return this.send("POST", "login", { body }, options);
  }

  /** End the session and delete its cookie. The token stays valid until `shiftwork token revoke`. */
  logOut(options: CallOptions = {}): Promise<LoggedOut> {
    return this.send("POST", "logout", { body: {} }, options);
  }

  /** Return who sends the request, what they may do, and the X-CSRF-Token for changes by cookie. */
  me(options: CallOptions = {}): Promise<Me> {
    return this.send("GET", "me", {}, options);
  }

  /** Return every live node, and the running instances of all pools. */
  nodes(options: CallOptions = {}): Promise<NodesAnswer> {
    return this.send("GET", "nodes", {}, options);
  }

  /** Hold the breaker open: no job that it guards starts until it is closed, or is probed after `for_seconds`. */
  openBreaker(breaker: string, body: Holding = {}, options: CallOptions = {}): Promise<BreakerView> {
    return this.send("POST", `breakers/${segment(breaker)}/open`, { body }, options);
  }

  /** Return what is wrong now, the leader, every pool, and all jobs in numbers. */
  overview(options: CallOptions = {}): Promise<OverviewAnswer> {
    return this.send("GET", "overview", {}, options);
  }

  /**
   * Return the newest events that match, newest last. A short page continues at `next_before`. Jobs of one
   * worker that died of one error within a minute are one event, with their number as `count`.
   */
  pastEvents(query: PastEventsQuery = {}, options: CallOptions = {}): Promise<EventsAnswer> {
    return this.send("GET", "events", { query }, options);
  }

  /** Start no more jobs of the pool, anywhere. Running jobs continue. */
  pausePool(pool: string, body: Reason = {}, options: CallOptions = {}): Promise<Pool> {
    return this.send("POST", `pools/${segment(pool)}/pause`, { body }, options);
  }

  /** Fire the schedule no more, until it is resumed. Jobs that it has added continue. */
  pauseSchedule(schedule: string, options: CallOptions = {}): Promise<Schedule> {
    return this.send("POST", `schedules/${segment(schedule)}/pause`, { body: {} }, options);
  }

  /** Return a pool, with its instances and the reasons for its latest changes. */
  pool(pool: string, options: CallOptions = {}): Promise<WholePool> {
    return this.send("GET", `pools/${segment(pool)}`, {}, options);
  }

  /**
   * Simulate the last day of the pool with other bounds, and return both courses. One simulation runs at a
   * time.
   */
  poolWhatIf(pool: string, query: PoolWhatIfQuery = {}, options: CallOptions = {}): Promise<WhatIfAnswer> {
    return this.send("GET", `pools/${segment(pool)}/what-if`, { query }, options);
  }

  /** Return every pool: bounds, workers, the numbers of its jobs, waiting time. */
  pools(options: CallOptions = {}): Promise<PoolsAnswer> {
    return this.send("GET", "pools", {}, options);
  }

  /** Return what a schedule would mean, or why it cannot work. Nothing is stored. */
  previewSchedule(query: PreviewScheduleQuery = {}, options: CallOptions = {}): Promise<PreviewAnswer> {
    return this.send("GET", "schedule-preview", { query }, options);
  }

  /** Add the schedule, or change it. With the same times it goes on where it was. */
  putSchedule(schedule: string, body: NewSchedule, options: CallOptions = {}): Promise<Schedule> {
    return this.send("POST", `schedules/${segment(schedule)}`, { body }, options);
  }

  /** Give the worker another schedule, which wins over the one in the code until it is reset. */
  rescheduleWorker(worker: string, body: NewTiming = {}, options: CallOptions = {}): Promise<Worker> {
    return this.send("POST", `workers/${segment(worker)}/reschedule`, { body }, options);
  }

  /** Start jobs of a paused pool again. */
  resumePool(pool: string, options: CallOptions = {}): Promise<Pool> {
    return this.send("POST", `pools/${segment(pool)}/resume`, { body: {} }, options);
  }

  /** Fire the paused schedule again. Its `catch_up` decides about the fire times that it has missed. */
  resumeSchedule(schedule: string, options: CallOptions = {}): Promise<Schedule> {
    return this.send("POST", `schedules/${segment(schedule)}/resume`, { body: {} }, options);
  }

  /** Queue the dead and cancelled jobs of a flow again: it goes on from where it broke. */
  retryFlow(id: string, body: Reason = {}, options: CallOptions = {}): Promise<FlowChanged> {
    return this.send("POST", `flows/${segment(id)}/retry`, { body }, options);
  }

  /**
   * Queue a dead, cancelled, failed or scheduled job again, with its counts reset, and optionally a new
   * payload.
   */
  retryJob(id: string, body: RetryBody = {}, options: CallOptions = {}): Promise<Job> {
    return this.send("POST", `jobs/${segment(id)}/retry`, { body }, options);
  }

  /** Revoke a token by its name or its id: here at once, elsewhere within two seconds. */
  revokeToken(token: string, options: CallOptions = {}): Promise<Token> {
    return this.send("POST", `tokens/${segment(token)}/revoke`, { body: {} }, options);
  }

  /** Add a job of the schedule now, ahead of others, also while it is paused. */
  runSchedule(schedule: string, options: CallOptions = {}): Promise<RunSchedule> {
    return this.send("POST", `schedules/${segment(schedule)}/run`, { body: {} }, options);
  }

  /** Return how many slots the pool should have, for the metrics-api of KEDA and similar autoscalers. */
  scale(pool: string, options: CallOptions = {}): Promise<Scale> {
    return this.send("GET", `pools/${segment(pool)}/scale`, {}, options);
  }

  /** Return a stored schedule, with its next ten fire times. */
  schedule(schedule: string, options: CallOptions = {}): Promise<Schedule> {
    return this.send("GET", `schedules/${segment(schedule)}`, {}, options);
  }

  /**
   * Return the stored schedules by name: what each runs, when, and its next ten fire times. A worker that is
   * unknown, and never had a job, is an error.
   */
  schedules(query: SchedulesQuery = {}, options: CallOptions = {}): Promise<SchedulesAnswer> {
    return this.send("GET", "schedules", { query }, options);
  }

  /** Send a value to a job whose function waits for it, or will, with `ctx.wait_for`. */
  sendSignal(id: string, body: SignalBody, options: CallOptions = {}): Promise<SignalSent> {
    return this.send("POST", `jobs/${segment(id)}/signals`, { body }, options);
  }

  /** Return every token that was ever made, without its secret. */
  tokens(options: CallOptions = {}): Promise<TokensAnswer> {
    return this.send("GET", "tokens", {}, options);
  }

  /** Run the worker now, ahead of all others. The answer does not wait for the run to end. */
  triggerWorker(worker: string, body: Trigger = {}, options: CallOptions = {}): Promise<Triggered> {
    return this.send("POST", `workers/${segment(worker)}/trigger`, { body }, options);
  }

  /** Give a drained node work again. */
  undrainNode(node: string, options: CallOptions = {}): Promise<Node> {
    return this.send("POST", `nodes/${segment(node)}/undrain`, { body: {} }, options);
  }

  /** Return a worker, with its policy, the latest jobs that ran, and the schema of its payload. */
  worker(worker: string, options: CallOptions = {}): Promise<WholeWorker> {
    return this.send("GET", `workers/${segment(worker)}`, {}, options);
  }

  /**
   * Return how long the runs of a worker took, how many ended, and how they failed: in the last hour by
   * default.
   */
  workerRuns(worker: string, query: WorkerRunsQuery = {}, options: CallOptions = {}): Promise<WorkerRunsAnswer> {
    return this.send("GET", `workers/${segment(worker)}/runs`, { query }, options);
  }

  /** Return every worker: schedule, state, last and next run, the numbers of its jobs. */
  workers(query: WorkersQuery = {}, options: CallOptions = {}): Promise<WorkersAnswer> {
    return this.send("GET", "workers", { query }, options);
  }
}
