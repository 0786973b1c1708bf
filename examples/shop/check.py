"""Verifies what happened, from two independent sources: the journal of the runs, and the store.

`SHOP_HOME=… python -m examples.shop.check` repeats it for a shop that has closed.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final

from examples.shop import journal, world
from examples.shop.app import app
from examples.shop.journal import Journal, Run
from shiftwork import JobStatus, PoolConfig

BROKEN: Final = "broken-picture"
FLAKY: Final = "flaky-charge"
URGENT: Final = "urgent-picture"


@dataclass(frozen=True)
class Ended:
    """The store's view of a job."""

    status: JobStatus
    error: str | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything known. If the kill kept a failure from being stored, the job fails once more."""

    journal: Journal
    jobs: Mapping[str, Ended]
    pools: Mapping[str, PoolConfig]
    letters: int = 0
    """The number of letters left in the mailbox."""
    whole: bool = True
    """False if the show was stopped early: then jobs may still wait, and not everything was shown."""

    @property
    def owed(self) -> list[str]:
        """The jobs that shiftwork acknowledged."""
        return list(dict.fromkeys(mark.subject for mark in self.journal.marked("owed")))

    def at(self, what: str) -> float:
        """When this was first marked; infinity if it never was."""
        return next((mark.at for mark in self.journal.marked(what)), journal.FOREVER)


@dataclass(frozen=True)
class Finding:
    """The outcome of one check, in words."""

    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'✔' if self.ok else '✘'} {self.text}"


# ── always ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def nothing_lost(evidence: Evidence) -> Finding:
    """Every acknowledged job has ended, and the journal confirms every completed one."""
    proven = {run.job for run in evidence.journal.runs if run.how == "ok"}
    found = {job: evidence.jobs[job].status for job in evidence.owed if job in evidence.jobs}
    counts = Counter(found.values())
    missing = len(evidence.owed) - len(found)
    unproven = sum(status is JobStatus.COMPLETED and job not in proven for job, status in found.items())
    waiting = sum(status.live for status in found.values())
    text = (
        f"nothing lost: {len(evidence.owed)} jobs enqueued = {counts[JobStatus.COMPLETED]} completed"
        f" + {counts[JobStatus.DEAD]} dead + {waiting} waiting; {missing} missing, {unproven} completed without a run"
    )
    return Finding(_seen(evidence, evidence.owed) and not missing + unproven + waiting * evidence.whole, text)


def never_beside_itself(evidence: Evidence) -> Finding:
    """No job ran twice at the same time, and none ran again after a success, unless the kill hid that success."""
    runs: dict[str, list[Run]] = {}
    for run in evidence.journal.runs:
        runs.setdefault(run.job, []).append(run)
    beside = sum(one.overlaps(other) for several in runs.values() for one, other in combinations(several, 2))
    killed = {int(mark.subject) for mark in evidence.journal.marked("killed")}
    known = [run for several in runs.values() for run in several[:-1] if not killed & {run.node, run.process}]
    needless = sum(run.how == "ok" for run in known)
    text = f"{len(evidence.journal.runs)} runs of {len(runs)} jobs: {beside} overlapping another run of the same job, "
    return Finding(not beside + needless, text + f"{needless} after a known success")


def never_overlapped(evidence: Evidence) -> Finding:
    """`cleanup` blocks `process-data`."""
    cleanups, processings = evidence.journal.of("cleanup"), evidence.journal.of("process-data")
    overlaps = sum(one.overlaps(other) for one, other in product(cleanups, processings))
    counted = f"{_runs(cleanups)} and {_runs(processings)}"
    text = f"cleanup and process-data {'never overlapped' if not overlaps else f'overlapped {overlaps}×'} ({counted})"
    return Finding(not overlaps and _seen(evidence, cleanups, processings), text)


def dependency_held(evidence: Evidence) -> Finding:
    """`process-data` never begins before `fetch-data` has succeeded, nor while it runs."""
    fetches, processings = evidence.journal.of("fetch-data"), evidence.journal.of("process-data")
    first = min((run.ended for run in fetches if run.how == "ok"), default=journal.FOREVER)
    early = sum(run.began < first for run in processings)
    during = sum(one.began < other.began < one.ended for one, other in product(fetches, processings))
    counted = f"{_runs(fetches)} and {_runs(processings)}"
    wrong = early + during
    how = f"began {early}× before and {during}× during" if wrong else "never began before or during"
    text = f"process-data {how} fetch-data ({counted})"
    return Finding(not wrong and _seen(evidence, fetches, processings), text)


# ── once the whole show has been played ──────────────────────────────────────────────────────────────────────────────


def letters_answered(evidence: Evidence) -> Finding:
    """The continuous worker was killed too, and missed no letter."""
    letters = [mark.subject for mark in evidence.journal.marked("letter")]
    answered = sum(_completed(evidence, f"reply-{letter}") for letter in letters)
    text = f"watch-mailbox: {len(letters)} letters, {answered} answered, {evidence.letters} left in the mailbox"
    return Finding(bool(letters) and answered == len(letters) and not evidence.letters, text)


def killed_ran_again(evidence: Evidence) -> Finding:
    """The jobs that a kill interrupted ran again."""
    kills = evidence.journal.marked("killed")
    cut = [run for run in evidence.journal.runs if run.how == "cut"]
    again = [run for run in cut if evidence.journal.of_job(run.job)[-1].began > run.ended]
    unfinished = [run for run in again if not _completed(evidence, run.job) and run.job != BROKEN]
    killed = " and ".join(mark.subject for mark in kills)
    text = f"SIGKILL of process {killed} interrupted {_runs(cut)}; {len(again)} ran again"
    return Finding(bool(kills) and bool(cut) and len(again) == len(cut) and not unfinished, text)


def disabled_and_enabled(evidence: Evidence) -> Finding:
    """The worker with the broken partner was disabled, made no calls, was enabled, and finished its jobs."""
    calls = evidence.journal.of("call_partner")
    disabled, enabled = evidence.at("disabled"), evidence.at("enabled")
    failed = sum(run.how == "failed" for run in calls)
    meanwhile = sum(disabled < run.began < enabled for run in calls)
    jobs = {run.job for run in calls}
    through = sum(_completed(evidence, job) for job in jobs)
    text = (
        f"call_partner was disabled after {failed} failures and made {meanwhile or 'no'} calls for"
        f" {enabled - disabled:.1f} s; after the repair {through} of {len(jobs)} jobs completed"
    )
    return Finding(
        disabled < enabled < journal.FOREVER and failed == 3 and not meanwhile and through == len(jobs), text
    )


def retried(evidence: Evidence) -> Finding:
    """The flaky job failed, failed again, and succeeded."""
    runs = evidence.journal.of_job(FLAKY)
    failed = sum(run.how == "failed" for run in runs)
    text = f"{FLAKY} failed {failed}× and then {'succeeded' if runs and runs[-1].how == 'ok' else 'did not succeed'}"
    return Finding(failed >= world.BANK_NEEDS - 1 and _completed(evidence, FLAKY) and runs[-1].how == "ok", text)


def only_the_broken_job_is_dead(evidence: Evidence) -> Finding:
    """The broken job is in the dead-letter queue, and no other is."""
    dead = {job: ended for job, ended in evidence.jobs.items() if ended.status is JobStatus.DEAD}
    attempts = sum(run.how == "failed" for run in evidence.journal.of_job(BROKEN))
    reason = f": {dead[BROKEN].error} (after {attempts} attempts)" if BROKEN in dead else ""
    text = f"dead letters: {', '.join(dead) or 'none'}{reason}"
    return Finding(list(dead) == [BROKEN] and attempts >= 3, text)


def critical_overtook(evidence: Evidence) -> Finding:
    """The CRITICAL picture did not wait for pictures enqueued before it."""
    first: dict[str, float] = {}
    for run in evidence.journal.of("image_resize"):
        first.setdefault(run.job, run.began)
    asked = next((mark.at for mark in evidence.journal.marked("owed") if mark.subject == URGENT), journal.FOREVER)
    before = {mark.subject for mark in evidence.journal.marked("owed") if mark.at < asked}
    waiting = [began for job, began in first.items() if job in before and began > asked]
    overtaken = sum(began > first.get(URGENT, journal.FOREVER) for began in waiting)
    text = f"{URGENT} (CRITICAL) overtook {overtaken} of the {len(waiting)} pictures that waited before it"
    return Finding(bool(waiting) and overtaken * 2 > len(waiting), text)


def pools_scaled(evidence: Evidence) -> Finding:
    """Both pools grew in the peak, and never beyond their bounds."""
    said, ok = [], True
    for name, worker in (("images", "image_resize"), ("mail", "send_mail")):
        most = _most_at_once(evidence.journal.of(worker))
        pool = evidence.pools[name]
        ok = ok and pool.min_workers < most <= pool.max_workers
        said.append(f"{name} ran up to {most} at once ({pool.min_workers} to {pool.max_workers})")
    return Finding(ok, "pools grew within their bounds: " + ", ".join(said))


Check = Callable[[Evidence], Finding]
ALWAYS: Final[tuple[Check, ...]] = (nothing_lost, never_beside_itself, never_overlapped, dependency_held)
IN_THE_END: Final[tuple[Check, ...]] = (
    killed_ran_again,
    disabled_and_enabled,
    retried,
    only_the_broken_job_is_dead,
    critical_overtook,
    letters_answered,
    pools_scaled,
)


def verify(evidence: Evidence) -> list[Finding]:
    """All checks that apply."""
    return [check(evidence) for check in (*ALWAYS, *(IN_THE_END if evidence.whole else ()))]


async def gather(*, whole: bool = True) -> Evidence:
    """Read the journal and the store."""
    jobs = {job.id: Ended(job.status, job.error) for job in await app.find_jobs(limit=1_000_000)}
    return Evidence(journal.read(), jobs, await app.pools(), len(world.letters()), whole)


def _completed(evidence: Evidence, job: str) -> bool:
    return job in evidence.jobs and evidence.jobs[job].status is JobStatus.COMPLETED


def _seen(evidence: Evidence, *groups: list[Any]) -> bool:
    """Whether all of these occurred: a check of something that never ran proves nothing."""
    return all(groups) or not evidence.whole


def _runs(runs: list[Run]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"


def _most_at_once(runs: list[Run]) -> int:
    steps = sorted([(run.ended, -1) for run in runs] + [(run.began, 1) for run in runs])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


async def main() -> int:
    try:
        findings = verify(await gather())
    finally:
        await app.close()
    for finding in findings:
        print(finding)
    return 0 if all(finding.ok for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
