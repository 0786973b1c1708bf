/** The small parts every page is made of. */

import type { ButtonHTMLAttributes, ReactNode } from "react";
import { ApiError } from "../data/client";
import { useNow, useSaid } from "../data/live";
import type { Status } from "../data/types";
import { t } from "../language";
import { ROW } from "../shortcuts";
import { ago, duration, millis, moment } from "../words";
import { inZone, zone, zoneName } from "../zone";
import { Mark } from "./mark";

export type Tone = "plain" | "accent" | "ok" | "warn" | "bad";

const BADGE: Record<Tone, string> = {
  plain: "bg-sunken text-muted",
  accent: "bg-accent-soft text-accent",
  ok: "bg-ok-soft text-ok",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};

export function Badge({ tone = "plain", children, title }: { tone?: Tone; children: ReactNode; title?: string }) {
  return (
    <span
      title={title}
      className={`inline-flex items-center gap-1 rounded px-1.5 py-px text-xs font-medium whitespace-nowrap ${BADGE[tone]}`}
    >
      {children}
    </span>
  );
}

const STATUS: Record<Status, [Tone, string]> = {
  scheduled: ["plain", "◷"],
  queued: ["plain", "≡"],
  waiting: ["plain", "◌"],
  processing: ["accent", "▸"],
  completed: ["ok", "✓"],
  failed: ["warn", "↻"],
  dead: ["bad", "✕"],
  cancelled: ["plain", "⊘"],
};

type Shown = {
  status: Status;
  cancelling?: boolean;
  stranded?: boolean;
  waitsFor?: string | null;
  run_at?: string | null;
};

export function StatusBadge({ status, cancelling = false, stranded = false, waitsFor = null, run_at = null }: Shown) {
  const now = useNow();
  const [tone, sign] = STATUS[status];
  const why = stranded ? t("A job before it is dead or cancelled: retry that one, or cancel the flow") : undefined;
  return (
    <Badge
      tone={stranded ? "bad" : waitsFor ? "accent" : tone}
      title={status === "failed" ? t("An attempt failed; it will be retried") : why}
    >
      <span aria-hidden="true">{sign}</span>
      {cancelling
        ? t("cancelling")
        : stranded
          ? t("cannot run")
          : waitsFor
            ? t("waits for {signal}", { signal: waitsFor })
            : status !== "failed"
              ? t(status)
              : run_at
                ? t("failed, retries {when}", { when: ago(Math.max(now, millis(run_at)), now) })
                : t("failed, to be retried")}
    </Badge>
  );
}

const BUTTON = {
  plain: "border border-rim bg-surface text-ink hover:bg-sunken",
  primary: "border border-accent bg-accent text-on-accent hover:opacity-90",
  danger: "border border-rim bg-surface text-bad hover:bg-bad-soft",
  quiet: "border border-transparent text-muted hover:bg-sunken hover:text-ink",
};

export function Button({
  kind = "plain",
  small = false,
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: keyof typeof BUTTON; small?: boolean }) {
  const size = small ? "h-6 px-2 text-xs" : "h-8 px-3 text-sm";
  return (
    <button
      type="button"
      {...rest}
      className={`inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap disabled:opacity-55 ${size} ${BUTTON[kind]} ${className}`}
    />
  );
}

export function Panel({
  title,
  side,
  children,
  flush = false,
  row = false,
  className = "",
}: {
  title?: ReactNode;
  side?: ReactNode;
  children: ReactNode;
  flush?: boolean;
  /** Whether it is one of several, which the keys steer through. */
  row?: boolean;
  className?: string;
}) {
  return (
    <section {...(row ? ROW : {})} className={`min-w-0 rounded-lg border border-line bg-surface ${className}`}>
      {(title || side) && (
        <header className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1.5">
          {title && <h2 className="text-sm font-semibold">{title}</h2>}
          <div className="ml-auto flex flex-wrap items-center gap-2">{side}</div>
        </header>
      )}
      <div className={!flush ? "p-3" : title || side ? "overflow-clip rounded-b-lg" : "overflow-clip rounded-lg"}>
        {children}
      </div>
    </section>
  );
}

export function Heading({ title, about, children }: { title: ReactNode; about?: ReactNode; children?: ReactNode }) {
  return (
    <div className="mb-3 flex min-h-8 flex-wrap items-center gap-x-3 gap-y-2">
      <h1 className="flex min-w-0 flex-wrap items-center gap-2 text-lg font-semibold break-words">{title}</h1>
      {about && <span className="text-sm text-muted">{about}</span>}
      <div className="ml-auto flex flex-wrap items-center gap-2">{children}</div>
    </div>
  );
}

