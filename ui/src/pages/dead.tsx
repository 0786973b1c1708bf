import { useState } from "react";
import { useDead, useJob, useJobs } from "../data/queries";
import type { DeadGroup } from "../data/types";
import { Answer, Badge, Button, Empty, Failure, Heading, Panel, Time } from "../parts/basics";
import { BulkButton, EditAndRequeue } from "../parts/jobactions";
import { JobTable } from "../parts/jobtable";
import { Link, to, useParams } from "../router";
import { count, counted } from "../words";

export function DeadPage() {
  const dead = useDead();
  const [params] = useParams();
  const worker = params.get("worker");
  const chosen = (groups: DeadGroup[]) => groups.filter((group) => !worker || group.worker === worker);
  const all = { status: ["dead"], ...(worker ? { worker } : {}) };
  const sum = dead.data && chosen(dead.data.groups).reduce((n, group) => n + group.count, 0);
  return (
    <>
      <Heading
        title="Dead letters"
        about={sum !== undefined && `${counted(sum, "job")} failed for good, by worker and error`}
      >
        {sum ? (
          <>
            <BulkButton action="retry" filter={all} label="Requeue all" what="in the dead-letter queue" />
            <BulkButton action="discard" filter={all} label="Discard all" what="in the dead-letter queue" />
          </>
        ) : null}
      </Heading>
      <Answer of={dead}>
        {({ groups, total, looked_at }) =>
          chosen(groups).length ? (
            <div className="flex flex-col gap-3">
              {looked_at < total && (
                <p className="text-sm text-muted">
                  Of {count(total)} dead jobs, the newest {count(looked_at)} are grouped here.
                </p>
              )}
              {chosen(groups).map((group) => (
                <Group key={`${group.worker} ${group.error}`} group={group} />
              ))}
            </div>
          ) : (
            <Panel>
              <Empty title="No dead letters">Jobs that failed for good wait here until somebody decides.</Empty>
            </Panel>
          )
        }
      </Answer>
    </>
  );
}

/** The longest part of an error without numbers: jobs are grouped by what is around these. */
function gist(error: string): string {
  return error.split(/0x[0-9a-f]+|\d+/).reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}

function Group({ group }: { group: DeadGroup }) {
  const [open, setOpen] = useState(false);
  const [editing, setEditing] = useState<string | null>(null);
  const filter = { status: ["dead"], worker: group.worker, error: gist(group.error) };
  const what = `of ${group.worker} whose error contains “${gist(group.error).trim()}”`;
  return (
    <Panel flush>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 px-3 py-2">
        <Badge tone="bad">{count(group.count)}</Badge>
        <div className="min-w-0 grow basis-60">
          <div className="text-sm">
            <Link className="text-accent underline" href={to(["workers", group.worker])}>
              {group.worker}
            </Link>
            <span className="text-xs text-muted">
              , newest <Time at={group.newest} />
            </span>
          </div>
          <div className="font-mono text-xs break-words text-bad">{group.error}</div>
        </div>
        <div className="flex flex-wrap gap-1.5">
          <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Hide" : "Inspect"}
          </Button>
          {group.sample_ids[0] && (
            <Button small onClick={() => setEditing(group.sample_ids[0] ?? null)}>
              Edit newest
            </Button>
          )}
          <BulkButton small action="retry" filter={filter} label="Requeue" what={what} />
          <BulkButton small action="discard" filter={filter} label="Discard" what={what} />
        </div>
      </div>
      {open && (
        <div className="border-t border-line">
          <Members filter={filter} group={group} />
        </div>
      )}
      {editing && <Edit id={editing} close={() => setEditing(null)} />}
    </Panel>
  );
}

function Members({ filter, group }: { filter: { status: string[]; worker: string; error: string }; group: DeadGroup }) {
  const jobs = useJobs(filter, null, 10);
  return (
    <Answer of={jobs} rows={3}>
      {(page) => (
        <>
          <JobTable jobs={page.jobs} without="worker" empty={<Empty title="They are gone" />} />
          {page.next_after && (
            <p className="px-3 py-2 text-xs">
              <Link href={to(["jobs"], filter)}>All {count(group.count)}</Link>
            </p>
          )}
        </>
      )}
    </Answer>
  );
}

function Edit({ id, close }: { id: string; close: () => void }) {
  const job = useJob(id);
  if (job.data) return <EditAndRequeue job={job.data} close={close} />;
  return job.error ? <Failure error={job.error} again={close} /> : null;
}
