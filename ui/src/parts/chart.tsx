/** A chart of series over time. The legend shows the values under the cursor, or the latest. */

import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { t } from "../language";
import { colour, useShade } from "../theme";
import { clock } from "../words";
import { zone } from "../zone";

export interface Line {
  name: string;
  /** The name of a colour in style.css. */
  ink: string;
  values: (number | null)[];
  fill?: boolean;
  step?: boolean;
  dash?: boolean;
  /** Whether the line continues across gaps. */
  through?: boolean;
}

export interface Mark {
  at: number;
  text: string;
  /** The direction of the change, if it has one. */
  way?: "up" | "down";
}

type Range = (least: number, most: number) => [number, number];
const fromZero: Range = (_, most) => [0, most > 0 ? most * 1.08 : 1];

const SYNC = uPlot.sync("shiftwork");
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 60);
const STEPS = {
  whole: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 5e6, 1e7],
  time: [
    1e-3, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400, 604800,
  ],
};

export function Chart({
  label,
  at,
  lines,
  format,
  height = 150,
  marks,
  hint,
  steps,
  range = fromZero,
  span,
}: {
  label: string;
  /** The instants, in epoch seconds. */
  at: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  /** What happened at which instant: a mark on the chart, with its text shown under the cursor. */
  marks?: Mark[];
  /** Shown in place of a mark's text while no mark is under the cursor. */
  hint?: string;
  /** The steps of the axis: half a job makes no sense, nor does a tenth of an hour. */
  steps?: keyof typeof STEPS;
  /** The ends of the axis for the lowest and highest value; by default from zero to just above the highest. */
  range?: Range;
  /** How many seconds the axis of time covers, up to the last instant; by default from the first one on. */
  span?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const formatting = useRef(format);
  const marked = useRef(marks);
  const spanned = useRef(span);
  const [index, setIndex] = useState<number | null>(null);
  const shade = useShade();
  const shape = JSON.stringify(lines.map(({ name, ink, fill, step, dash }) => [name, ink, fill, step, dash]));
  const data = useMemo(() => [at, ...lines.map((line) => line.values)] as uPlot.AlignedData, [at, lines]);
  const latest = useRef(data);
  latest.current = data;
  formatting.current = format;
  marked.current = marks;
  spanned.current = span;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape stands for the lines, the shade for the colours
  useEffect(() => {
    const holder = box.current;
    if (!holder) return;
    const made = new uPlot(
      options(
        holder.clientWidth,
        height,
        lines,
        (value) => formatting.current(value),
        setIndex,
        () => marked.current ?? [],
        steps,
        range,
        () => spanned.current,
      ),
      latest.current,
      holder,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: holder.clientWidth, height }));
    watch.observe(holder);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, shade, height]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);

  const last = at.length - 1;
  const here = index ?? last;
  const value = (line: Line) => {
    const found = line.values[here];
    return found === null || found === undefined ? "–" : format(found);
  };
  const known = lines.some((line) => line.values.some((one) => one !== null));
  const secondsPerPixel = (span ?? (at[last] ?? 0) - (at[0] ?? 0)) / Math.max(1, box.current?.clientWidth ?? 1);
  const shown = index === null ? [] : near(marks ?? [], at, index, MARK_SIZE * secondsPerPixel);
  return (
    <figure className="min-w-0">
      {/* Values have a width of their own, so that the plot below stays where it is while they change. */}
      <figcaption className="mb-1 text-xs">
        <span className="flex items-center gap-3">
          <span className="min-w-0 truncate font-semibold">{label}</span>
          <span className="ml-auto whitespace-nowrap text-muted">
            {index === null || !at[here] ? "\u00a0" : clock(at[here] * 1000)}
          </span>
        </span>
        <span className="flex flex-wrap gap-x-3 gap-y-0.5">
          {lines.map((line) => (
            <span key={line.name} className="inline-flex items-center gap-1 whitespace-nowrap text-muted">
              <span
                aria-hidden="true"
                className={`inline-block w-2.5 ${line.dash ? "h-0 border-t-2 border-dashed" : "h-2.5 rounded-xs"}`}
                style={line.dash ? { borderColor: `var(--${line.ink})` } : { background: `var(--${line.ink})` }}
              />
              {line.name} <span className="inline-block min-w-[4.75rem] text-ink">{value(line)}</span>
            </span>
          ))}
        </span>
      </figcaption>
      <div
        ref={box}
        role="img"
        aria-label={t("{label}, latest: {values}", {
          label,
          values: lines.map((line) => `${line.name} ${value(line)}`).join(t(", ")),
        })}
        className="relative"
        style={{ height }}
      >
        {known || (
          <span className="absolute inset-0 grid place-items-center pb-5 text-xs text-muted">{t("Nothing yet")}</span>
        )}
      </div>
      {marks && (
        <p className="mt-1 h-8 overflow-hidden text-xs text-muted" aria-hidden="true">
          {shown.length > 0
            ? shown.map((mark) => (
                <span key={`${mark.at} ${mark.text}`} className="block truncate text-ink">
                  {clock(mark.at * 1000)} {mark.text}
                </span>
              ))
            : hint}
        </p>
      )}
    </figure>
  );
}