export function Stat({
  label,
  value,
  note,
  tone,
  href,
}: {
  label: string;
  value: ReactNode;
  note?: ReactNode;
  tone?: Tone;
  href?: string;
}) {
  const colour = tone === "bad" ? "text-bad" : tone === "warn" ? "text-warn" : tone === "ok" ? "text-ok" : "text-ink";
  const inner = (
    <>
      <div className="text-xs text-muted">{label}</div>
      <div className={`mt-0.5 text-xl leading-tight font-semibold ${colour}`}>{value}</div>
      <div className="mt-0.5 min-h-4 text-xs text-pretty text-muted">{note}</div>
    </>
  );
  const look =
    "block min-w-0 rounded-lg border border-line bg-surface px-3 py-2 break-words [&_time]:whitespace-normal";
  return href ? (
    <a className={`${look} hover:border-edge`} href={href}>
      {inner}
    </a>
  ) : (
    <div className={look}>{inner}</div>
  );
}

/** An instant as its distance from now. One that is `past` is never said to come, though the clocks may differ a little. */
export function Time({
  at,
  none = "–",
  past = false,
}: {
  at: string | null | undefined;
  none?: string;
  past?: boolean;
}) {
  const ms = Date.parse(at ?? "");
  const said = useSaid((now) => (at ? ago(past ? Math.min(ms, now) : ms, now) : none));
  if (!at) return <span className="text-muted">{none}</span>;
  return (
    <time
      dateTime={at}
      title={[t("{time} in {zone}", { time: moment(ms), zone: zoneName(zone) }), ...(zone === "utc" ? [] : [at])].join(
        "\n",
      )}
      className="whitespace-nowrap"
    >
      {said}
    </time>
  );
}

/** How long something has lasted that began at this instant. */
export function Lasting({ at }: { at: number }) {
  const said = useSaid((now) => t("for {time}", { time: duration(Math.max(0, Math.floor((now - at) / 1_000))) }));
  return (
    <time
      dateTime={new Date(at).toISOString()}
      title={t("{time} in {zone}", { time: moment(at), zone: zoneName(zone) })}
      className="whitespace-nowrap"
    >
      {said}
    </time>
  );
}

/** A proportion as a thin bar. */
export function Meter({
  value,
  most,
  label,
  tone = "accent",
}: {
  value: number;
  most: number;
  label: string;
  tone?: Tone;
}) {
  const share = most > 0 ? Math.min(1, value / most) : 0;
  const fill = {
    plain: "bg-edge",
    accent: "bg-accent-fill",
    ok: "bg-ok-fill",
    warn: "bg-warn-fill",
    bad: "bg-bad-fill",
  }[tone];
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={0}
      aria-valuemax={Math.max(most, value)}
      className="h-1.5 w-full min-w-12 overflow-hidden rounded-full bg-sunken"
    >
      <div className={`h-full rounded-full ${fill}`} style={{ width: `${share * 100}%` }} />
    </div>
  );
}

export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {items.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

// ── empty, loading, failed ──────────────────────────────────────────────────────────────────────────────────────────

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-1 px-4 py-10 text-center">
      <Mark className="mb-2 size-8 text-rim" />
      <div className="text-sm font-medium">{title}</div>
      {children && <div className="max-w-md text-sm text-muted">{children}</div>}
    </div>
  );
}

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div role="status" aria-label={t("Loading")} className="flex flex-col gap-2 p-3">
      {Array.from({ length: rows }, (_, row) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: they never change
          key={row}
          className="h-5 animate-pulse rounded bg-sunken"
          style={{ width: `${92 - ((row * 17) % 40)}%` }}
        />
      ))}
    </div>
  );
}

/** The server's title, or the status of what a proxy sent. */
const titleOf = ({ code, status, title }: ApiError) =>
  code.startsWith("http-") ? t("Error {n}", { n: status }) : inZone(title);

export function Failure({ error, again }: { error: Error; again?: () => void }) {
  const title = error instanceof ApiError ? titleOf(error) : t("Something went wrong");
  return (
    <div role="alert" className="flex flex-col items-center gap-1 px-4 py-10 text-center">
      <div className="text-sm font-semibold text-bad">{title}</div>
      <div className="max-w-lg text-sm break-words text-muted">{inZone(error.message)}</div>
      {again && (
        <Button className="mt-2" onClick={again}>
          {t("Try again")}
        </Button>
      )}
    </div>
  );
}

/** Shows the data, a placeholder or the error. Data stays on the page while it is refetched, and if that fails. */
export function Answer<T>({
  of,
  children,
  rows,
}: {
  of: { data: T | undefined; error: Error | null; refetch: () => unknown };
  children: (data: T) => ReactNode;
  rows?: number;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <Failure error={of.error} again={() => of.refetch()} />;
  return <Loading rows={rows} />;
}
