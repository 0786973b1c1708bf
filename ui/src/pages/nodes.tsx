import { useNow } from "../data/live";
import { useNodes } from "../data/queries";
import type { Instance, Node } from "../data/types";
import { NodeActions } from "../parts/actions";
import { Answer, Badge, Empty, Heading, Meter, Panel, Time } from "../parts/basics";
import { Table } from "../parts/table";
import { Link, to, useParams } from "../router";
import { bytes, counted } from "../words";
import { Instances } from "./pools";

const LATE_SECONDS = 10;
const TONES = { serving: "ok", draining: "warn", drained: "plain", stopping: "warn" } as const;

export function NodesPage() {
  const nodes = useNodes();
  const [params] = useParams();
  const wanted = params.get("node");
  return (
    <>
      <Heading title="Nodes" about={nodes.data && counted(nodes.data.nodes.length, "node")} />
      <Answer of={nodes}>
        {(data) =>
          data.nodes.length ? (
            <div className="grid gap-3 xl:grid-cols-2">
              {[...data.nodes]
                .sort((a, b) => Number(b.name === wanted) - Number(a.name === wanted))
                .map((node) => (
                  <NodePanel
                    key={node.name}
                    node={node}
                    instances={data.instances.filter((instance) => instance.node === node.name)}
                    marked={node.name === wanted}
                  />
                ))}
            </div>
          ) : (
            <Panel>
              <Empty title="No node runs">
                Start one: windlass run MODULE:NAME. Jobs wait until then; none is lost.
              </Empty>
            </Panel>
          )
        }
      </Answer>
    </>
  );
}

function NodePanel({ node, instances: members, marked }: { node: Node; instances: Instance[]; marked: boolean }) {
  const used = node.runs.reduce((sum, run) => sum + run.memory_bytes, 0);
  const busy = node.runs.reduce((sum, run) => sum + run.busy, 0);
  const workers = node.runs.reduce((sum, run) => sum + run.workers, 0);
  const instances = node.runs.reduce((sum, run) => sum + run.instances, 0);
  return (
    <Panel
      className={marked ? "ring-2 ring-accent" : ""}
      title={
        <span className="flex flex-wrap items-center gap-2">
          {node.name}
          <Badge tone={TONES[node.status]}>{node.status}</Badge>
          {node.leads && <Badge tone="accent">leader</Badge>}
          {node.labels.map((label) => (
            <Badge key={label}>{label}</Badge>
          ))}
        </span>
      }
      side={<NodeActions node={node} />}
      flush
    >
      <dl className="grid grid-cols-2 gap-x-4 gap-y-2 border-b border-line px-3 py-2.5 text-sm sm:grid-cols-4">
        <Fact name="Heartbeat">
          <Beat at={node.last_beat_at} />
        </Fact>
        <Fact name="Up">
          <Time at={node.started_at} />
        </Fact>
        <Fact name="Processes">
          {instances}, {busy} of {workers} busy
        </Fact>
        <Fact name="Memory">
          <span className="flex flex-col gap-1">
            {bytes(used)} of {bytes(node.memory_bytes)}
            <Meter
              value={used}
              most={node.memory_bytes}
              label={`Memory of ${node.name}`}
              tone={used > 0.9 * node.memory_bytes ? "bad" : "accent"}
            />
          </span>
        </Fact>
      </dl>
      {node.failing.map((failure) => (
        <p key={failure.pool} className="border-b border-line bg-bad-soft px-3 py-2 text-sm break-words text-bad">
          Processes of {failure.pool} cannot be started: {failure.error}
        </p>
      ))}
      <Table
        label={`What ${node.name} runs`}
        rows={node.runs}
        id={(run) => run.pool}
        empty={
          <Empty title="It runs nothing">
            {node.status === "drained" ? "It is drained." : "The leader gives it work when there is any."}
          </Empty>
        }
        columns={[
          {
            header: "Pool",
            accessorKey: "pool",
            cell: ({ row: { original } }) => <Link href={to(["pools", original.pool])}>{original.pool}</Link>,
          },
          { header: "Processes", accessorKey: "instances", meta: { numeric: true } },
          {
            header: "Busy",
            accessorKey: "busy",
            meta: { numeric: true },
            cell: ({ row: { original } }) => `${original.busy} of ${original.workers}`,
          },
          {
            header: "Memory",
            accessorKey: "memory_bytes",
            meta: { numeric: true },
            cell: ({ row: { original } }) => bytes(original.memory_bytes),
          },
        ]}
      />
      {members.length > 0 && (
        <details className="border-t border-line">
          <summary className="px-3 py-2 text-sm hover:bg-sunken">
            {counted(members.length, "process", "processes")}, and what they run
          </summary>
          <Instances rows={members} />
        </details>
      )}
      <p className="border-t border-line px-3 py-2 text-xs text-muted">
        {node.host}, pid {node.pid}, {node.cores} cores; can host {node.hosts.join(", ") || "nothing"}
      </p>
    </Panel>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Beat({ at }: { at: string }) {
  const now = useNow();
  const late = (now - Date.parse(at)) / 1000 > LATE_SECONDS;
  return (
    <span className={late ? "font-medium text-bad" : ""}>
      <Time at={at} />
    </span>
  );
}
