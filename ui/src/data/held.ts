/**
 * A list of jobs that holds still: its rows keep their places while what they show is kept up to date.
 *
 * New jobs are counted, and shown when they are asked for. A job that no longer belongs to the list keeps its row until
 * then, and a selected one beyond that.
 */

import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import type { JobsAnswer } from "shiftwork";
import { type JobFilter, useJobs } from "./queries";
import type { PlacedJob } from "./types";

interface Held {
  /** Which list it is. */
  of: string;
  ids: string[];
  jobs: Map<string, PlacedJob>;
  /** The job above the first row, from which on the list is read again; null while there is none. */
  above: string | null;
  /** The page of the newest jobs, and the one that begins below `above`, if it has been read. */
  newest: JobsAnswer;
  below: JobsAnswer | null;
}

interface Still {
  jobs: PlacedJob[];
  gone: Set<string>;
  /** How many jobs are new above the first row, and whether there are more. */
  fresh: number;
  more: boolean;
  show: () => void;
  total: number | null;
  next_after: string | null;
}

/** What a query answered to its current question. */
const read = ({ data, isPlaceholderData }: UseQueryResult<JobsAnswer>) => (isPlaceholderData ? null : (data ?? null));

export function useStillJobs(filter: JobFilter, after: string | null, limit: number, chosen: string[]) {
  const of = JSON.stringify([filter, after]);
  const [held, setHeld] = useState<Held | null>(null);
  const current = held?.of === of ? held : null;
  const asked = useJobs(filter, after, limit);
  // The same rows again, wherever they are by now. While nothing is above them, this is the same query.
  const below = read(useJobs(filter, current?.above ?? after, limit));
  const newest = read(asked);
  if (newest && (!current || (current.ids.length === 0 && current.newest !== newest))) setHeld(began(of, newest, []));
  else if (newest && current && (current.newest !== newest || (below && current.below !== below)))
    setHeld(newest.jobs.length ? updated(current, newest, below) : began(of, newest, kept(current, chosen)));
  const show = () => newest && setHeld(began(of, newest, kept(current, chosen)));
  const shown = current ?? held; // the list before, until there is an answer for this one
  return { ...asked, data: shown && asked.data ? still(shown, filter.order === "oldest", show) : undefined };
}

const kept = (held: Held | null, chosen: string[]) =>
  chosen.map((id) => held?.jobs.get(id)).filter((job) => job !== undefined);

/** The list as it is now, behind selected jobs that it no longer has. */
function began(of: string, newest: JobsAnswer, selected: PlacedJob[]): Held {
  const known = new Set(newest.jobs.map((job) => job.id));
  const jobs = [...selected.filter((job) => !known.has(job.id)), ...newest.jobs];
  return { of, ids: jobs.map((job) => job.id), jobs: mapped(jobs), above: null, newest, below: newest };
}

const mapped = (jobs: PlacedJob[]) => new Map(jobs.map((job) => [job.id, job]));

function updated(held: Held, newest: JobsAnswer, below: JobsAnswer | null): Held {
  const jobs = new Map(held.jobs);
  for (const job of [...newest.jobs, ...(below?.jobs ?? [])]) if (jobs.has(job.id)) jobs.set(job.id, job);
  const place = firstOf(held, newest);
  const above = place > 0 ? (newest.jobs[place - 1]?.id ?? held.above) : held.above;
  return { ...held, jobs, above, newest, below: above === held.above ? (below ?? held.below) : null };
}

/** The place of the first row of the list in a page. */
const firstOf = (held: Held, page: JobsAnswer) => page.jobs.findIndex((job) => held.jobs.has(job.id));

function still(held: Held, oldest: boolean, show: () => void): Still {
  const { newest, below } = held;
  const listed = new Set([...newest.jobs, ...(below?.jobs ?? [])].map((job) => job.id));
  const place = firstOf(held, newest);
  const gone = new Set(below ? held.ids.filter((id) => !listed.has(id)) : []);
  const jobs = held.ids.map((id) => held.jobs.get(id)).filter((job) => job !== undefined);
  return {
    jobs: jobs.map((job) => (gone.has(job.id) ? { ...job, position: null, estimate: null } : job)), // they have moved on
    gone,
    fresh: oldest ? newest.jobs.filter(({ id }) => !held.jobs.has(id)).length : place < 0 ? newest.jobs.length : place,
    more: place < 0 && newest.next_after !== null,
    show,
    total: newest.total,
    next_after: (below ?? newest).next_after,
  };
}
