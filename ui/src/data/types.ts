/** The API's types under the names that the pages use. Instants are ISO 8601 in UTC, durations are seconds. */

import type { JobStatus, WholeWorker } from "shiftwork";

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
  Pool,
  PoolSeries as PoolHistory,
  Problem,
  Schedule,
  Series as History,
  Step,
  Triggered,
  WhatIfAnswer as WhatIf,
  WholeFlow,
  WholeJob,
  Worker,
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
