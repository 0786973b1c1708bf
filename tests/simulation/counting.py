"""Counts what has happened in episodes, so that a test can show that they are not idle: work, and what went wrong."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec

from shiftwork.history.lines import ANSWERS, ARGS, Answered, Asked, Began, Defined, Ended
from shiftwork.simulation.ground.sim_recorder import decoded
from shiftwork.simulation.played import Played

POLICIES = (
    *("rate_limit", "max_running", "concurrency_key", "blocks", "depends_on", "breaker", "cron", "priority"),
    *("overlap", "max_consecutive_failures"),
)


def counted(played: Played) -> Counter[str]:
    """Return how often each thing has happened in an episode."""
    count = Counter(played.met)
    count["jobs"] = played.jobs
    files = decoded(played.texts)
    defined = [
        line for lines in files.values() for line in lines if isinstance(line, Defined) and line.kind == "worker"
    ]
    for policy in POLICIES:
        count[f"workers with {policy}"] += len({line.name for line in defined if line.config.get(policy)})
    tasks = {
        line.name for line in defined if line.kind == "worker" and line.config.get("execution_mode") == "triggered"
    }
    for name, lines in files.items():
        asked: dict[int, Asked] = {}
        for line in lines:
            if isinstance(line, Asked):
                asked[line.number] = line
            elif isinstance(line, Answered):
                count.update(_of_call(asked[line.number], line.answer, tasks))
            elif isinstance(line, Began):
                count["runs"] += 1
                count["runs in processes of their own"] += "child" in name
            elif isinstance(line, Ended):
                count["ends"] += 1
    count["interrupted runs"] = count["runs"] - count["ends"]
    return count


def _of_call(asked: Asked, answer: Any, tasks: Collection[str]) -> Counter[str]:
    """Return what has happened by one call of the store."""
    found: Counter[str] = Counter()
    args = msgspec.convert(asked.args, ARGS[asked.call])
    answer = msgspec.convert(answer, ANSWERS[asked.call])
    match asked.call:
        case "add" | "extend":
            for job, (_, is_new) in zip(args.jobs, answer.added or (), strict=False):
                found["jobs of flows"] += bool(job.needs)
                found["jobs with results of others"] += bool(job.inputs)
                found["jobs added by jobs"] += asked.call == "extend"
                found["twins by a unique key"] += not is_new and job.unique_key is not None
                found["jobs of workers with schedules"] += job.cause == "scheduled" and job.worker not in tasks
                found["jobs of stored schedules"] += job.cause == "scheduled" and job.worker in tasks
        case "keep_step":
            found["steps"] += bool(answer and args.step)
            found["signals taken"] += bool(answer and args.taking)
        case "send":
            found["signals sent"] += answer is not None
        case "amend":
            found[f"changes by people: {args.change}"] += sum(done for done, _ in answer.amended)
        case "claim":
            found["claims of later attempts"] += sum(job.attempt > 1 for job in answer.jobs)
        case "reap":
            found["jobs taken over"] += len(answer.jobs)
        case "finish":
            found["late outcomes"] += answer.accepted.count(False)
            found["workers disabled"] += len(answer.disabled)
        case _:
            pass
    return found
