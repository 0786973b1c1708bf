"""What is wrong now, and what can be done about it?

`judge` returns a list of named problems, each with its subject, its remedy and where it is solved; the status is that
of the worst of them. It decides from facts that were gathered elsewhere, and asks for nothing itself. The rules about
pools are in `core.health.pool_problems`.

One cause is one row: a backlog is not a problem of its own where another row names what holds it.
"""

from collections.abc import Iterator
from shlex import quote
from typing import Final

from msgspec.structs import replace

from shiftwork.core.health.health_values import Health, HealthFacts, Problem, WorkerFacts, gist, in_order
from shiftwork.core.health.pool_problems import Backlogged, backlogged, dead_letters, of_pools
from shiftwork.core.jobs.transitions import status_word
from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.core.observing.beats import LEASE_STOP_SHARE
from shiftwork.core.words import counted
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import EMPTIED_SECONDS
from shiftwork.core.workers.state import is_failing, reason_of
from shiftwork.sentences import restored, sentence, series

SCHEDULE_GRACE_SECONDS: Final = 10.0
"""How late the job of a fire time, or of a loop's next round, may be created before the schedule counts as missed."""
LEADERLESS_SECONDS: Final = 60.0
"""The same while no node leads, which is a problem of its own and ends by itself if another node is there."""
CAUSES: Final = {"breaker_open", "worker_disabled", "worker_starved", "worker_unknown", "pool_stuck", "pool_unplaced"}
"""The problems that explain a backlog with the same target."""


def judge(facts: HealthFacts, now: float) -> Health:
    """Return what is wrong now, in the order of `in_order`."""
    nodes = [*_leader(facts), *_nodes(facts, now), *_lost(facts, now), *_instances(facts, now), *_keys(facts)]
    workers = [*_workers(facts, now), *_starved(facts), *_untriggered(facts, now), *_unknown(facts)]
    pools = [*of_pools(facts.pools, now), *dead_letters(facts.pools)]
    problems = [*_store(facts, now), *_emptied(facts, now), *nodes, *pools, *workers, *_breakers(facts, now)]
    problems += _stranded(facts)
    problems = in_order(_with_backlogs(problems, [*backlogged(facts.pools, now)]))
    if any(problem.severity == "critical" for problem in problems):
        return Health("failing", problems)
    return Health("degraded" if problems else "ok", problems)


def _with_backlogs(problems: list[Problem], backlogs: list[Backlogged]) -> list[Problem]:
    """Add the backlogs: each to the problem that explains it, or as one of its own."""
    for one in backlogs:
        late = one.problem
        places = [n for n, other in enumerate(problems) if other.target == late.target and other.code in CAUSES]
        if not places:
            problems.append(late)
            continue
        cause = problems[places[0]]
        severity = "critical" if "critical" in (cause.severity, late.severity) else "warning"
        problems[places[0]] = replace(cause, message=series("; ", [cause.message, one.words]), severity=severity)
    return problems


def store_away(error: str, since: float | None, now: float) -> Problem:
    """Return the problem that the store does not answer. `since`: how far the asking process knows that."""
    message = sentence("the store does not answer: {error}", error=gist(error))
    if since is not None:
        message = sentence("the store has not answered for {n} s: {error}", n=f"{now - since:.0f}", error=gist(error))
    remedy = sentence("check that it runs and can be reached; nodes go on by themselves once it is back")
    return Problem("store_unavailable", "store", message, remedy, "critical", since, "store")


def _store(facts: HealthFacts, now: float) -> Iterator[Problem]:
    if facts.store_faults:
        who, fault = min(facts.store_faults.items(), key=lambda one: one[0])
        since = min((one.since for one in facts.store_faults.values() if one.since is not None), default=None)
        message = sentence("writing to the store fails, as seen by {who}: {error}", who=who, error=gist(fault.text))
        if since is not None:
            lasting = max(0.0, now - since)
            message = sentence(
                "writing to the store has failed for {n} s, as seen by {who}: {error}",
                n=f"{lasting:.0f}",
                who=who,
                error=gist(fault.text),
            )
        remedy = sentence(
            "fix the cause that the message names; nothing acknowledged is lost, and nodes go on by themselves"
        )
        yield Problem("store_failing", "store", message, remedy, "critical", since, "store")


