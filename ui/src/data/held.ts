/**
 * A list that holds still: its rows keep their places while what they show is kept up to date.
 *
 * New rows are counted, and shown when they are asked for. One that no longer belongs to the list keeps its place until
 * then, and a selected one beyond that.
 */

import { type UseQueryOptions, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Flow, FlowsAnswer, FlowsQuery, JobsAnswer } from "shiftwork";
import { api } from "./client";
import { flowsPage, type JobFilter, jobsPage } from "./queries";
import type { PlacedJob } from "./types";

interface Row {
  id: string;
}

interface Page {
  next_after: string | null;
}

/**
 * A list of the server: how a page of it is read, its rows, and the `after` of a page that begins with a row. The second
 * way asks the server, because the row above is not known.
 */
interface Listed<R extends Row, P extends Page> {
  page: (after: string | null) => UseQueryOptions<P>;
  rowsOf: (page: P) => R[];
  above: (first: R, over: R) => string;
  aboveOf: (first: R) => Promise<string | null>;
}

interface Held<R extends Row, P extends Page> {
  /** Which list it is. */
  of: string;
  ids: string[];
  rows: Map<string, R>;
  /** The place above the first row, from which on the list is read again; null while there is none. */
  above: string | null;
  /** The first page, and the one that begins below `above`, if it has been read. */
  newest: P;
  below: P | null;
}

interface Still<R extends Row> {
  rows: R[];
  gone: Set<string>;
  /** How many rows are new above the first one, and whether there are more. */
  fresh: number;
  more: boolean;
  show: () => void;
  next_after: string | null;
}

/** What a query answered to its current question. */
const read = <P>({ data, isPlaceholderData }: UseQueryResult<P>) => (isPlaceholderData ? null : (data ?? null));

function useStill<R extends Row, P extends Page>(
  of: string,
  after: string | null,
  list: Listed<R, P>,
  { chosen = [], oldest = false }: { chosen?: string[]; oldest?: boolean } = {},
) {
  const { rowsOf } = list;
  const [held, setHeld] = useState<Held<R, P> | null>(null);
  const current = held?.of === of ? held : null;
  const asked = useQuery(list.page(after));
  const newest = read(asked);
  // So many are new at once that no row is left in the first page.
  const lost = !oldest && current && newest && overtaken(current, rowsOf(newest));
  const first = lost ? firstListed(rowsOf, current) : undefined;
  const { data: found } = useQuery({
    queryKey: ["above", of, first?.id],
    queryFn: () => (first ? list.aboveOf(first) : null),
    enabled: first !== undefined,
    staleTime: Infinity,
  });
  const above = current?.above ?? (first ? (found ?? null) : null);
  // The same rows again, wherever they are by now. While nothing is above them, this is the same query.
  const again = read(useQuery(list.page(above ?? after)));
  const below = first && !above ? null : again;
  const began = (page: P, selected: R[]) => startOf(of, page, rowsOf(page), selected);
  if (newest && (!current || (current.ids.length === 0 && current.newest !== newest))) setHeld(began(newest, []));
  else if (newest && current && (current.newest !== newest || (below && current.below !== below)))
    setHeld(
      rowsOf(newest).length
        ? updated(list, { ...current, above }, newest, below)
        : began(newest, kept(current, chosen)),
    );
  const show = () => newest && setHeld(began(newest, kept(current, chosen)));
  const shown = current ?? held; // the list before, until there is an answer for this one
  const data = shown && asked.data ? { ...still(rowsOf, shown, oldest, show), newest: shown.newest } : undefined;
  return { ...asked, data };
}

/** A list of jobs. */
export function useStillJobs(filter: JobFilter, after: string | null, limit: number, chosen: string[]) {
  const list: Listed<PlacedJob, JobsAnswer> = {
    page: (from) => jobsPage(filter, from, limit),
    rowsOf: ({ jobs }) => jobs,
    above: (_, over) => over.id,
    aboveOf: async (first) => {
      const next = await api.jobs({ ...filter, order: "oldest", after: first.id, limit: 1 });
      return next.jobs[0]?.id ?? null;
    },
  };
  const answer = useStill(JSON.stringify([filter, after]), after, list, { chosen, oldest: filter.order === "oldest" });
  if (!answer.data) return { ...answer, data: undefined };
  const { rows, gone, newest, ...rest } = answer.data;
  const jobs = rows.map((job) => (gone.has(job.id) ? { ...job, position: null, estimate: null } : job)); // they have moved on
  return { ...answer, data: { ...rest, jobs, gone, total: newest.total } };
}

