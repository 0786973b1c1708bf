/** The frame around every page: navigation, search, and whether the page is live. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "./data/client";
import { pause, useAge, useLive } from "./data/live";
import { useMe, useOverview } from "./data/queries";
import { LANGUAGES, language, setLanguage, type Tag, t } from "./language";
import { Button } from "./parts/basics";
import { Help } from "./parts/help";
import { Mark } from "./parts/mark";
import { Palette } from "./parts/palette";
import { to, usePlace } from "./router";
import { useShortcuts } from "./shortcuts";
import { setTheme, type Theme, useTheme } from "./theme";
import { clock, count, duration } from "./words";
import { setZone, type Zone, zone, zoneName, zoneSign } from "./zone";

export const PAGES: [string, string, string, string][] = [
  ["overview", t("Overview"), "o", "M3 12h4l2-6 4 12 2-6h6"],
  ["pools", t("Pools"), "p", "M4 6h16M4 12h16M4 18h16M8 4v4M14 10v4M10 16v4"],
  [
    "workers",
    t("Workers"),
    "w",
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v4M12 18v4M2 12h4M18 12h4M5 5l2.5 2.5M16.5 16.5 19 19M5 19l2.5-2.5M16.5 7.5 19 5",
  ],
  ["schedules", t("Schedules"), "s", "M4 5h16v15H4zM4 10h16M8 3v4M16 3v4M8 14h3"],
  ["jobs", t("Jobs"), "j", "M5 4h14v4H5zM5 10h14v4H5zM5 16h14v4H5z"],
  ["flows", t("Flows"), "f", "M4 4h6v5H4zM14 15h6v5h-6zM4 15h6v5H4zM7 9v6M10 17.5h4"],
  ["dead", t("Dead letters"), "d", "M3 6h18v12H3zM3 7l9 6 9-6"],
  ["breakers", t("Breakers"), "b", "M4 12h5l6-6M15 12h5M9 12v.01M15 12v.01"],
  ["nodes", t("Nodes"), "n", "M4 4h16v7H4zM4 13h16v7H4zM7 7.5h.01M7 16.5h.01"],
  ["events", t("Events"), "e", "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2"],
];

export function Shell({ children }: { children: ReactNode }) {
  const [help, setHelp] = useState(false);
  const [search, setSearch] = useState(false);
  const age = useAge();
  useShortcuts({ help: () => setHelp(true), search: () => setSearch(true) });
  return (
    <div className="flex min-h-dvh flex-col lg:grid lg:grid-cols-[13rem_minmax(0,1fr)]">
      <button
        type="button"
        className="sr-only z-50 rounded bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:absolute"
        onClick={() => document.getElementById("main")?.focus()}
      >
        {t("Skip to the page")}
      </button>
      <Side />
      <div className="flex min-w-0 grow flex-col">
        <Bar search={() => setSearch(true)} help={() => setHelp(true)} />
        <Notice />
        <main
          id="main"
          tabIndex={-1}
          data-old={age?.old ? "" : undefined}
          className="min-w-0 grow p-3 outline-none lg:p-4"
        >
          {children}
        </main>
      </div>
      {help && <Help close={() => setHelp(false)} />}
      {search && <Palette close={() => setSearch(false)} />}
    </div>
  );
}

function Side() {
  const { path } = usePlace();
  const here = path[0] ?? "overview";
  const overview = useOverview();
  const me = useMe();
  const old = useAge()?.old;
  const nav = useRef<HTMLElement>(null);
  // On a phone not all pages are visible.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the current page changes with the place
  useEffect(() => {
    const show = () =>
      nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    show();
    window.addEventListener("resize", show);
    return () => window.removeEventListener("resize", show);
  }, [here]);
  const dead = overview.data?.pools.reduce((sum, pool) => sum + pool.dead, 0) ?? 0;
  return (
    <aside className="border-line bg-surface lg:sticky lg:top-0 lg:flex lg:h-dvh lg:flex-col lg:border-r">
      <a href={to(["overview"])} className="flex h-12 items-center gap-2 px-4 font-semibold max-lg:hidden">
        <Mark /> shiftwork
      </a>
      <nav
        ref={nav}
        aria-label={t("Pages")}
        className="flex gap-0.5 overflow-x-auto border-b border-line px-2 py-1 lg:flex-col lg:border-0 lg:py-2"
      >
        {PAGES.map(([name, label, key, drawing]) => (
          <a
            key={name}
            href={to([name])}
            aria-current={here === name ? "page" : undefined}
            title={`g ${key}`}
            className={`flex h-8 shrink-0 items-center gap-2 rounded-md px-2.5 text-sm whitespace-nowrap ${here === name ? "bg-accent-soft font-medium text-accent" : "text-muted hover:bg-sunken hover:text-ink"}`}
          >
            <svg
              aria-hidden="true"
              viewBox="0 0 24 24"
              className="size-4 max-lg:hidden"
              fill="none"
              stroke="currentColor"
              strokeWidth="1.7"
              strokeLinecap="round"
              strokeLinejoin="round"
            >
              <path d={drawing} />
            </svg>
            {label}
            {name === "dead" && dead > 0 && (
              <span
                className={`ml-auto rounded px-1.5 text-xs font-medium ${old ? "bg-sunken text-muted" : "bg-bad-soft text-bad"}`}
              >
                {count(dead)}
              </span>
            )}
          </a>
        ))}
      </nav>
      <div className="mt-auto hidden px-4 py-3 text-xs text-muted lg:block">
        <div className="truncate" title={overview.data?.store}>
          {overview.data?.store}
        </div>
        {me.data?.csrf && <SignOut name={me.data.name} />}
        <div>
          {me.data && `shiftwork ${me.data.version}`}
          {me.data?.role === "read" && t(", read only")}
        </div>
      </div>
    </aside>
  );
}

function SignOut({ name }: { name: string }) {
  const leave = async () => {
    await api.logOut();
    window.location.reload();
  };
  return (
    <div className="flex items-center gap-2">
      <span className="truncate">{name}</span>
      <button type="button" className="link" onClick={leave}>
        {t("Sign out")}
      </button>
    </div>
  );
}

function Bar({ search, help }: { search: () => void; help: () => void }) {
  const { paused } = useLive();
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-2 border-b border-line bg-surface px-3 lg:px-4">
      <span className="flex items-center gap-2 font-semibold lg:hidden">
        <Mark />
      </span>
      <button
        type="button"
        onClick={search}
        className="flex h-8 min-w-0 grow items-center gap-2 rounded-md border border-rim bg-ground px-2.5 text-left text-sm text-muted hover:text-ink sm:max-w-80"
      >
        <span className="truncate">{t("Search workers, pools, jobs…")}</span>
        <kbd className="ml-auto rounded border border-line px-1.5 font-mono text-xs max-sm:hidden">/</kbd>
      </button>
      <div className="ml-auto flex items-center gap-1.5">
        <Status />
        <Button small kind="quiet" aria-pressed={paused} onClick={() => pause(!paused)} title={t("Pause updates (.)")}>
          {paused ? t("▸ Resume") : t("‖ Pause")}
        </Button>
        <ZoneButton />
        <LanguageButton />
        <ThemeButton />
        <Button small kind="quiet" aria-label={t("Keyboard shortcuts")} onClick={help} className="max-sm:hidden">
          ?
        </Button>
      </div>
    </header>
  );
}

/** Whether the page is up to date, and if it is not, how old it is. */
function Status() {
  const { link, paused } = useLive();
  const age = useAge();
  const [look, said] = paused
    ? ["bg-warn-fill", t("Paused")]
    : link === "lost"
      ? ["bg-bad-fill", t("Disconnected")]
      : age?.old
        ? ["bg-bad-fill", t("Old")]
        : link === "live"
          ? ["bg-ok-fill", t("Live")]
          : ["bg-edge", t("Connecting")];
  return (
    <span className="flex items-center gap-1.5 text-xs text-muted">
      <span aria-hidden="true" className={`size-2 rounded-full ${look}`} />
      <span role="status" className="max-sm:sr-only">
        {said}
      </span>
      {age && age.seconds >= SAID_SECONDS && (
        <span className={age.old ? "font-medium whitespace-nowrap text-bad" : "whitespace-nowrap"}>
          {duration(age.seconds)}
        </span>
      )}
    </span>
  );
}