def _emptied(facts: HealthFacts, now: float) -> Iterator[Problem]:
    edition = facts.edition
    if edition is None or edition.lost_at is None or not 0 <= now - edition.lost_at < EMPTIED_SECONDS:
        return
    remedy = sentence(
        "find out what emptied it (FLUSHALL, TRUNCATE, a deleted file, a restart without persistence) "
        "and enqueue again what is missing; `shiftwork doctor` shows how durable it is. This message "
        "ends after an hour"
    )
    message = sentence("{n} s ago {what}", n=f"{now - edition.lost_at:.0f}", what=restored(edition.lost, edition.parts))
    yield Problem("store_emptied", "store", message, remedy, since=edition.lost_at, target="store")


def _leader(facts: HealthFacts) -> Iterator[Problem]:
    if not facts.leader:
        message = sentence("no node leads: schedules do not fire, lost jobs are not recovered, pools do not scale")
        yield Problem(
            "no_leader",
            "leader",
            message,
            sentence("start a node with `shiftwork run`; if one runs, its log says why it cannot lead"),
            "critical",
            facts.leaderless_since,
            "leader",
        )


def _nodes(facts: HealthFacts, now: float) -> Iterator[Problem]:
    well = any(now - node.last_beat_at <= node.ttl * LEASE_STOP_SHARE for node in facts.nodes)
    for node in facts.nodes:
        silent = now - node.last_beat_at
        if silent > node.ttl * LEASE_STOP_SHARE:
            message = sentence(
                "node {node} on {host} has not renewed its lease for {n} s",
                node=node.name,
                host=node.host,
                n=f"{silent:.0f}",
            )
            remedy = sentence(
                "check in its log whether it runs and can reach the store; it has stopped its jobs, and other "
                "nodes run them once its lease has ended"
            )
            if not well:
                remedy = sentence(
                    "check in its log whether it runs and can reach the store; it has stopped its jobs, and no other "
                    "node is there to run them: start one"
                )
            target = f"node:{node.name}"
            yield Problem("node_silent", node.name, message, remedy, "critical", node.last_beat_at, target)


def _lost(facts: HealthFacts, now: float) -> Iterator[Problem]:
    there = {node.name for node in facts.nodes}
    for name, lost in facts.lost.items():
        if name not in there:
            message = sentence(
                "node {node} on {host} vanished {n} s ago; other nodes run its jobs",
                node=name,
                host=lost.host,
                n=f"{now - lost.at:.0f}",
            )
            remedy = sentence(
                "find out whether it was killed, out of memory, frozen, or cut off from the store, and start it "
                "again; if it is not coming back, this message ends ten minutes after its last beat"
            )
            yield Problem("node_lost", name, message, remedy, "critical", lost.at, f"node:{name}")


def _instances(facts: HealthFacts, now: float) -> Iterator[Problem]:
    silent_nodes = {node.name for node in facts.nodes if now - node.last_beat_at > node.ttl * LEASE_STOP_SHARE}
    for instance in facts.instances:
        silent = now - instance.last_beat_at
        if silent > instance.ttl and instance.node not in silent_nodes:
            message = sentence(
                "{instance} of pool {pool} has not renewed its lease for {n} s",
                instance=instance.id,
                pool=instance.pool,
                n=f"{silent:.0f}",
            )
            remedy = sentence(
                "check node {node}; other instances run its jobs once its lease has ended", node=instance.node
            )
            target = f"node:{instance.node}"
            yield Problem("instance_silent", instance.id, message, remedy, "critical", instance.last_beat_at, target)
        if instance.stuck_threads:
            stuck = counted(instance.stuck_threads, "thread")
            message = sentence(
                "{threads} of {instance} still running after a timeout", threads=stuck, instance=instance.id
            )
            remedy = sentence(
                "restart the process when convenient; give the functions timeouts of their own wherever they wait"
            )
            yield Problem(
                "thread_stuck",
                instance.id,
                message,
                remedy,
                since=instance.stuck_since,
                target=f"node:{instance.node}",
            )


def _keys(facts: HealthFacts) -> Iterator[Problem]:
    for node in facts.nodes:
        missing = sorted(facts.keys_in_use - {*node.keys})
        if missing:
            message = sentence(
                "node {node} on {host} does not have key {key}, which jobs are encrypted with: it hands such "
                "jobs back and leaves new ones unencrypted or encrypted with another key",
                node=node.name,
                host=node.host,
                key=series(" and ", missing),
            )
            remedy = sentence(
                "give it the same keys as the other processes (SHIFTWORK_ENCRYPTION_KEYS), and restart it"
            )
            yield Problem("key_missing", node.name, message, remedy, "critical", target=f"node:{node.name}")


