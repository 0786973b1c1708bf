/** The API's responses. Instants are ISO 8601 in UTC, durations are seconds. */

export type Status = "waiting" | "scheduled" | "queued" | "processing" | "completed" | "failed" | "dead" | "cancelled";
export const STATUSES: Status[] = [
  "queued",
  "processing",
  "waiting",
  "scheduled",
  "failed",
  "completed",
  "dead",
  "cancelled",
];

export interface Me {
  name: string;
  role: "read" | "operate";
  csrf: string | null;
  version: string;
}

export interface Problem {
  severity: "warning" | "critical";
  code: string;
  subject: string;
  message: string;
  remedy: string;
}

export interface Pool {
  name: string;
  kind: "async" | "thread" | "process" | null;
  min_workers: number | null;
  max_workers: number | null;
  bounds_changed: boolean;
  /** Where the bounds come from, in words. */
  bounds_why: string | null;
  /** Over how many processes its slots are spread on each node; null for a process pool. */
  processes: number | "auto" | null;
  instances: number;
  /** The pool's slots. */
  workers: number;
  wanted: number;
  unplaced: string | null;
  failing: { node: string; error: string }[];
  busy: number;
  queued: number;
  running: number;
  scheduled: number;
  /** Jobs that wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  added: number;
  completed: number;
  failed: number;
  oldest_wait_seconds: number | null;
  /** Over the last five minutes. */
  wait_p95_seconds: number | null;
  paused: boolean;
  paused_at: string | null;
  reason: string | null;
}

export interface Instance {
  id: string;
  node: string;
  pool: string;
  pid: number;
  status: "idle" | "busy" | "draining" | "dead";
  slots: number;
  busy: number;
  current_jobs: string[];
  completed: number;
  failed: number;
  memory_bytes: number;
  cpu_percent: number | null;
  lag_seconds: number | null;
  started_at: string;
  last_beat_at: string;
}

export interface Event {
  seq: number;
  at: string;
  name: string;
  subject: string;
  message: string;
  data: Record<string, unknown>;
}

export type PoolDetail = Pool & { instance_list: Instance[]; events: Event[] };

export interface Worker {
  name: string;
  mode: "scheduled" | "triggered" | "continuous";
  schedule: string;
  /** When a person changed its schedule; null if it is the one in the code. */
  rescheduled_at: string | null;
  rescheduled_by: string | null;
  pool: string;
  priority: string;
  timeout_seconds: number | null;
  max_retries: number;
  depends_on: Record<string, string>;
  blocks: string[];
  /** Whether a live node has it; true of every worker while no node is live. */
  known: boolean;
  enabled: boolean;
  reason: string | null;
  running: number;
  queued: number;
  scheduled: number;
  /** Jobs that wait for other jobs of their flow. */
  waiting: number;
  retrying: number;
  dead: number;
  failures: number;
  last_run_at: string | null;
  last_end_at: string | null;
  last_success_at: string | null;
  last_error: string | null;
  last_error_at: string | null;
  failing: boolean;
  next_due_at: string | null;
}

export interface WorkerDetail extends Worker {
  config: Record<string, unknown>;
  runs: Job[];
  payload_schema: Schema | null;
}

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | false;
  prefixItems?: Schema[];
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  writeOnly?: boolean;
}

export interface Job {
  id: string;
  worker: string;
  pool: string;
  status: Status;
  priority: string;
  cause: string;
  attempt: number;
  crashes: number;
  error: string | null;
  created_at: string;
  run_at: string;
  started_at: string | null;
  ended_at: string | null;
  instance: string | null;
  cancelling: boolean;
  unique_key: string | null;
  concurrency_key: string | null;
  flow: string | null;
  tags: string[];
  /** When it is cancelled if it has not started by then. */
  expires_at: string | null;
  progress: { done: number; total: number | null; message: string | null; at: string } | null;
  payload: unknown;
}

export interface Attempt {
  number: number;
  kind: string;
  started_at: string | null;
  ended_at: string | null;
  instance: string | null;
  error: string | null;
  traceback: string | null;
}

export interface LogLine {
  at: string;
  level: string;
  message: string;
  attempt: number;
}

/** The stacks of every thread and task of a job's process, the job's own first. */
export interface Stack {
  job_id: string;
  at: string;
  instance: string;
  pid: number;
  stack: string;
}

export interface WholeJob extends Job {
  result: unknown;
  why: string;
  attempts: Attempt[];
  fence: number;
  trace_id: string | null;
  /** What the job has of its own, instead of its worker's. */
  max_retries: number | null;
  timeout_seconds: number | null;
  logs: LogLine[];
  steps: Step[];
  signals: Signal[];
  /** The signal that its function waits for now. */
  waits_for_signal: string | null;
}