/** From which age on the bar says it. */
const SAID_SECONDS = 3;

/** The zone of all times on the page; a click changes it. */
function ZoneButton() {
  const next: Zone = zone === "utc" ? "local" : "utc";
  const [now, other] = [zoneName(zone), zoneName(next)];
  if (now === other) return <span className="px-2 text-xs text-muted">{now}</span>;
  return (
    <Button
      small
      kind="quiet"
      aria-label={t("Times are in {zone}. Change to {next}", { zone: now, next: other })}
      title={t("Times are in {zone}. Change to {next}", { zone: now, next: other })}
      onClick={() => setZone(next)}
    >
      <span className="max-lg:hidden">{now}</span>
      <span className="lg:hidden">{zoneSign(zone)}</span>
    </Button>
  );
}

/** Each click changes to the next language. */
function LanguageButton() {
  const tags = Object.keys(LANGUAGES) as Tag[];
  const next = tags[(tags.indexOf(language) + 1) % tags.length] as Tag;
  const { name } = LANGUAGES[language];
  return (
    <Button
      small
      kind="quiet"
      aria-label={t("Language: {now}. Change to {next}", { now: name, next: LANGUAGES[next].name })}
      title={t("Language: {now}", { now: name })}
      onClick={() => setLanguage(next)}
    >
      <svg
        aria-hidden="true"
        viewBox="0 0 24 24"
        className="size-3.5"
        fill="none"
        stroke="currentColor"
        strokeWidth="2"
      >
        <path d="M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3.5 6 3.5 9s-.5 6-3.5 9c-3-3-3.5-6-3.5-9s.5-6 3.5-9z" />
      </svg>
    </Button>
  );
}

