/** The queries that the pages send. `live` refreshes them by the first word of their key. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useToast } from "../parts/toast";
import { act, ask, type Params, segment, whoami } from "./client";
import { refresh } from "./live";
import type * as t from "./types";

function useAsk<T>(root: string, path: string, params: Params = {}, enabled = true) {
  return useQuery({
    queryKey: [root, path, params],
    queryFn: ({ signal }) => ask<T>(path, params, signal),
    enabled,
  });
}

export const useMe = () => useQuery({ queryKey: ["me"], queryFn: ({ signal }) => whoami(signal), staleTime: Infinity });
export const useMay = () => useMe().data?.role === "operate";
export const useOverview = () => useAsk<t.Overview>("overview", "overview");
/** Beyond an hour the history changes once a minute, and is fetched once a minute. */
export const useHistory = (seconds: number, pool?: string) =>
  useQuery({
    queryKey: [seconds > 3_600 ? "long history" : "history", seconds, pool],
    queryFn: ({ signal }) => ask<t.History>("history", { seconds, pool }, signal),
    placeholderData: keepPreviousData,
  });
export const usePools = () => useAsk<{ pools: t.Pool[] }>("pools", "pools");
export const usePool = (name: string) => useAsk<t.PoolDetail>("pools", `pools/${segment(name)}`);
export interface Tried {
  min: number;
  max: number;
  scale_up_threshold: number | null;
}

/** A simulation takes seconds: it runs when it is asked for, and its answer is kept. */
export const useWhatIf = (pool: string, tried: Tried | null) =>
  useQuery({
    queryKey: ["what if", pool, tried],
    queryFn: ({ signal }) => ask<t.WhatIf>(`pools/${segment(pool)}/what-if`, { ...tried }, signal),
    enabled: tried !== null,
    staleTime: Infinity,
    retry: false,
  });
export const useWorkers = (enabled = true) => useAsk<{ workers: t.Worker[] }>("workers", "workers", {}, enabled);
/** Worker names for fields that suggest them; they may be a few minutes old. */
export const useWorkerNames = (enabled: boolean) =>
  useQuery({
    queryKey: ["names"],
    queryFn: ({ signal }) => ask<{ workers: t.Worker[] }>("workers", {}, signal),
    select: ({ workers }) => workers.map((worker) => worker.name),
    staleTime: 300_000,
    enabled,
  });
export const useWorker = (name: string, enabled = true) =>
  useAsk<t.WorkerDetail>("workers", `workers/${segment(name)}`, {}, enabled);
export const useGraph = () => useAsk<t.Graph>("graph", "graph");
export const useJob = (id: string) => useAsk<t.WholeJob>("jobs", `jobs/${segment(id)}`);
export const useWhy = (id: string, enabled: boolean) =>
  useAsk<t.Explanation>("jobs", `jobs/${segment(id)}/explanation`, {}, enabled);
export function useFlows(after: string | null, limit: number) {
  return useQuery({
    queryKey: ["flows", after, limit],
    queryFn: ({ signal }) =>
      ask<{ flows: t.ListedFlow[]; next_after: string | null }>("flows", { after, limit }, signal),
    placeholderData: keepPreviousData,
  });
}
export const useFlow = (id: string) => useAsk<t.WholeFlow>("flows", `flows/${segment(id)}`);
export function useSchedules(worker: string, after: string | null, limit: number) {
  return useQuery({
    queryKey: ["schedules", worker, after, limit],
    queryFn: ({ signal }) =>
      ask<{ schedules: t.Schedule[]; next_after: string | null }>("schedules", { worker, after, limit }, signal),
    placeholderData: keepPreviousData,
  });
}
export const useSchedule = (name: string) => useAsk<t.Schedule>("schedules", `schedules/${segment(name)}`);
/** What a schedule would mean. The last answer stays while a person types. */
export const usePreview = ({ cron, interval_seconds, timezone }: t.Timing) =>
  useQuery({
    queryKey: ["preview", cron, interval_seconds, timezone],
    queryFn: ({ signal }) => ask<t.SchedulePreview>("schedule-preview", { cron, interval_seconds, timezone }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });
export const useDead = () => useAsk<{ groups: t.DeadGroup[]; total: number; looked_at: number }>("dead", "dead");
export const useNodes = () => useAsk<{ nodes: t.Node[]; instances: t.Instance[] }>("nodes", "nodes");

export interface JobFilter {
  ids?: string[];
  status?: string[];
  worker?: string;
  pool?: string;
  key?: string;
  flow?: string;
  tag?: string;
  error?: string;
  /** The key of a group of dead jobs. */
  group?: string;
  payload?: string;
  created_after?: string;
  created_before?: string;
}

export function useJobs(filter: JobFilter, after: string | null, limit: number) {
  const params: Params = { ...filter, after, limit };
  return useQuery({
    queryKey: ["jobs", "jobs", params],
    queryFn: ({ signal }) => ask<{ jobs: t.Job[]; next_after: string | null }>("jobs", params, signal),
    placeholderData: keepPreviousData,
  });
}

/** Runs an action, shows the result in a toast and refreshes the page. `null` marks an action that changes nothing. */
export function useAct<T = unknown>(done: string | ((answer: T) => string) | null) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: ({ path, body }: { path: string; body?: unknown }) => act<T>(path, body),
    onSuccess: (answer) => {
      if (done === null) return;
      toast("ok", typeof done === "string" ? done : done(answer));
      refresh(client);
    },
    onError: (error) => toast("bad", error.message),
  });
}