const MOST_SHOWN = 2;

/** Half the width of a mark, in pixels. */
const MARK_SIZE = 4;

/** The latest marks at this point of the chart, or within `reach` seconds of it: points may be closer than pixels. */
function near(marks: Mark[], at: number[], index: number, reach: number): Mark[] {
  const here = at[index];
  if (here === undefined) return [];
  const from = Math.min((here + (at[index - 1] ?? here)) / 2, here - reach);
  const until = Math.max((here + (at[index + 1] ?? Number.POSITIVE_INFINITY)) / 2, here + reach);
  return marks.filter((mark) => mark.at >= from && mark.at < until).slice(-MOST_SHOWN);
}

/** The width of the axis with these labels: none is clipped. */
function widest({ ctx, axes }: uPlot, labels: string[], font: string): number {
  const before = ctx.font;
  ctx.font = font;
  const widths = labels.map((label) => ctx.measureText(label ?? "").width);
  ctx.font = before;
  return Math.max(LEAST_AXIS, Math.ceil(Math.max(0, ...widths)) + (axes[1]?.gap ?? 5) + 4);
}

const LEAST_AXIS = 36;

/** Whether two ticks can fall into the same minute. */
const closeBy = ([first, second]: number[]) => second !== undefined && first !== undefined && second - first < 60;

function options(
  width: number,
  height: number,
  lines: Line[],
  format: (value: number) => string,
  seen: (index: number | null) => void,
  marks: () => Mark[],
  steps: keyof typeof STEPS | undefined,
  range: Range,
  span: () => number | undefined,
): uPlot.Options {
  const muted = colour("muted");
  const line = colour("line");
  const accent = colour("accent");
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: muted, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  return {
    width,
    height,
    padding: [10, 26, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: SYNC.key }, points: { size: 6 }, drag: { x: false, y: false }, y: false },
    ...(zone === "utc" ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") } : {}),
    scales: {
      x: { range: (_, first, last) => [last - (span() ?? last - first), last] },
      y: { range: (_, least, most) => range(least, most) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        space: 64,
        incrs: [1, 2, 5, 10, 15, 30, ...MINUTES],
        values: (_, ticks) => ticks.map((tick) => clock(tick * 1000, closeBy(ticks))),
      },
      {
        ...axis,
        size: (self, labels) => widest(self, labels ?? [], font),
        incrs: steps && STEPS[steps],
        space: 32,
        values: (_, ticks) => ticks.map(format),
      },
    ],
    series: [
      {},
      ...lines.map((one) => {
        const ink = colour(one.ink);
        return {
          label: one.name,
          stroke: ink,
          width: 1.6,
          dash: one.dash ? [4, 4] : undefined,
          fill: one.fill ? ink.replace("rgb(", "rgba(").replace(")", ", 0.13)") : undefined,
          points: { show: false },
          spanGaps: one.through,
          paths: one.step ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
        };
      }),
    ],
    hooks: {
      setCursor: [(self) => seen(self.cursor.idx ?? null)],
      draw: [
        (self) => {
          const { ctx, bbox } = self;
          const size = MARK_SIZE * devicePixelRatio;
          for (const mark of marks()) {
            const x = self.valToPos(mark.at, "x", true);
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            const [foot, tip] = mark.way === "down" ? [0, 1.6 * size] : [1.6 * size, 0];
            ctx.fillStyle = mark.way === "down" ? muted : accent;
            ctx.beginPath();
            ctx.moveTo(x - size, bbox.top + foot);
            ctx.lineTo(x + size, bbox.top + foot);
            ctx.lineTo(x, bbox.top + tip);
            ctx.fill();
          }
        },
      ],
    },
  };
}
