import { useNow } from "../data/live";
import { useNodes } from "../data/queries";
import type { Instance, Node } from "../data/types";
import { t } from "../language";
import { NodeActions } from "../parts/actions";
import { Answer, Badge, Empty, Heading, Meter, Panel, Time } from "../parts/basics";
import { Instances } from "../parts/instances";
import { Link, to, useParams } from "../router";
import { bytes, duration } from "../words";

const LATE_SECONDS = 10;
const ALMOST = 0.9;
const TONES = { serving: "ok", draining: "warn", drained: "plain", stopping: "warn" } as const;

export function NodesPage() {
  const nodes = useNodes();
  const [params] = useParams();
  const wanted = params.get("node");
  return (
    <>
      <Heading title={t("Nodes")} about={nodes.data && t("{n} {n:node|nodes}", { n: nodes.data.nodes.length })} />
      <Answer of={nodes}>
        {(data) =>
          data.nodes.length ? (
            <div className="flex flex-col gap-3">
              {wanted && !data.nodes.some((node) => node.name === wanted) && <Gone name={wanted} />}
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
              <Empty title={t("No node is running")}>
                {t("Start one: shiftwork run MODULE:NAME. Until then jobs wait; none is lost.")}
              </Empty>
            </Panel>
          )
        }
      </Answer>
    </>
  );
}

/** A problem leads here for a node that has vanished. */
function Gone({ name }: { name: string }) {
  return (
    <p className="flex flex-wrap gap-x-3 rounded-md border border-bad bg-bad-soft px-3 py-2 text-sm text-bad">
      {t("Node {name} is not running.", { name })}
      <Link className="underline" href={to(["events"], { subject: name })}>
        {t("Its events")}
      </Link>
    </p>
  );
}

function NodePanel({ node, instances: members, marked }: { node: Node; instances: Instance[]; marked: boolean }) {
  const busy = node.runs.reduce((sum, run) => sum + run.busy, 0);
  const slots = node.runs.reduce((sum, run) => sum + run.workers, 0);
  const instances = node.runs.reduce((sum, run) => sum + run.instances, 0);
  return (
    <Panel
      row
      className={marked ? "ring-2 ring-accent" : ""}
      title={
        <span className="flex flex-wrap items-center gap-2">
          {node.name}
          <Badge tone={TONES[node.status]}>{t(node.status)}</Badge>
          {node.leads && <Badge tone="accent">{t("leader")}</Badge>}
          {node.labels.map((label) => (
            <Badge key={label}>{label}</Badge>
          ))}
        </span>
      }
      side={
        <>
          <Link className="link text-xs" href={to(["events"], { subject: node.name })} data-row-link="">
            {t("Its events")}
          </Link>
          <NodeActions node={node} />
        </>
      }
      flush
    >
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 border-b border-line px-3 py-3 text-sm sm:grid-cols-4 xl:grid-cols-8">
        <Used
          name={t("CPU")}
          value={node.cpu_percent}
          most={node.cores * 100}
          label={t("CPU of {name}", { name: node.name })}
          text={(percent) => t("{percent} % of {n} {n:core|cores}", { percent: Math.round(percent), n: node.cores })}
        />
        <Used
          name={t("Memory")}
          value={node.memory_used_bytes}
          most={node.memory_bytes}
          label={t("Memory of {name}", { name: node.name })}
          text={(used) => t("{n} of {total}", { n: bytes(used), total: bytes(node.memory_bytes) })}
        />
        <Used
          name={t("Slots")}
          value={busy}
          most={slots}
          label={t("Busy slots of {name}", { name: node.name })}
          calm
          text={() => t("{n} of {total} busy", { n: busy, total: slots })}
        />
        <Fact name={t("Heartbeat")}>
          <Beat at={node.last_beat_at} />
        </Fact>
        <Fact name={t("Event loop")}>
          <Late seconds={node.loop_lag_seconds} much={0.25} said="{time} behind" />
        </Fact>
        <Fact name={t("Store")}>
          <Late seconds={node.store_seconds} much={0.5} said="{time} per call" />
        </Fact>
        <Fact name={t("Instances")}>{instances}</Fact>
        <Fact name={t("Started")}>
          <Time at={node.started_at} />
        </Fact>
      </dl>
      {node.failing.map((failure) => (
        <p key={failure.pool} className="border-b border-line bg-bad-soft px-3 py-2 text-sm break-words text-bad">
          {t("Processes of {pool} cannot be started: {error}", failure)}
        </p>
      ))}
      {members.length > 0 ? (
        <Instances rows={members} node={node.name} />
      ) : (
        <Empty title={t("No instances")}>
          {node.status === "drained"
            ? t("The node is drained.")
            : t("The leader starts instances here when there is work.")}
        </Empty>
      )}
      <p className="border-t border-line px-3 py-2 text-xs text-muted">
        {t("{host}, pid {pid}, {n} {n:core|cores}; can host {pools}", {
          host: node.host,
          pid: String(node.pid),
          n: node.cores,
          pools: node.hosts.join(t(", ")) || t("nothing"),
        })}
      </p>
    </Panel>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="mt-0.5">{children}</dd>
    </div>
  );
}

/** The use of a resource, as a number and as a bar. */
function Used({
  name,
  value,
  most,
  label,
  text,
  calm = false,
}: {
  name: string;
  value: number | null;
  most: number;
  label: string;
  text: (value: number) => string;
  /** Full use is not a problem. */
  calm?: boolean;
}) {
  return (
    <Fact name={name}>
      {value === null ? (
        <span className="text-muted">–</span>
      ) : (
        <span className="flex flex-col gap-1.5">
          <span className="whitespace-nowrap">{text(value)}</span>
          <Meter value={value} most={most} label={label} tone={!calm && value > ALMOST * most ? "bad" : "accent"} />
        </span>
      )}
    </Fact>
  );
}

function Late({
  seconds,
  much,
  said,
}: {
  seconds: number | null;
  much: number;
  said: "{time} behind" | "{time} per call";
}) {
  if (seconds === null) return <span className="text-muted">–</span>;
  return <span className={seconds > much ? "font-medium text-bad" : ""}>{t(said, { time: duration(seconds) })}</span>;
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
