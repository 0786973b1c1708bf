/** Series over time. The numbers under the cursor, or the latest, are in the legend, in words. */

import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { colour, useShade } from "../theme";
import { clock } from "../words";

export interface Line {
  name: string;
  /** A colour of style.css. */
  ink: string;
  values: (number | null)[];
  fill?: boolean;
  step?: boolean;
  dash?: boolean;
}

const SYNC = uPlot.sync("windlass");
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
  steps,
}: {
  label: string;
  /** Epoch seconds. */
  at: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  /** Instants worth a tick on the axis, in epoch seconds. */
  marks?: number[];
  /** What the values may be apart on the axis: halves of a job make no sense, nor do tenths of an hour. */
  steps?: keyof typeof STEPS;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const formatting = useRef(format);
  const marked = useRef(marks);
  const [index, setIndex] = useState<number | null>(null);
  const shade = useShade();
  const shape = JSON.stringify(lines.map(({ name, ink, fill, step, dash }) => [name, ink, fill, step, dash]));
  const data = useMemo(() => [at, ...lines.map((line) => line.values)] as uPlot.AlignedData, [at, lines]);
  const latest = useRef(data);
  latest.current = data;
  formatting.current = format;
  marked.current = marks;

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
        () => marked.current,
        steps,
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
  return (
    <figure className="min-w-0">
      <figcaption className="mb-1 flex flex-wrap items-center gap-x-3 gap-y-0.5 text-xs">
        <span className="font-semibold">{label}</span>
        {lines.map((line) => (
          <span key={line.name} className="inline-flex items-center gap-1 whitespace-nowrap text-muted">
            <span
              aria-hidden="true"
              className={`inline-block w-2.5 ${line.dash ? "h-0 border-t-2 border-dashed" : "h-2.5 rounded-xs"}`}
              style={line.dash ? { borderColor: `var(--${line.ink})` } : { background: `var(--${line.ink})` }}
            />
            {line.name} <span className="text-ink">{value(line)}</span>
          </span>
        ))}
        <span className="ml-auto text-muted">{index === null || !at[here] ? "" : clock(at[here] * 1000, false)}</span>
      </figcaption>
      <div
        ref={box}
        role="img"
        aria-label={`${label}, latest: ${lines.map((line) => `${line.name} ${value(line)}`).join(", ")}`}
        className="relative"
        style={{ height }}
      />
    </figure>
  );
}

/** Whether two ticks may fall into one minute. */
const closeBy = (ticks: number[]) => (ticks[1] ?? 0) - (ticks[0] ?? 0) < 60;

function options(
  width: number,
  height: number,
  lines: Line[],
  format: (value: number) => string,
  seen: (index: number | null) => void,
  marks: () => number[] | undefined,
  steps: keyof typeof STEPS | undefined,
): uPlot.Options {
  const muted = colour("muted");
  const line = colour("line");
  const accent = colour("accent");
  const font = "11px ui-sans-serif, system-ui, sans-serif";
  const axis = { stroke: muted, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  return {
    width,
    height,
    padding: [6, 4, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: SYNC.key }, points: { size: 6 }, drag: { x: false, y: false }, y: false },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        space: 64,
        values: (_, ticks) => ticks.map((tick) => clock(tick * 1000, closeBy(ticks))),
      },
      { ...axis, size: 52, incrs: steps && STEPS[steps], space: 32, values: (_, ticks) => ticks.map(format) },
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
          paths: one.step ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
        };
      }),
    ],
    hooks: {
      setCursor: [(self) => seen(self.cursor.idx ?? null)],
      draw: [
        (self) => {
          for (const mark of marks() ?? []) {
            const x = self.valToPos(mark, "x", true);
            if (x < self.bbox.left || x > self.bbox.left + self.bbox.width) continue;
            const bottom = self.bbox.top + self.bbox.height;
            self.ctx.fillStyle = accent;
            self.ctx.beginPath();
            self.ctx.moveTo(x - 4, bottom);
            self.ctx.lineTo(x + 4, bottom);
            self.ctx.lineTo(x, bottom - 7);
            self.ctx.fill();
          }
        },
      ],
    },
  };
}