/** A step of a durable function, or a wait of it. */
export interface Step {
  number: number;
  name: string;
  kind: "step" | "sleep" | "wait" | "signal";
  started_at: string;
  ended_at: string;
  until_at: string | null;
  result: unknown;
}

export interface Signal {
  name: string;
  at: string;
  value: unknown;
}

export interface Schedule {
  name: string;
  worker: string;
  pool: string;
  payload: unknown;
  priority: string;
  unique_key: string | null;
  max_retries: number | null;
  timeout_seconds: number | null;
  expires_seconds: number | null;
  tags: string[];
  /** When it fires, in words. */
  schedule: string;
  cron: string | null;
  interval_seconds: number | null;
  timezone: string;
  catch_up: "latest" | "none" | "all";
  overlap: "skip" | "allow";
  paused: boolean;
  paused_at: string | null;
  next_fire_at: string | null;
  /** Ten, on the clock of its own time zone. */
  next_times: string[];
  last_fire_at: string | null;
  last_job: string | null;
  put_at: string | null;
  put_by: string;
}

/** A cron expression or an interval. */
export interface Timing {
  cron: string | null;
  interval_seconds: number | null;
  timezone: string | null;
}

export interface SchedulePreview {
  words: string | null;
  times: string[];
  problem: string | null;
}

export interface Flow {
  id: string;
  created_at: string;
  state: "running" | "broken" | "completed" | "cancelled";
  jobs: number;
  ended: number;
  counts: Partial<Record<Status, number>>;
}

export interface ListedFlow extends Flow {
  /** What it is for: the worker of the last job of the call that began it. */
  worker: string;
  tags: string[];
}

/** The jobs of one worker at one depth of a flow. */
export interface Box {
  worker: string;
  depth: number;
  jobs: number;
  counts: Partial<Record<Status, number>>;
  samples: string[];
  critical: boolean;
  /** The places of the boxes that it waits for. */
  needs: number[];
}

export interface WholeFlow extends Flow {
  boxes: Box[];
  critical_path: {
    id: string;
    worker: string;
    status: Status;
    started_at: string | null;
    ended_at: string | null;
  }[];
}

export interface Explanation {
  id: string;
  status: Status;
  text: string;
  waits: { code: string; by: string | null; why: string; since_at: string | null; until_at: string | null }[];
  expires_at: string | null;
}

export interface Node {
  name: string;
  host: string;
  pid: number;
  started_at: string;
  last_beat_at: string;
  leads: boolean;
  status: "serving" | "draining" | "drained" | "stopping";
  drained_at: string | null;
  cores: number;
  memory_bytes: number;
  /** CPU use of the node and its processes; 100 is one full core. */
  cpu_percent: number | null;
  memory_used_bytes: number | null;
  loop_lag_seconds: number | null;
  store_seconds: number | null;
  labels: string[];
  hosts: string[];
  runs: { pool: string; instances: number; workers: number; busy: number; memory_bytes: number }[];
  failing: { pool: string; error: string }[];
}

export interface Overview {
  at: string;
  store: string;
  status: "ok" | "degraded" | "failing";
  problems: Problem[];
  leader: string | null;
  nodes: string[];
  pools: Pool[];
  counts: Partial<Record<string, number>>;
}

export type Series = (number | null)[];
export type PoolHistory = Record<
  | "queued"
  | "processing"
  | "workers"
  | "wanted"
  | "oldest_wait"
  | "wait_p95"
  | "run_p95"
  | "completed"
  | "failed"
  | "retried",
  Series
>;

export interface History {
  step: number;
  at: (string | number)[];
  pools: Record<string, PoolHistory>;
}

/** A day of a pool; the lists are as long as `at`. */
export interface Course {
  slots: Series;
  queued: Series;
  slot_hours: number;
  most_slots: number;
  most_queued: number;
  waits: { p95: number | null; p99: number | null };
}

export interface WhatIf {
  tried: { min: number; max: number; scale_up_threshold: number };
  jobs: number;
  step: number;
  at: (string | number)[];
  real: Course;
  simulated: Course;
  scaling_steps: number;
  notes: string[];
}

export interface DeadGroup {
  key: string;
  worker: string;
  error: string;
  count: number;
  newest: string | null;
  oldest: string | null;
  sample_ids: string[];
}

export interface Graph {
  nodes: { name: string; pool?: string; enabled?: boolean; running?: number; failures?: number }[];
  edges: { from: string; to: string; kind: "depends_on" | "blocks" }[];
}
