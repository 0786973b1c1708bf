/** Events, newest first: the newest page is live, older pages are fetched on request and kept. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Event, EventsAnswer } from "shiftwork";
import { given } from "../language";
import { useToast } from "../parts/toast";
import { api } from "./client";

const PAGE = 100;
const OLDER = 500;

type Kept = { of: string; events: Event[]; before: number | null };

export interface EventFilter {
  name?: string;
  subject?: string;
}

const asked = ({ name, ...others }: EventFilter) => ({ ...others, name: name ? [name] : [] });

/** Joins the live page with the kept events. If there is a gap between them, only the live page is used. */
function joined(kept: Kept | null, of: string, page: EventsAnswer): Kept {
  const fresh = [...page.events].sort((a, b) => b.seq - a.seq);
  const oldest = fresh.at(-1)?.seq ?? 0;
  const newest = kept?.events[0]?.seq ?? 0;
  if (!kept || kept.of !== of || newest < oldest) return { of, events: fresh, before: page.next_before };
  return { ...kept, events: [...fresh, ...kept.events.filter((event) => event.seq < oldest)] };
}

export function useEventLog(filter: EventFilter) {
  const of = JSON.stringify([filter.name, filter.subject]);
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
      toast("bad", given((error as Error).message));
    } finally {
      setBusy(false);
    }
  };
  return {
    answer: { ...live, data: current ?? undefined },
    older: current?.before ? older : null,
    busy,
  };
}