const NEXT: Record<Theme, [Theme, string]> = {
  system: ["light", "◐"],
  light: ["dark", "☀"],
  dark: ["system", "☾"],
};

function ThemeButton() {
  const theme = useTheme();
  const [next, sign] = NEXT[theme];
  return (
    <Button
      small
      kind="quiet"
      aria-label={t("Theme: {now}. Change to {next}", { now: t(theme), next: t(next) })}
      title={t("Theme: {now}", { now: t(theme) })}
      onClick={() => setTheme(next)}
    >
      <span aria-hidden="true">{sign}</span>
    </Button>
  );
}

/** What is wrong with the page itself: it is old, or paused. It stays in sight. */
function Notice() {
  const { link, paused, pausedAt, waiting, lostAt, silentSince } = useLive();
  const age = useAge();
  const look = "sticky top-12 z-10 flex flex-wrap gap-x-2 border-b px-4 py-1.5 text-sm";
  if (link === "lost" || age?.old) {
    const since = age?.asOf ?? lostAt;
    return (
      <section aria-label={t("Notice")} className={`${look} border-bad bg-bad-soft text-bad`}>
        <p role="alert" className="font-medium break-words">
          {link === "lost"
            ? t("Connection lost; reconnecting automatically.")
            : t(silentSince === null ? "Updates fail: {why}." : "No answer from the store: {why}.", {
                why: (age?.cause ?? "").replace(/[.。]$/, ""),
              })}
        </p>
        {since && (
          <p>
            {t("This page shows the state of {time}, {age} ago.", {
              time: clock(since),
              age: duration(age?.seconds ?? 0),
            })}
          </p>
        )}
      </section>
    );
  }
  if (paused) {
    return (
      <section aria-label={t("Notice")} className={`${look} border-warn bg-warn-soft text-warn`}>
        {pausedAt ? t("Updates are paused since {time}.", { time: clock(pausedAt) }) : t("Updates are paused.")}
        {waiting && ` ${t("Something has changed since.")}`}
      </section>
    );
  }
  return null;
}
