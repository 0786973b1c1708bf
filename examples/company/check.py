"""Verifies what happened, from two independent sources: the journal of the runs, and the store.

No check depends on how fast the machine is. `COMPANY_HOME=… python -m examples.company.check` repeats them for a day
that is over.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, Final

from examples.company import journal
from examples.company.app import app
from examples.company.effects import EFFECTS
from examples.company.evidence import Evidence, Finding, Step, counted, gather
from examples.company.journal import Run
from examples.company.outside import BANK_NEEDS
from shiftwork import JobStatus

BROKEN: Final = "broken-picture"
LATE: Final = "late-picture"
FLAKY: Final = "flaky-charge"
URGENT: Final = "urgent-picture"
POOLS: Final = {
    "mail": "send_email",
    "webhooks": "call_webhook",
    "images": "resize_image",
    "documents": "write_pdf",
    "exports": "export_rows",
}
"""The elastic pools, and whose jobs run there."""


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
        f"nothing lost: {len(evidence.owed):,} jobs enqueued = {counts[JobStatus.COMPLETED]:,} completed"
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
    text = (
        f"{len(evidence.journal.runs):,} runs of {len(runs):,} jobs: {beside} overlapping another run of the same job, "
    )
    return Finding(not beside + needless, text + f"{needless} after a known success")


def never_overlapped(evidence: Evidence) -> Finding:
    """`cleanup` blocks `process-data`."""
    cleanups, processings = evidence.journal.of("cleanup"), evidence.journal.of("process-data")
    overlaps = sum(one.overlaps(other) for one, other in product(cleanups, processings))
    text = (
        f"cleanup and process-data {'never overlapped' if not overlaps else f'overlapped {overlaps}×'}"
        f" ({counted(cleanups)} and {counted(processings)})"
    )
    return Finding(not overlaps and _seen(evidence, cleanups, processings), text)


def dependency_held(evidence: Evidence) -> Finding:
    """`process-data` never begins before `fetch-data` has succeeded, nor while it runs."""
    fetches, processings = evidence.journal.of("fetch-data"), evidence.journal.of("process-data")
    first = min((run.ended for run in fetches if run.how == "ok"), default=journal.FOREVER)
    early = sum(run.began < first for run in processings)
    during = sum(one.began < other.began < one.ended for one, other in product(fetches, processings))
    wrong = early + during
    how = f"began {early}× before and {during}× during" if wrong else "never began before or during"
    text = f"process-data {how} fetch-data ({counted(fetches)} and {counted(processings)})"
    return Finding(not wrong and _seen(evidence, fetches, processings), text)


# ── once the whole day has been played ───────────────────────────────────────────────────────────────────────────────


def fixed_piled_up(evidence: Evidence) -> Finding:
    """Ten fixed slots lost nothing either, but could not keep up with the peak."""
    fixed = evidence.fixed
    if fixed is None:
        return Finding(ok=False, text="ten fixed slots: that part was not played")
    missing = fixed.owed - fixed.completed - fixed.waiting
    text = (
        f"ten fixed slots, from 9 AM to 2 PM: {fixed.owed:,} jobs enqueued = {fixed.completed:,} completed"
        f" + {fixed.waiting:,} waiting; {missing} missing"
    )
    return Finding(fixed.waiting > 0 and not missing, text)


def mail_not_behind_images(evidence: Evidence) -> Finding:
    """No process ran both mails and pictures, and mails overtook pictures that had waited before them."""
    mails, images = evidence.journal.of("send_email"), evidence.journal.of("resize_image")
    shared = {run.process for run in mails} & {run.process for run in images}
    owed = evidence.owed_at()
    pictures = [(owed[job], began) for job, began in evidence.first_starts("resize_image").items() if job in owed]
    beside = overtook = 0
    for job, began in evidence.first_starts("send_email").items():
        asked = owed.get(job, began)
        ahead = [start for at, start in pictures if at <= asked < start]
        beside += bool(ahead)
        overtook += bool(ahead) and began < max(ahead)
    text = (
        f"mails and pictures {'never shared a process' if not shared else f'shared {len(shared)} processes'};"
        f" of {beside} mails that came while pictures waited, {overtook} began before these"
    )
    return Finding(bool(mails and images) and not shared and overtook > 0, text)


def killed_ran_again(evidence: Evidence) -> Finding:
    """The jobs that a kill interrupted ran again."""
    kills = evidence.journal.marked("killed")
    cut = [run for run in evidence.journal.runs if run.how == "cut"]
    again = [run for run in cut if evidence.journal.of_job(run.job)[-1].began > run.ended]
    unfinished = [
        run for run in again if not evidence.completed(run.job) and run.job not in {BROKEN, *_loops(evidence)}
    ]
    killed = " and ".join(mark.subject for mark in kills)
    text = f"SIGKILL of process {killed} interrupted {counted(cut)}; {len(again)} ran again"
    return Finding(bool(kills) and bool(cut) and len(again) == len(cut) and not unfinished, text)


def disabled_and_enabled(evidence: Evidence) -> Finding:
    """The worker whose system was down was disabled, made no calls, was enabled, and finished its jobs."""
    calls = evidence.journal.of("book_order")
    disabled, enabled = evidence.at("disabled"), evidence.at("enabled")
    failed = sum(run.how == "failed" for run in calls)
    meanwhile = sum(disabled < run.began < enabled for run in calls)
    jobs = {run.job for run in calls}
    through = sum(evidence.completed(job) for job in jobs)
    text = (
        f"book_order was disabled after {failed} failures, and made {meanwhile or 'no'} calls until it was enabled;"
        f" then {through} of {len(jobs)} jobs completed"
    )
    return Finding(
        disabled < enabled < journal.FOREVER and failed == 3 and not meanwhile and through == len(jobs), text
    )


def breaker_opened_and_closed(evidence: Evidence) -> Finding:
    """While the partner was down the breaker was open: probes went out, one at a time, and the jobs waited."""
    opened, up, closed = evidence.at("opened"), evidence.at("up"), evidence.at("closed")
    calls = [run for run in evidence.journal.of("call_webhook") if run.began > opened and run.ended < up]
    beside = sum(one.overlaps(other) for one, other in combinations(calls, 2))
    failed = {run.job for run in evidence.journal.of("call_webhook") if run.how == "failed"}
    through = sum(evidence.completed(job) for job in failed)
    text = (
        f"breaker partner opened and closed: {len(calls)} probes while it was open, {beside or 'never'} two at once;"
        f" {through} of the {len(failed)} webhooks that had failed went out"
    )
    return Finding(opened < closed < journal.FOREVER and not beside and bool(failed) and through == len(failed), text)


def retried(evidence: Evidence) -> Finding:
    """The flaky job failed, failed again, and succeeded."""
    runs = evidence.journal.of_job(FLAKY)
    failed = sum(run.how == "failed" for run in runs)
    text = f"{FLAKY} failed {failed}× and then {'succeeded' if runs and runs[-1].how == 'ok' else 'did not succeed'}"
    return Finding(failed >= BANK_NEEDS - 1 and evidence.completed(FLAKY) and runs[-1].how == "ok", text)


def only_the_broken_job_is_dead(evidence: Evidence) -> Finding:
    """The broken job is in the dead-letter queue, and no other is."""
    dead = {job: ended for job, ended in evidence.jobs.items() if ended.status is JobStatus.DEAD}
    attempts = sum(run.how == "failed" for run in evidence.journal.of_job(BROKEN))
    reason = f" (after {attempts} attempts): {dead[BROKEN].error}" if BROKEN in dead else ""
    text = f"dead letters: {', '.join(dead) or 'none'}{reason}"
    return Finding(list(dead) == [BROKEN] and attempts >= 3, text)


def dead_letter_retried(evidence: Evidence) -> Finding:
    """The job that died of half an upload was retried when the other half had arrived, and completed."""
    repaired = evidence.at("repaired")
    runs = evidence.journal.of_job(LATE)
    failed = sum(run.how == "failed" and run.ended < repaired for run in runs)
    after = "completed" if evidence.completed(LATE) and runs[-1].began > repaired else "did not complete"
    text = f"{LATE} was a dead letter after {failed} attempts, was retried by hand, and {after}"
    return Finding(failed >= 3 and after == "completed", text)


def critical_overtook(evidence: Evidence) -> Finding:
    """The CRITICAL picture did not wait for pictures enqueued before it."""
    first, owed = evidence.first_starts("resize_image"), evidence.owed_at()
    asked = owed.get(URGENT, journal.FOREVER)
    waiting = [began for job, began in first.items() if owed.get(job, journal.FOREVER) < asked < began]
    overtaken = sum(began > first.get(URGENT, journal.FOREVER) for began in waiting)
    text = f"{URGENT} (CRITICAL) overtook {overtaken} of the {len(waiting)} pictures that waited before it"
    return Finding(bool(waiting) and overtaken * 2 > len(waiting), text)


def letters_answered(evidence: Evidence) -> Finding:
    """The continuous worker was killed too, and missed no letter."""
    letters = [mark.subject for mark in evidence.journal.marked("letter")]
    answered = sum(evidence.completed(f"reply-{letter}") for letter in letters)
    text = f"watch-mailbox: {len(letters)} letters, {answered} answered, {evidence.letters} left in the mailbox"
    return Finding(bool(letters) and answered == len(letters) and not evidence.letters, text)


def pools_grew(evidence: Evidence) -> Finding:
    """Every pool grew in the peak, and never ran more jobs at once than it may."""
    said, ok = [], True
    for name, worker in POOLS.items():
        pool, most = evidence.pools[name], _most_at_once(evidence.journal.of(worker))
        grown = max((step.after for step in evidence.steps if step.pool == name), default=0)
        ok = ok and pool.min_workers < grown <= pool.max_workers and most <= pool.max_workers
        said.append(f"{name} {pool.min_workers} → {grown}")
    return Finding(ok, f"pools grew within their bounds: {', '.join(said)}")


def pools_shrank(evidence: Evidence) -> Finding:
    """After its peak every pool shrank again."""
    still = [name for name in POOLS if not shrank(name, evidence.steps)]
    last = {step.pool: step.after for step in evidence.steps}
    peak = sum(max((step.after for step in evidence.steps if step.pool == name), default=0) for name in POOLS)
    text = f"pools shrank again: from {peak} to {sum(last.get(name, 0) for name in POOLS)} slots in all"
    return Finding(not still, text + (f"; not {' and '.join(still)}" if still else ""))


def shrank(pool: str, steps: Sequence[Step]) -> bool:
    """Whether a pool has shrunk since it was largest."""
    sizes = [step.after for step in steps if step.pool == pool]
    return bool(sizes) and min(sizes[sizes.index(max(sizes)) :]) < max(sizes)


Check = Callable[[Evidence], Finding]
ALWAYS: Final[tuple[Check, ...]] = (nothing_lost, never_beside_itself, never_overlapped, dependency_held)
IN_THE_END: Final[tuple[Check, ...]] = (
    *EFFECTS,
    fixed_piled_up,
    mail_not_behind_images,
    killed_ran_again,
    disabled_and_enabled,
    breaker_opened_and_closed,
    retried,
    only_the_broken_job_is_dead,
    dead_letter_retried,
    critical_overtook,
    letters_answered,
    pools_grew,
    pools_shrank,
)


def verify(evidence: Evidence) -> list[Finding]:
    """All checks that apply."""
    return [check(evidence) for check in (*ALWAYS, *(IN_THE_END if evidence.whole else ()))]


def _seen(evidence: Evidence, *groups: list[Any]) -> bool:
    """Whether all of these occurred: a check of something that never ran proves nothing."""
    return all(groups) or not evidence.whole


def _loops(evidence: Evidence) -> set[str]:
    """The jobs of the continuous worker, which never complete."""
    return {run.job for run in evidence.journal.of("watch-mailbox")}


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
