import { useState } from "react";
import { type JobFilter, useDead, useJob, useJobs, useMay, useWorkers } from "../data/queries";
import type { DeadGroup } from "../data/types";
import { rich, t } from "../language";
import { Answer, Badge, Button, Empty, Failure, Heading, Panel, Time } from "../parts/basics";
import { BulkButton } from "../parts/bulk";
import { EditAndRetry } from "../parts/jobactions";
import { JobTable } from "../parts/jobtable";
import { gist } from "../parts/workerruns";
import { Link, to, useParams } from "../router";
import { compact } from "../words";

const SHOWN = 10;

export function DeadPage() {
  const dead = useDead();
  const [params, change] = useParams();
  const worker = params.get("worker");
  const pool = params.get("pool");
  const workers = useWorkers(Boolean(pool));
  const elsewhere = new Set(workers.data?.workers.filter((one) => pool && one.pool !== pool).map((one) => one.name));
  const chosen = (groups: DeadGroup[]) =>
    groups.filter((group) => (!worker || group.worker === worker) && !elsewhere.has(group.worker));
  const all: JobFilter = { status: ["dead"], ...(worker ? { worker } : {}), ...(pool ? { pool } : {}) };
  const sum = dead.data && chosen(dead.data.groups).reduce((n, group) => n + group.count, 0);
  const what = worker ? t("of {worker} in the dead-letter queue", { worker }) : t("in the dead-letter queue");
  return (
    <>
      <Heading
        title={t("Dead letters")}
        about={
          sum !== undefined &&
          (worker
            ? t("{n} {n:job|jobs} of {worker} failed for good, by worker and error", { n: sum, worker })
            : t("{n} {n:job|jobs} failed for good, by worker and error", { n: sum }))
        }
      >
        {pool && <Badge>{t("pool {pool}", { pool })}</Badge>}
        {(worker || pool) && (
          <Button kind="quiet" onClick={() => change({ worker: null, pool: null })}>
            {t("Show all workers")}
          </Button>
        )}
        {sum ? (
          <>
            <BulkButton action="retry" filter={all} label={t("Retry all")} what={what} />
            <BulkButton action="discard" filter={all} label={t("Discard all")} what={what} />
          </>
        ) : null}
      </Heading>
      <Answer of={dead}>
        {({ groups, total, looked_at }) =>
          chosen(groups).length ? (
            <div className="flex flex-col gap-3">
              {looked_at < total && (
                <p className="text-sm text-muted">
                  {t("The newest {n} of {total} dead jobs are grouped here.", { n: looked_at, total })}
                </p>
              )}
              {chosen(groups).map((group) => (
                <Group key={group.key} group={group} />
              ))}
            </div>
          ) : (
            <Panel>
              <Empty title={t("No dead letters")}>
                {t("Jobs that failed for good stay here until they are retried or discarded.")}
              </Empty>
            </Panel>
          )
        }
      </Answer>
    </>
  );
}

function Group({ group }: { group: DeadGroup }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  const [editing, setEditing] = useState<string | null>(null);
  // No index covers groups, so the list below matches by text, which is close enough. Actions use the group's key.
  const shown = { status: "dead", worker: group.worker, error: gist(group.error) };
  const filter: JobFilter = { group: group.key };
  const what = t("of {worker} that failed with “{error}” (numbers may vary)", {
    worker: group.worker,
    error: group.error,
  });
  return (
    <Panel row flush>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
        <div className="w-14 shrink-0 text-center">
          <div className="text-xl leading-tight font-semibold text-bad">{compact(group.count)}</div>
          <div className="text-xs text-muted">{t("{n:job|jobs}", { n: group.count })}</div>
        </div>
        <div className="min-w-0 grow basis-60">
          <div className="font-mono text-sm break-words text-bad">{group.error}</div>
          <div className="mt-0.5 text-xs text-muted">
            {rich("{worker}, newest {newest}, oldest {oldest}", {
              worker: (
                <Link className="text-accent underline" href={to(["workers", group.worker])}>
                  {group.worker}
                </Link>
              ),
              newest: <Time at={group.newest} />,
              oldest: <Time at={group.oldest} />,
            })}
          </div>
        </div>
        <div className="flex flex-wrap gap-1.5">
          <Button small data-row-link="" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? t("Hide") : t("Inspect")}
          </Button>
          <BulkButton small action="retry" filter={filter} label={t("Retry")} what={what} />
          <BulkButton small action="discard" filter={filter} label={t("Discard")} what={what} />
        </div>
      </div>
      {open && (
        <div className="border-t border-line">
          <Members filter={{ ...shown, status: ["dead"] }} edit={may ? setEditing : null} />
          <p className="border-t border-line px-4 py-2 text-xs">
            <Link href={to(["jobs"], shown)}>{t("Show all {n} {n:job|jobs} like this", { n: group.count })}</Link>
          </p>
        </div>
      )}
      {editing && <Edit id={editing} close={() => setEditing(null)} />}
    </Panel>
  );
}

function Members({ filter, edit }: { filter: JobFilter; edit: ((id: string) => void) | null }) {
  const jobs = useJobs(filter, null, SHOWN);
  return (
    <Answer of={jobs} rows={3}>
      {(page) => (
        <JobTable
          jobs={page.jobs}
          without="worker"
          empty={<Empty title={t("These jobs no longer exist")} />}
          action={(job) => (
            <Button
              small
              disabled={!edit}
              aria-label={t("Edit and retry {id}", { id: job.id })}
              onClick={() => edit?.(job.id)}
            >
              {t("Edit and retry")}
            </Button>
          )}
        />
      )}
    </Answer>
  );
}

function Edit({ id, close }: { id: string; close: () => void }) {
  const job = useJob(id);
  if (job.data) return <EditAndRetry job={job.data} close={close} />;
  return job.error ? <Failure error={job.error} again={close} /> : null;
}