def _breaker_of(worker: WorkerFacts) -> str | None:
    breaker = worker.config.breaker
    return None if breaker is None else breaker.name or worker.config.name


def _workers(facts: HealthFacts, now: float) -> Iterator[Problem]:
    opened = {name for name, breaker in facts.breakers.items() if breaker.open}
    for worker in facts.workers:
        name, state = worker.config.name, worker.state
        if not state.enabled:
            message = sentence(
                "worker {worker} is disabled: {reason}",
                worker=name,
                reason=reason_of(state) or sentence("no reason given"),
            )
            remedy = sentence("fix the cause, then call enable_worker({worker})", worker=f"{name!r}")
            yield Problem("worker_disabled", name, message, remedy, since=state.changed_at, target=f"worker:{name}")
            continue
        if is_failing(state) and (worker.retrying or not _on_demand(worker)) and _breaker_of(worker) not in opened:
            yield _failing_worker(worker, now)
        missed = None if worker.next_due is None or worker.live else now - worker.next_due
        if missed is not None and missed > (SCHEDULE_GRACE_SECONDS if facts.leader else LEADERLESS_SECONDS):
            message = sentence(
                "worker {worker} was due {n} s ago, and no job was created", worker=name, n=f"{missed:.0f}"
            )
            remedy = sentence(
                "check the log of the node that leads, that it has this worker, and that the clocks agree"
            )
            yield Problem("schedule_missed", name, message, remedy, since=worker.next_due, target=f"worker:{name}")


def _on_demand(worker: WorkerFacts) -> bool:
    return worker.config.execution_mode is WorkerExecutionMode.TRIGGERED


def _failing_worker(worker: WorkerFacts, now: float) -> Problem:
    name, state, most = worker.config.name, worker.state, worker.config.max_consecutive_failures
    error, ago = gist(state.last_error or ""), max(0.0, now - (state.last_error_at or now))
    message = sentence(
        "worker {worker} is failing: the last attempt failed {n} s ago with {error}",
        worker=name,
        n=f"{ago:.0f}",
        error=error,
    )
    if worker.retrying:
        retried = sentence("{jobs} to be retried", jobs=counted(worker.retrying, "job"))
        message = series("; ", [message, retried])
    remedy = sentence(
        "read the traceback in the log, or in the newest job: shiftwork jobs --worker {worker}", worker=name
    )
    if most is not None:
        remedy = series("; ", [remedy, sentence("it is disabled after {n} failed runs in a row", n=most)])
    return Problem("worker_failing", name, message, remedy, since=state.last_error_at, target=f"worker:{name}")


def _starved(facts: HealthFacts) -> Iterator[Problem]:
    """Yield the workers that wait for one that is disabled, and so never run."""
    states = {worker.config.name: worker.state for worker in facts.workers}
    for worker in facts.workers:
        if not worker.state.enabled or (_on_demand(worker) and not worker.live):
            continue
        for needed, demand in worker.config.demands.items():
            state = states.get(needed)
            if state is None or state.enabled or (state.last_success is not None and demand != "fresh"):
                continue
            never = sentence("has never succeeded") if state.last_success is None else sentence("cannot succeed again")
            name, target = worker.config.name, f"worker:{needed}"
            message = sentence(
                "worker {worker} cannot run: it depends on {needed}, which is disabled and {never}",
                worker=name,
                needed=needed,
                never=never,
            )
            remedy = sentence("fix the cause, then call enable_worker({worker})", worker=f"{needed!r}")
            yield Problem("worker_starved", name, message, remedy, since=state.changed_at, target=target)


