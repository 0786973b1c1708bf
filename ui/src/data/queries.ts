/** The queries that the pages send. `live` refreshes them by the first word of their key. */

import { keepPreviousData, type UseQueryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { BulkFilter, CallOptions, FlowsAnswer, FlowsQuery, JobsAnswer, JobsQuery } from "shiftwork";

import { useToast } from "../parts/toast";
import { inZone } from "../zone";
import { api, whoami } from "./client";
import { refresh } from "./live";
import type { Timing, WorkerDetail } from "./types";

function useAsk<T>(root: string, name: string, ask: (call: CallOptions) => Promise<T>, enabled = true) {
  return useQuery({ queryKey: [root, name], queryFn: ({ signal }) => ask({ signal }), enabled });
}

export const useMe = () => useQuery({ queryKey: ["me"], queryFn: ({ signal }) => whoami(signal), staleTime: Infinity });
export const useMay = () => useMe().data?.role === "operate";
export const useOverview = () => useAsk("overview", "", (call) => api.overview(call));
/** Beyond an hour the history changes once a minute, and is fetched once a minute. */
export const useHistory = (seconds: number, pool?: string) =>
  useQuery({
    queryKey: [seconds > 3_600 ? "long history" : "history", seconds, pool],
    queryFn: ({ signal }) => api.history({ seconds, pool }, { signal }),
    placeholderData: keepPreviousData,
  });
export const usePools = () => useAsk("pools", "", (call) => api.pools(call));
export const usePool = (name: string) => useAsk("pools", name, (call) => api.pool(name, call));
export interface Tried {
  min: number;
  max: number;
  scale_up_threshold: number | null;
}

/** A simulation takes seconds: it runs when it is asked for, and its answer is kept. */
export const useWhatIf = (pool: string, tried: Tried | null) =>
  useQuery({
    queryKey: ["what if", pool, tried],
    queryFn: ({ signal }) => api.poolWhatIf(pool, { ...tried }, { signal }),
    enabled: tried !== null,
    staleTime: Infinity,
    retry: false,
  });
export const useWorkers = (enabled = true) => useAsk("workers", "", (call) => api.workers({}, call), enabled);
/** Worker names for fields that suggest them; they may be a few minutes old. */
export const useWorkerNames = (enabled: boolean) =>
  useQuery({
    queryKey: ["names"],
    queryFn: ({ signal }) => api.workers({}, { signal }),
    select: ({ workers }) => workers.map((worker) => worker.name),
    staleTime: 300_000,
    enabled,
  });
export const useWorker = (name: string, enabled = true) =>
  useAsk("workers", name, async (call) => (await api.worker(name, call)) as WorkerDetail, enabled);
/** A worker over time: the last hour. */
export const useWorkerRuns = (name: string) => useAsk("runs", name, (call) => api.workerRuns(name, {}, call));
export const useBreakers = () => useAsk("breakers", "", (call) => api.breakers(call));
export const useGraph = () => useAsk("graph", "", (call) => api.graph(call));
export const useJob = (id: string) => useAsk("jobs", `job ${id}`, (call) => api.job(id, call));
export const useWhy = (id: string, enabled: boolean) =>
  useAsk("jobs", `why ${id}`, (call) => api.explanation(id, call), enabled);
export function flowsPage(filter: FlowsQuery, after: string | null, limit: number): UseQueryOptions<FlowsAnswer> {
  const query: FlowsQuery = { ...filter, after, limit };
  return {
    queryKey: ["flows", "page", query],
    queryFn: ({ signal }) => api.flows(query, { signal }),
    placeholderData: keepPreviousData,
  };
}
export const useFlow = (id: string) => useAsk("flows", id, (call) => api.flow(id, call));
export function useSchedules(worker: string, after: string | null, limit: number) {
  return useQuery({
    queryKey: ["schedules", worker, after, limit],
    queryFn: ({ signal }) => api.schedules({ worker, after, limit }, { signal }),
    placeholderData: keepPreviousData,
  });
}
export const useSchedule = (name: string) => useAsk("schedules", name, (call) => api.schedule(name, call));
/** What a schedule would mean. The last answer stays while a person types. */
export const usePreview = ({ cron, interval_seconds, timezone }: Timing) =>
  useQuery({
    queryKey: ["preview", cron, interval_seconds, timezone],
    queryFn: ({ signal }) => api.previewSchedule({ cron, interval_seconds, timezone }, { signal }),
    placeholderData: keepPreviousData,
    retry: false,
  });
export const useDead = () => useAsk("dead", "", (call) => api.dead(call));
export const useNodes = () => useAsk("nodes", "", (call) => api.nodes(call));

/** What a page or a change in bulk selects. */
export type JobFilter = JobsQuery & BulkFilter;

export function jobsPage(filter: JobsQuery, after: string | null, limit: number): UseQueryOptions<JobsAnswer> {
  const query: JobsQuery = { ...filter, after, limit };
  return {
    queryKey: ["jobs", "page", query],
    queryFn: ({ signal }) => api.jobs(query, { signal }),
    placeholderData: keepPreviousData,
  };
}

export const useJobs = (filter: JobsQuery, after: string | null, limit: number) =>
  useQuery(jobsPage(filter, after, limit));

/** Runs an action, shows the result in a toast and refreshes the page. `null` marks an action that changes nothing. */
export function useAct<T = unknown>(done: string | ((answer: T) => string) | null) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: (call: () => Promise<T>) => call(),
    onSuccess: (answer) => {
      if (done === null) return;
      toast("ok", typeof done === "string" ? done : done(answer));
      refresh(client);
    },
    onError: (error) => toast("bad", inZone(error.message)),
  });
}
