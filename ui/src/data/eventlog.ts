/**
 * Events, newest first: the newest page is live, older pages are fetched on request and kept.
 *
 * The list holds still: events that are new since it was shown are counted, and shown when they are asked for.
 */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Event, EventsAnswer } from "shiftwork";

import { useToast } from "../parts/toast";
import { inZone } from "../zone";
import { api, type EventsFilter } from "./client";

const PAGE = 100;
const OLDER = 500;

type Kept = { of: string; events: Event[]; before: number | null; top: number };

const asked = ({ name, ...others }: EventsFilter) => ({ ...others, name: name ? [name] : [] });

/** Joins the live page with the kept events. If there is a gap between them, only the live page is used. */
function joined(kept: Kept | null, of: string, page: EventsAnswer): Kept {
  const fresh = [...page.events].sort((a, b) => b.seq - a.seq);
  const oldest = fresh.at(-1)?.seq ?? 0;
  const newest = kept?.events[0]?.seq ?? 0;
  const top = kept?.of === of && kept.events.length ? kept.top : (fresh[0]?.seq ?? 0);
  if (!kept || kept.of !== of || newest < oldest) return { of, events: fresh, before: page.next_before, top };
  return { ...kept, top, events: [...fresh, ...kept.events.filter((event) => event.seq < oldest)] };
}

export function useEventLog(filter: EventsFilter) {
  const of = JSON.stringify(filter);
  const live = useQuery({
    queryKey: ["events", of],
    queryFn: ({ signal }) => api.pastEvents({ ...asked(filter), limit: PAGE }, { signal }),
  });
  const [kept, setKept] = useState<Kept | null>(null);
  const [busy, setBusy] = useState(false);
  const toast = useToast();
  useEffect(() => {
    if (live.data) setKept((old) => joined(old, of, live.data));
  }, [live.data, of]);

  const current = kept?.of === of ? kept : null;
  const older = async () => {
    if (!current?.before) return;
    setBusy(true);
    try {
      const page = await api.pastEvents({ ...asked(filter), before: current.before, limit: OLDER });
      const more = [...page.events].sort((a, b) => b.seq - a.seq);
      setKept((old) => (old?.of === of ? { ...old, events: [...old.events, ...more], before: page.next_before } : old));
    } catch (error) {
      toast("bad", inZone((error as Error).message));
    } finally {
      setBusy(false);
    }
  };
  const shown = current?.events.filter((event) => event.seq <= current.top);
  return {
    answer: { ...live, data: shown && { events: shown } },
    fresh: (current?.events.length ?? 0) - (shown?.length ?? 0),
    show: () => setKept((old) => old && { ...old, top: old.events[0]?.seq ?? old.top }),
    older: current?.before ? older : null,
    busy,
  };
}
