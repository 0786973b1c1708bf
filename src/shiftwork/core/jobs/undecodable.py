"""What becomes of a job whose payload does not fit its function on the node that claimed it.

During a deploy, nodes of several versions of an app are live, and one of them may have sent an argument that another
does not know. So the job goes back, uncounted, for a node of another version:

    a live node of a version that has not refused it yet could run it    handed back, due again after a short delay
    every version that is live has refused it                            dead
    it has been handed back like this for an hour                        dead

The version of a node is a digest of the payload schemas of its workers (`NodeBeat.version`). The job's attempts record
which versions have refused it. Around the time when it is due again, the node that refused it leaves the worker to the
others, so that one of them gets the job.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Attempt, JobStatus
from shiftwork.core.observing.beats import Beat

PATIENCE_SECONDS: Final = 3600.0
"""How long a job is handed back for a node of another version, which may have no free slot."""
SHORTEST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 30.0
DELAY_SHARE: Final = 0.2
"""The delay grows with the time since the first refusal: it is this part of it, within the two bounds."""
ELSEWHERE_SECONDS: Final = 10.0
"""How long a node that has refused a job leaves the worker to nodes of other versions once the job is due again."""


def version_of(schemas: Mapping[str, bytes | None]) -> str:
    """Return the version of an app: a digest of its workers' names and of the schemas of their payloads."""
    digest = blake2b(digest_size=4)
    for name, schema in sorted(schemas.items()):
        for part in (name.encode(), schema or b""):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def reviewed(outcome: Outcome, version: str, attempts: Sequence[Attempt], nodes: Iterable[Beat]) -> Outcome:
    """Return what becomes of a job that a node of this version has refused, and that is dead if nothing else helps.

    `attempts` are those that the job had before; `nodes` are the beats of the live nodes.
    """
    before = _refusals(attempts)
    refused = {attempt.version or "": attempt.instance for attempt in before}
    known = version in refused
    report = outcome.report
    refused.setdefault(version, report.instance if report else None)
    able = {beat.machine.version for beat in nodes if beat.machine is not None and _could_run(beat, outcome)}
    waited = max(0.0, outcome.ended_at - before[0].ended_at) if before else 0.0
    if able - refused.keys() and waited < PATIENCE_SECONDS:
        delay = min(max(SHORTEST_DELAY, DELAY_SHARE * waited), LONGEST_DELAY)
        return replace(
            outcome,
            status=JobStatus.QUEUED,
            run_at=outcome.ended_at + delay,
            attempt=max(0, outcome.attempt - 1),
            # One report for each version is enough, however often the job is handed back.
            report=None if known or report is None else replace(report, version=version),
            marks=EndKind.UNDECODABLE,
        )
    if not before:
        return outcome
    error = f"{outcome.error}; {_why_dead(refused, sorted(able - refused.keys()))}"
    return replace(outcome, error=error, report=None if report is None else replace(report, error=error))


def left_to_others(handed_back: Outcome) -> tuple[float, float]:
    """Return from when until when the node that has handed a job back claims no jobs of its worker.

    While the job itself cannot be claimed, the other jobs of the worker can, except right after the first refusal: more
    jobs like this one may be in the queue.
    """
    return handed_back.run_at - SHORTEST_DELAY, handed_back.run_at + ELSEWHERE_SECONDS


def _refusals(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the refusals since the job last ran or was dead: a person may have given it another payload since."""
    found: list[Attempt] = []
    for attempt in reversed(attempts):
        if attempt.kind != EndKind.UNDECODABLE or attempt.version is None:
            break
        found.append(attempt)
    return found[::-1]


def _could_run(node: Beat, outcome: Outcome) -> bool:
    serves = node.machine is not None and outcome.pool in node.machine.pools
    return serves and node.status != "draining" and outcome.worker in node.workers


def _why_dead(refused: Mapping[str, str | None], left: Sequence[str]) -> str:
    versions = " and ".join(
        f"version {version}{f' (on {instance})' if instance else ''}" for version, instance in refused.items()
    )
    if left:
        return f"refused by {versions}, and no node of version {' or '.join(left)} has taken it for an hour"
    return f"refused by {versions}; no live node has another version of the app"