def _untriggered(facts: HealthFacts, now: float) -> Iterator[Problem]:
    """Yield the workers whose jobs wait for one that only runs on demand, and has never succeeded."""
    known = {worker.config.name: worker for worker in facts.workers}
    for worker in facts.workers:
        subject, since = worker.config.name, worker.waits_since
        if since is None or now - since <= SCHEDULE_GRACE_SECONDS or not worker.state.enabled:
            continue
        for name in worker.config.demands:
            needed = known.get(name)
            if needed is None or needed.live or not needed.state.enabled or not _on_demand(needed):
                continue
            if needed.state.last_success is None:
                message = sentence(
                    "worker {worker} waits for {needed}, which has never succeeded, and nothing runs it",
                    worker=subject,
                    needed=name,
                )
                remedy = sentence(
                    "call trigger_worker({worker}), give it a schedule, or remove it from depends_on",
                    worker=f"{name!r}",
                )
                yield Problem("worker_starved", subject, message, remedy, since=since, target=f"worker:{name}")


def _unknown(facts: HealthFacts) -> Iterator[Problem]:
    for name, unknown in facts.unknown.items():
        message = sentence("1 job waits for worker {worker}, which no running node has", worker=name)
        if unknown.queued != 1:
            n = f"{unknown.queued:,}"
            message = sentence("{n} jobs wait for worker {worker}, which no running node has", n=n, worker=name)
        remedy = sentence(
            "start a node whose app registers {worker}; if it has another name now, give it "
            "aliases=[{alias}]; if it is gone for good: shiftwork cancel --waiting --worker {name}, then "
            "shiftwork forget {gone}",
            worker=name,
            alias=f"{name!r}",
            name=quote(name),
            gone=quote(name),
        )
        yield Problem("worker_unknown", name, message, remedy, since=unknown.since, target=f"worker:{name}")


def _stranded(facts: HealthFacts) -> Iterator[Problem]:
    for one in facts.stranded:
        number = counted(one.jobs, "job") if one.all_counted else sentence("{n} or more jobs", n=f"{one.jobs:,}")
        message = sentence(
            "{jobs} of flow {flow} cannot run: job {id} of {worker} is {state}",
            jobs=number,
            flow=one.flow,
            id=one.job_id,
            worker=one.worker,
            state=status_word(one.status),
        )
        remedy = sentence(
            "fix the cause, then retry it: shiftwork retry {id}; or cancel what waits: shiftwork cancel --flow {flow}",
            id=quote(one.job_id),
            flow=quote(one.flow),
        )
        yield Problem("jobs_stranded", one.flow, message, remedy, since=one.since, target=f"flow:{one.flow}")


def _breakers(facts: HealthFacts, now: float) -> Iterator[Problem]:
    for name, breaker in facts.breakers.items():
        status = breaker.status(now)
        if status == "closed":
            continue
        if breaker.forced_by is not None and status == "open":
            yield _held_open(name, breaker, now)
            continue
        when = (
            sentence("one run probes it in {n} s", n=f"{breaker.until - now:.0f}")
            if status == "open"
            else sentence("the next run probes it")
        )
        message = sentence(
            "breaker {breaker} is {state} after {failures}; {next}",
            breaker=name,
            state=sentence("open") if status == "open" else sentence("half-open"),
            failures=counted(len(breaker.failed_at), "failure"),
            next=when,
        )
        failing = [one for one in facts.workers if _breaker_of(one) == name and is_failing(one.state)]
        if failing:
            newest = max(failing, key=lambda one: one.state.last_error_at or 0.0)
            error = gist(newest.state.last_error or "")
            fails = sentence("{worker} fails with {error}", worker=newest.config.name, error=error)
            message = series("; ", [message, fails])
        remedy = sentence(
            "fix what it guards; it closes when a probe succeeds, or at once: shiftwork breakers close {name}",
            name=quote(name),
        )
        yield Problem("breaker_open", name, message, remedy, since=breaker.opened_at, target=f"breaker:{name}")


def _held_open(name: str, breaker: BreakerState, now: float) -> Problem:
    message = sentence("breaker {breaker} is held open by {name}", breaker=name, name=breaker.forced_by)
    if breaker.reason:
        message = sentence(
            "breaker {breaker} is held open by {name}: {reason}",
            breaker=name,
            name=breaker.forced_by,
            reason=breaker.reason,
        )
    if breaker.probe_at is not None:
        probe = sentence("one run probes it in {n} s", n=f"{breaker.probe_at - now:.0f}")
        message = series("; ", [message, probe])
    remedy = sentence("when its runs may start again: shiftwork breakers close {breaker}", breaker=quote(name))
    return Problem("breaker_open", name, message, remedy, since=breaker.opened_at, target=f"breaker:{name}")
