/** Finds pages, pools, nodes, workers and jobs by name, and opens them. */

import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { useBreakers, useOverview, useWorkers } from "../data/queries";
import { t } from "../language";
import { go, to } from "../router";
import { GOES } from "../shortcuts";
import { Dialog } from "./dialog";

interface Hit {
  kind: string;
  label: string;
  address: string;
}

const MOST = 9;
const LOOKS_LIKE_AN_ID = /^[0-9a-f-]{8,}$/i;

export function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const workers = useWorkers();
  const overview = useOverview();
  const breakers = useBreakers();
  const list = useId();
  const hits = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const all: Hit[] = [
      ...Object.values(GOES).map(([page, label]) => ({ kind: t("page"), label, address: to([page]) })),
      ...(overview.data?.pools ?? []).map(({ name }) => ({
        kind: t("pool"),
        label: name,
        address: to(["pools", name]),
      })),
      ...(overview.data?.nodes ?? []).map((name) => ({
        kind: t("node"),
        label: name,
        address: to(["nodes"], { node: name }),
      })),
      ...(workers.data?.workers ?? []).map(({ name }) => ({
        kind: t("worker"),
        label: name,
        address: to(["workers", name]),
      })),
      ...(breakers.data?.breakers ?? []).map(({ name }) => ({
        kind: t("breaker"),
        label: name,
        address: to(["breakers"], { breaker: name }),
      })),
    ];
    const found = all.filter((hit) => hit.label.toLowerCase().includes(wanted)).slice(0, MOST);
    if (!wanted) return found;
    const id = text.trim();
    const exact = LOOKS_LIKE_AN_ID.test(id) ? [{ kind: t("job"), label: id, address: to(["jobs", id]) }] : [];
    return [
      ...exact,
      ...found,
      {
        kind: t("jobs"),
        label: t("Jobs whose payload contains “{text}”", { text: id }),
        address: to(["jobs"], { payload: id }),
      },
      {
        kind: t("jobs"),
        label: t("Jobs whose error contains “{text}”", { text: id }),
        address: to(["jobs"], { error: id }),
      },
    ];
  }, [text, workers.data, overview.data, breakers.data]);
  const take = (hit: Hit | undefined) => {
    if (!hit) return;
    close();
    go(hit.address);
  };
  const steer = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setAt((at + step + hits.length) % hits.length);
    else if (event.key === "Enter") take(hits[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t("Search")} close={close}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={hits[at] && `${list}-${at}`}
        aria-label={t("Search workers, pools, nodes and jobs")}
        className="field w-full"
        placeholder={t("A name, a job id, a word from a payload…")}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={steer}
      />
      <div id={list} role="listbox" aria-label={t("Results")} className="mt-2 flex flex-col">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are handled by the input
          <div
            key={hit.address}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={`flex cursor-pointer items-center gap-3 rounded px-2 py-1.5 text-sm ${index === at ? "bg-accent-soft text-accent" : ""}`}
            onMouseMove={() => setAt(index)}
            onClick={() => take(hit)}
          >
            <span className={`w-14 shrink-0 text-xs ${index === at ? "text-accent" : "text-muted"}`}>{hit.kind}</span>
            <span className="truncate">{hit.label}</span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