/** A list of flows. */
export function useStillFlows(filter: FlowsQuery, after: string | null, limit: number) {
  const list: Listed<Flow, FlowsAnswer> = {
    page: (from) => flowsPage(filter, from, limit),
    rowsOf: ({ flows }) => flows,
    above: placeAbove,
    aboveOf: async (first) => placeAbove(first),
  };
  return useStill(JSON.stringify([filter, after]), after, list);
}

/** A place as the server writes it: seconds, and an id. A microsecond above the row, whose time we know rounded. */
const placeAbove = ({ id, created_at }: Flow) => `${(microseconds(created_at) + 1) / 1e6} ${id}`;

function microseconds(instant: string): number {
  const fraction = /\.(\d{1,6})/.exec(instant)?.[1] ?? "";
  return Math.floor(Date.parse(instant) / 1_000) * 1e6 + Number(fraction.padEnd(6, "0"));
}

function kept<R extends Row>(held: Held<R, Page> | null, chosen: string[]): R[] {
  return chosen.map((id) => held?.rows.get(id)).filter((row) => row !== undefined);
}

/** The list as it is now, behind selected rows that it no longer has. */
function startOf<R extends Row, P extends Page>(of: string, newest: P, listed: R[], selected: R[]): Held<R, P> {
  const known = new Set(listed.map((row) => row.id));
  const rows = [...selected.filter((row) => !known.has(row.id)), ...listed];
  return { of, ids: rows.map((row) => row.id), rows: mapped(rows), above: null, newest, below: newest };
}

const mapped = <R extends Row>(rows: R[]) => new Map(rows.map((row) => [row.id, row]));

function updated<R extends Row, P extends Page>(
  list: Listed<R, P>,
  held: Held<R, P>,
  newest: P,
  below: P | null,
): Held<R, P> {
  const rows = new Map(held.rows);
  const listed = list.rowsOf(newest);
  for (const row of [...listed, ...(below ? list.rowsOf(below) : [])]) if (rows.has(row.id)) rows.set(row.id, row);
  const place = firstOf(held, listed);
  const [over, first] = [listed[place - 1], listed[place]];
  const above = over && first ? list.above(first, over) : held.above;
  return { ...held, rows, above, newest, below: above === held.above ? (below ?? held.below) : null };
}

/** The place of the first row of the list in a page. */
const firstOf = <R extends Row>(held: Held<R, Page>, page: R[]) => page.findIndex((row) => held.rows.has(row.id));

const overtaken = <R extends Row>({ above, ids, rows }: Held<R, Page>, page: R[]) =>
  above === null && ids.length > 0 && page.length > 0 && !page.some((row) => rows.has(row.id));

/** The first row that belongs to the list: those above it are selected, and no longer do. */
function firstListed<R extends Row, P extends Page>(rowsOf: (page: P) => R[], held: Held<R, P>): R | undefined {
  const listed = new Set(rowsOf(held.below ?? held.newest).map((row) => row.id));
  return held.rows.get(held.ids.find((id) => listed.has(id)) ?? "");
}

function still<R extends Row, P extends Page>(
  rowsOf: (page: P) => R[],
  held: Held<R, P>,
  oldest: boolean,
  show: () => void,
): Still<R> {
  const { newest, below } = held;
  const first = rowsOf(newest);
  const listed = new Set([...first, ...(below ? rowsOf(below) : [])].map((row) => row.id));
  const place = firstOf(held, first);
  return {
    rows: held.ids.map((id) => held.rows.get(id)).filter((row) => row !== undefined),
    gone: new Set(below ? held.ids.filter((id) => !listed.has(id)) : []),
    fresh: oldest ? first.filter(({ id }) => !held.rows.has(id)).length : place < 0 ? first.length : place,
    more: place < 0 && newest.next_after !== null,
    show,
    next_after: (below ?? newest).next_after,
  };
}
