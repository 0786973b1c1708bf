import { useMemo } from "react";
import { useGraph } from "../data/queries";
import type { Graph } from "../data/types";
import { t } from "../language";
import { Answer, Button, Empty, Panel } from "../parts/basics";
import { GraphView, MOST } from "../parts/graph";
import { neighbours, whole } from "../parts/layout";
import { Typed } from "../parts/typed";
import { useParams } from "../router";
import { count } from "../words";

const HOPS = ["1", "2", "3"];
const SUGGESTED = 12;

/** All dependencies and conflicts or, if there are too many to read, those around one worker. */
export function GraphPanel() {
  const graph = useGraph();
  return (
    <Panel flush>
      <Answer of={graph}>{(data) => <Chosen graph={data} />}</Answer>
    </Panel>
  );
}

function Chosen({ graph }: { graph: Graph }) {
  const [params, change] = useParams();
  const joined = useMemo(() => whole(graph), [graph]);
  const names = useMemo(() => joined.nodes.map((node) => node.name), [joined]);
  const around = params.get("around") ?? "";
  const hops = HOPS.includes(params.get("hops") ?? "") ? (params.get("hops") as string) : "1";
  if (names.length === 0)
    return (
      <Empty title={t("No dependencies or conflicts")}>{t("Workers with depends_on or blocks appear here.")}</Empty>
    );
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 border-b border-line p-2">
        <Typed
          label={t("Around worker…")}
          className="w-full sm:w-60"
          value={around}
          names={names}
          take={(written) => change({ around: written })}
        />
        {around && (
          <>
            <select
              className="field"
              aria-label={t("Distance")}
              value={hops}
              onChange={(event) => change({ hops: event.target.value === "1" ? null : event.target.value })}
            >
              {HOPS.map((value) => (
                <option key={value} value={value}>
                  {t("{n} {n:step|steps} away", { n: Number(value) })}
                </option>
              ))}
            </select>
            <Button kind="quiet" onClick={() => change({ around: null, hops: null })}>
              {names.length > MOST ? t("Choose another") : t("Show all")}
            </Button>
          </>
        )}
        <span className="ml-auto px-1 text-xs text-muted">
          {t("{workers} {workers:worker|workers}, {rules} {rules:rule|rules}", {
            workers: names.length,
            rules: joined.edges.length,
          })}
        </span>
      </div>
      <div className="p-3">
        {around && !names.includes(around) ? (
          <Empty title={t("{worker} has no dependencies or conflicts", { worker: around })}>
            {t("Check the spelling of its name.")}
          </Empty>
        ) : around || names.length <= MOST ? (
          <GraphView graph={joined} around={around || undefined} hops={Number(hops)} />
        ) : (
          <TooMany graph={joined} pick={(name) => change({ around: name })} />
        )}
      </div>
    </>
  );
}

function TooMany({ graph, pick }: { graph: Graph; pick: (name: string) => void }) {
  const busiest = useMemo(
    () => [...neighbours(graph)].sort((a, b) => b[1].length - a[1].length).slice(0, SUGGESTED),
    [graph],
  );
  return (
    <Empty title={t("{n} workers are too many to show at once", { n: graph.nodes.length })}>
      <p>{t("Choose one above to see the workers around it. These have the most rules:")}</p>
      <div className="mt-3 flex flex-wrap justify-center gap-1.5">
        {busiest.map(([name, others]) => (
          <Button key={name} small onClick={() => pick(name)}>
            {name} <span className="text-muted">{count(others.length)}</span>
          </Button>
        ))}
      </div>
    </Empty>
  );
}
