/** A flow as it runs: a column for each depth, a box for the jobs of one worker, the critical path in colour. */

import { useMemo } from "react";
import type { Box, Flow, Status, WholeFlow } from "../data/types";
import { t } from "../language";
import { to } from "../router";
import { compact } from "../words";

/** The most boxes that are readable in one drawing. */
export const MOST_BOXES = 300;
const SIZE = { width: 156, height: 62, across: 26, down: 14, margin: 2 };
/** How wide a share of a bar is at least: two dead jobs of a thousand must be seen. */
const LEAST = 4;

const FILLS: [Status, string][] = [
  ["completed", "fill-ok-fill"],
  ["processing", "fill-accent-fill"],
  ["failed", "fill-warn-fill"],
  ["dead", "fill-bad-fill"],
  ["cancelled", "fill-bad-fill"],
];

interface Spot {
  x: number;
  y: number;
}

export function FlowView({ flow }: { flow: WholeFlow }) {
  const { spots, width, height } = useMemo(() => placed(flow.boxes), [flow.boxes]);
  return (
    <>
      <div className="overflow-auto" role="region" aria-label={t("Jobs of the flow")} tabIndex={0}>
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} className="block" aria-label={t("Flow")}>
          <title>{t("Jobs of the flow")}</title>
          {flow.boxes.map((box, place) =>
            box.needs.map((need) => (
              <Edge
                key={`${flow.boxes[need]?.depth} ${flow.boxes[need]?.worker} ${box.depth} ${box.worker}`}
                one={spots[need] as Spot}
                two={spots[place] as Spot}
                critical={box.critical && (flow.boxes[need]?.critical ?? false)}
              />
            )),
          )}
          {flow.boxes.map((box, place) => (
            <BoxView key={`${box.depth} ${box.worker}`} flow={flow.id} box={box} spot={spots[place] as Spot} />
          ))}
        </svg>
      </div>
      <p className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
        <span className="text-accent">
          <span aria-hidden="true">▬</span> {t("critical path")}
        </span>
        <span>
          <span aria-hidden="true">→</span> {t("runs after")}
        </span>
      </p>
    </>
  );
}

function placed(boxes: Box[]): { spots: Spot[]; width: number; height: number } {
  const { width, height, across, down, margin } = SIZE;
  const rows = new Map<number, number>();
  const spots = boxes.map((box) => {
    const row = rows.get(box.depth) ?? 0;
    rows.set(box.depth, row + 1);
    return { x: margin + box.depth * (width + across), y: margin + row * (height + down) };
  });
  const deepest = Math.max(0, ...boxes.map((box) => box.depth));
  const tallest = Math.max(1, ...rows.values());
  return {
    spots,
    width: 2 * margin + (deepest + 1) * (width + across) - across,
    height: 2 * margin + tallest * (height + down) - down,
  };
}

function BoxView({ flow, box, spot }: { flow: string; box: Box; spot: Spot }) {
  const { width, height } = SIZE;
  const bad = (box.counts.dead ?? 0) + (box.counts.cancelled ?? 0);
  const words = numbersOf(box.counts).join(t(", "));
  const one = box.jobs === 1 ? box.samples[0] : undefined;
  const href = one ? to(["jobs", one]) : to(["jobs"], { flow, worker: box.worker });
  const look = bad ? "stroke-bad" : box.critical ? "stroke-accent" : "stroke-edge";
  const done = box.counts.completed ?? 0;
  const shown =
    box.jobs > 1
      ? t("{n} of {total}", { n: compact(done), total: compact(box.jobs) })
      : t((Object.keys(box.counts)[0] ?? "queued") as Status);
  const worse = bad && box.jobs > 1 ? t(", ") + badWords(box) : "";
  const shares = sharesOf(box, width - 20);
  let from = 0;
  return (
    <a href={href} aria-label={`${box.worker} ${shown}${worse}: ${words}`}>
      <rect
        x={spot.x}
        y={spot.y}
        width={width}
        height={height}
        rx="6"
        strokeWidth={box.critical ? 2.2 : 1.2}
        className={`fill-surface ${look}`}
      />
      <text x={spot.x + 10} y={spot.y + 19} className="fill-ink text-xs font-medium">
        {box.worker.length > 22 ? `${box.worker.slice(0, 21)}…` : box.worker}{" "}
      </text>
      <text x={spot.x + 10} y={spot.y + 36} className="fill-muted text-xs">
        {shown}
        {worse && <tspan className="fill-bad">{worse}</tspan>}
      </text>
      <rect x={spot.x + 10} y={spot.y + 45} width={width - 20} height="6" rx="2" className="fill-sunken" />
      {shares.map(({ status, fill, wide }) => {
        const x = spot.x + 10 + from;
        from += wide;
        return <rect key={status} x={x} y={spot.y + 45} width={wide} height="6" rx="2" className={fill} />;
      })}
    </a>
  );
}

function sharesOf(box: Box, width: number): { status: Status; fill: string; wide: number }[] {
  const shares = FILLS.flatMap(([status, fill]) => {
    const number = box.counts[status] ?? 0;
    return number ? [{ status, fill, wide: Math.max(LEAST, (number / box.jobs) * width) }] : [];
  });
  const sum = shares.reduce((so, share) => so + share.wide, 0);
  return shares.map((share) => ({ ...share, wide: share.wide * Math.min(1, width / sum) }));
}

/** How many jobs have each status, in words. */
export function numbersOf(counts: Flow["counts"]): string[] {
  return Object.entries(counts).map(([status, number]) =>
    t("{n} {status}", { n: number, status: t(status as Status) }),
  );
}

function badWords({ counts }: Box): string {
  return counts.dead
    ? t("{n} dead", { n: compact(counts.dead) })
    : t("{n} cancelled", { n: compact(counts.cancelled ?? 0) });
}

function Edge({ one, two, critical }: { one: Spot; two: Spot; critical: boolean }) {
  const { width, height } = SIZE;
  const [x1, y1, x2, y2] = [one.x + width, one.y + height / 2, two.x, two.y + height / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return (
    <path
      d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 1} ${y2}`}
      fill="none"
      strokeWidth={critical ? 2.4 : 1.3}
      className={critical ? "stroke-accent" : "stroke-edge"}
    />
  );
}
