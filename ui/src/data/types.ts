/** The API's types under the names that the pages use. Instants are ISO 8601 in UTC, durations are seconds. */

import type { JobStatus, Problem, WholeWorker } from "shiftwork";

export type {
  Attempt,
  Box,
  BulkAnswer,
  DeadGroup,
  Event,
  Flow,
  Graph,
  Instance,
  Job,
  JobStatus as Status,
  Log as LogLine,
  Node,
  OverviewAnswer as Overview,
  PlacedJob,
  Pool,
  PoolSeries as PoolHistory,
  Problem,
  RunMinute as WorkerMinute,
  Schedule,
  Series as History,
  Step,
  Triggered,
  WhatIfAnswer as WhatIf,
  WholeFlow,
  WholeJob,
  Worker,
  WorkerRunsAnswer as WorkerRuns,
} from "shiftwork";

export const STATUSES: JobStatus[] = [
  "queued",
  "processing",
  "waiting",
  "scheduled",
  "failed",
  "completed",
  "dead",
  "cancelled",
];

/** What later servers add to a problem: since when (epoch seconds), where it is solved, and where that is explained. */
export type DatedProblem = Omit<Problem, "see"> & { since?: number | null; target?: string | null; see?: string };

/** What later servers add to an explanation: the place in the queue, and when the job is likely to start. */
export type Estimate = {
  position?: number | null;
  position_exact?: boolean;
  /** Seconds from now. */
  estimate?: number | null;
  estimate_basis?: string | null;
};

/** A line of a chart. */
export type Series = (number | null)[];

export type WorkerDetail = WholeWorker & { payload_schema: Schema | null };

/** The arguments of a job. */
export type Payload = Record<string, unknown>;

/** A cron expression or an interval. */
export interface Timing {
  cron: string | null;
  interval_seconds: number | null;
  timezone: string | null;
}

/** The JSON Schema of a payload. */
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
