/** The graph of dependencies (solid, with an arrow to the worker that waits) and conflicts (dashed). */

import { useMemo } from "react";
import type { Graph } from "../data/types";
import { t } from "../language";
import { to } from "../router";
import { BOX, layout, type Spot, vicinity } from "./layout";

/** The most workers that are readable in one drawing. */
export const MOST = 300;

/** Draws the graph; with `around`, only that worker and those at most `hops` steps away. */
export function GraphView({ graph, around, hops = 1 }: { graph: Graph; around?: string; hops?: number }) {
  const part = useMemo(() => (around ? vicinity(graph, around, hops, MOST) : graph), [graph, around, hops]);
  const { spots, width, height } = useMemo(() => layout(part), [part]);
  const pairs = part.edges.map((edge) => ({ edge, from: spots.get(edge.from), to: spots.get(edge.to) }));
  return (
    <>
      <div className="overflow-auto" role="region" aria-label={t("Dependencies and conflicts")} tabIndex={0}>
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          className="block"
          aria-label={t("Graph of workers")}
        >
          <title>{t("Dependencies and conflicts of workers")}</title>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0.5 7.5 4 0 7.5z" className="fill-edge" />
            </marker>
          </defs>
          {pairs.map(({ edge, from, to: other }) =>
            from && other ? (
              <Edge key={`${edge.kind} ${edge.from} ${edge.to}`} kind={edge.kind} one={other} two={from} />
            ) : null,
          )}
          {part.nodes.map((node) => {
            const spot = spots.get(node.name) as Spot;
            const look = node.enabled === false ? "stroke-bad" : node.running ? "stroke-accent" : "stroke-edge";
            return (
              <a key={node.name} href={to(["workers", node.name])} aria-label={node.name}>
                <rect
                  x={spot.x}
                  y={spot.y}
                  width={BOX.width}
                  height={BOX.height}
                  rx="6"
                  strokeWidth={node.name === around ? 2.5 : 1.2}
                  className={`fill-surface ${look}`}
                />
                <circle
                  cx={spot.x + 14}
                  cy={spot.y + BOX.height / 2}
                  r="3.5"
                  className={
                    node.enabled === false ? "fill-bad-fill" : node.running ? "fill-accent-fill" : "fill-ok-fill"
                  }
                />
                <text x={spot.x + 25} y={spot.y + BOX.height / 2 + 4} className="fill-ink text-xs">
                  {node.name.length > 20 ? `${node.name.slice(0, 19)}…` : node.name}
                </text>
              </a>
            );
          })}
        </svg>
      </div>
      <p className="mt-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
        <span>
          <span aria-hidden="true">→</span> {t("runs after")}
        </span>
        <span>
          <span aria-hidden="true">╌╌</span> {t("never at the same time")}
        </span>
        <span className="text-accent">{t("● running")}</span>
        <span className="text-bad">{t("● disabled")}</span>
        {part.nodes.length === MOST && <span>{t("only the nearest {n} are shown", { n: MOST })}</span>}
      </p>
    </>
  );
}

/** An edge from `one` to `two`: for a dependency, from the worker that goes first to the one that waits. */
function Edge({ kind, one, two }: { kind: "depends_on" | "blocks"; one: Spot; two: Spot }) {
  const { width, height } = BOX;
  if (kind === "depends_on") {
    const [x1, y1, x2, y2] = [one.x + width, one.y + height / 2, two.x, two.y + height / 2];
    const bend = Math.max(30, (x2 - x1) / 2);
    if (x2 - x1 > BOX.across) {
      // Goes around the columns in between, not through them.
      const [turn, side] = [24, Math.max(y1, y2) + height / 2 + BOX.down / 2 + 4];
      const d = `M${x1} ${y1}C${x1 + turn} ${y1} ${x1 + turn} ${side} ${x1 + BOX.across} ${side}H${x2 - BOX.across}C${x2 - turn} ${side} ${x2 - turn} ${y2} ${x2 - 1} ${y2}`;
      return <path d={d} fill="none" strokeWidth="1.4" markerEnd="url(#arrow)" className="stroke-edge" />;
    }
    return (
      <path
        d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 1} ${y2}`}
        fill="none"
        strokeWidth="1.4"
        markerEnd="url(#arrow)"
        className="stroke-edge"
      />
    );
  }
  const [left, right] = one.x <= two.x ? [one, two] : [two, one];
  const same = left.x === right.x;
  const [x1, y1, y2] = [left.x + width, left.y + height / 2, right.y + height / 2];
  const x2 = same ? right.x + width : right.x;
  const d = same ? `M${x1} ${y1}C${x1 + 36} ${y1} ${x2 + 36} ${y2} ${x2} ${y2}` : `M${x1} ${y1}L${x2} ${y2}`;
  return <path d={d} fill="none" strokeWidth="1.4" strokeDasharray="5 4" className="stroke-warn" />;
}
