/**
 * A list of jobs that holds still: its rows keep their places while what they show is kept up to date.
 *
 * New jobs are counted, and shown when they are asked for. A job that no longer belongs to the list keeps its row until
 * then, and a selected one beyond that.
 */

import { useState } from "react";
import type { JobsAnswer } from "shiftwork";
import { type JobFilter, useJobs } from "./queries";
import type { Job } from "./types";

interface Held {
  /** Which list it is. */
  of: string;
  ids: string[];
  jobs: Map<string, Job>;
  /** The job above the first row, from which on the list is read again; null while there is none. */
  above: string | null;
  /** The newest page that has been taken in. */
  seen: JobsAnswer[];
}

export interface Still {
  jobs: Job[];
  gone: Set<string>;
  /** How many jobs are new above the first row, and whether there are more. */
  fresh: number;
  more: boolean;
  show: () => void;
  next_after: string | null;
}

export function useStillJobs(filter: JobFilter, after: string | null, limit: number, chosen: string[]) {
  const of = JSON.stringify([filter, after]);
  const [held, setHeld] = useState<Held | null>(null);
  const current = held?.of === of ? held : null;
  const newest = useJobs(filter, after, limit);
  // The same rows again, wherever they are by now. While nothing is above them, this is the same query.
  const below = useJobs(filter, current?.above ?? after, limit);
  const pages = [newest, below].flatMap(({ data, isPlaceholderData }) => (data && !isPlaceholderData ? [data] : []));
  if (newest.data && !newest.isPlaceholderData) {
    if (!current || current.ids.length === 0) {
      if (current?.seen[0] !== newest.data) setHeld(began(of, newest.data, []));
    } else if (pages.some((page, place) => current.seen[place] !== page)) setHeld(updated(current, pages));
  }
  const show = () => newest.data && setHeld(began(of, newest.data, kept(current, chosen)));
  return { answer: { ...newest, data: current ? still(current, newest.data, show) : undefined } };
}

const kept = (held: Held | null, chosen: string[]) =>
  chosen.map((id) => held?.jobs.get(id)).filter((job) => job !== undefined);

/** The list as it is now, behind selected jobs that it no longer has. */
function began(of: string, page: JobsAnswer, selected: Job[]): Held {
  const known = new Set(page.jobs.map((job) => job.id));
  const jobs = [...selected.filter((job) => !known.has(job.id)), ...page.jobs];
  return { of, ids: jobs.map((job) => job.id), jobs: mapped(jobs), above: null, seen: [page] };
}

const mapped = (jobs: Job[]) => new Map(jobs.map((job) => [job.id, job]));

function updated(held: Held, pages: JobsAnswer[]): Held {
  const jobs = new Map(held.jobs);
  for (const job of pages.flatMap((page) => page.jobs)) if (jobs.has(job.id)) jobs.set(job.id, job);
  const place = firstOf(held, pages[0]);
  const above = place > 0 ? (pages[0]?.jobs[place - 1]?.id ?? held.above) : held.above;
  return { ...held, jobs, above, seen: [pages[0], pages[1] ?? held.seen[1]].filter((page) => page !== undefined) };
}

/** The place of the first row of the list in a page. */
const firstOf = (held: Held, page: JobsAnswer | undefined) =>
  page?.jobs.findIndex((job) => held.jobs.has(job.id)) ?? -1;

function still(held: Held, newest: JobsAnswer | undefined, show: () => void): Still {
  const listed = new Set(held.seen.flatMap((page) => page.jobs.map((job) => job.id)));
  const place = firstOf(held, newest);
  const fresh = (place < 0 ? newest?.jobs : newest?.jobs.slice(0, place)) ?? [];
  return {
    jobs: held.ids.map((id) => held.jobs.get(id)).filter((job) => job !== undefined),
    gone: new Set(held.ids.filter((id) => !listed.has(id))),
    fresh: fresh.length,
    more: place < 0 && newest?.next_after !== null,
    show,
    next_after: held.seen.at(-1)?.next_after ?? null,
  };
}
