"""Why a job is where it is and when it will start, in words and as data.

The words for a gate are made in `core.workers.admission`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from shiftwork.core.health.position import Position
from shiftwork.core.health.start_estimate import Line, QueueAhead, unknown_runs
from shiftwork.core.jobs.durable_functions import SLEEP
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.jobs.transitions import EXPIRED, EXPIRED_WORDS, status_word
from shiftwork.core.model.job_parts import SeenStep
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus
from shiftwork.core.words import counted, in_words, number, seconds
from shiftwork.core.workers.admission import Obstacle
from shiftwork.sentences import sentence, series
from shiftwork.views.formats import clock_time

FOR_EVER: Final = 5 * 365 * SECONDS_A_DAY
"""A job that is due later than this waits without an end."""
BAD: Final = (JobStatus.DEAD, JobStatus.CANCELLED)
NEEDS: Final = ("needs", "stranded")
"""The codes of waits for other jobs: for some that may still complete, or also for one that cannot."""
_DOING: Final = {JobStatus.PROCESSING: sentence("running"), JobStatus.FAILED: sentence("to be retried")}


_ORDER: Final = (
    JobStatus.PROCESSING,
    JobStatus.FAILED,
    JobStatus.QUEUED,
    JobStatus.SCHEDULED,
    JobStatus.WAITING,
    JobStatus.COMPLETED,
)


NO_ESTIMATE: Final = "no estimate: "
"""How the basis begins where there is none."""
_NAMED: Final = 2
"""How many workers are named."""
_NOW: Final = 0.1
"""What starts within this many seconds starts now."""
_TIED: Final = {"dependency", "blocked", "precedence", "turn"}


class Estimate(Struct, frozen=True, kw_only=True):
    """Where a job is in its queue, and when it starts."""

    position: int | None = None
    """Its place in the queue of its pool: 1 is the first. None if it is not queued."""
    position_exact: bool = True
    """Whether exactly this many were counted; otherwise it is about this number."""
    estimate: float | None = None
    """In how many seconds it will start, about; None if that is not known."""
    basis: str | None = None
    """How the estimate was worked out, or why there is none; None for a job that waits for no slot."""


class Explanation(Struct, frozen=True):
    """Why a job is where it is."""

    job_id: str
    status: JobStatus
    text: str
    waits: list[Obstacle]
    expires_at: float | None = None
    """When it is cancelled if it has not started by then; None is never."""
    position: int | None = None
    """Its place in the queue of its pool: 1 is the first. None if it is not queued."""
    position_exact: bool = True
    """Whether the jobs ahead were counted; otherwise the position is about this number."""
    estimate: float | None = None
    """In how many seconds from now it will start, about; None if that is not known, or if it does not wait to start."""
    estimate_basis: str | None = None
    """How the estimate was worked out, or why there is none."""


def explanation_of(record: JobRecord, waits: list[Obstacle], estimate: Estimate, now: float) -> Explanation:
    """Return the explanation of a job that waits for these things, or for nothing."""
    return Explanation(
        record.id,
        record.status,
        series("; ", [_text(record, waits), *_expiry_text(record, now)]),
        waits,
        record.expiry,
        position=estimate.position,
        position_exact=estimate.position_exact,
        estimate=estimate.estimate,
        estimate_basis=estimate.basis,
    )


def unfinished_text(
    record: JobRecord, waits: list[Obstacle], estimate: Estimate, *, attempts: int | None, now: float
) -> str:
    """Return what a job that has not ended is doing. `attempts`: how many it has at most, if that is known."""
    attempt = sentence("attempt {n}", n=record.attempt)
    if attempts is not None:
        attempt = sentence("attempt {n} of {n2}", n=record.attempt, n2=attempts)
    held = series("; ", [_wait_text(wait) for wait in waits]) if waits else ""
    if record.run_at > now:
        if record.status is JobStatus.FAILED:
            return sentence(
                "{attempt} failed ({error}), next in {n} s",
                attempt=attempt,
                error=record.error,
                n=f"{record.run_at - now:.0f}",
            )
        if record.status is JobStatus.SCHEDULED and all(wait.code == "later" for wait in waits):
            return sentence("it is due in {n} s", n=f"{record.run_at - now:.0f}")
    elif record.status is JobStatus.FAILED:
        return sentence("{attempt} failed ({error}), next {why}", attempt=attempt, error=record.error, why=held)
    elif record.status is JobStatus.SCHEDULED:
        return sentence("it is {why}", why=held)
    if record.status is JobStatus.PROCESSING:
        ran = max(0.0, now - (record.started_at or now))
        return sentence(
            "{attempt} has been running for {n} s on {instance}",
            attempt=attempt,
            n=f"{ran:.0f}",
            instance=record.instance,
        )
    doing = held or sentence("it is {status}", status=status_word(record.status))
    if waits and waits[0].code in NEEDS:
        doing = sentence("it waits for {why}", why=held)
    starts = starts_text(estimate)
    return series("; ", [doing, *([starts] if starts else []), *_expiry_text(record, now)])


def _text(record: JobRecord, waits: list[Obstacle]) -> str:
    if waits:
        held = series("; ", [_wait_text(wait) for wait in waits])
        return sentence("waits for {why}", why=held) if waits[0].code in NEEDS else sentence("waits: {why}", why=held)
    if record.status is JobStatus.PROCESSING:
        how = sentence("is being cancelled") if record.cancelling else sentence("runs")
        return sentence(
            "{how}: attempt {n}, since {clock} on {instance}",
            how=how,
            n=record.attempt,
            clock=clock_time(record.started_at or 0.0),
            instance=record.instance,
        )
    at = clock_time(record.ended_at or 0.0)
    if record.status is JobStatus.DEAD:
        return sentence(
            "dead since {clock} after {attempts} and {crashes}: {error}",
            clock=at,
            attempts=counted(record.attempt, "attempt"),
            crashes=counted(record.crashes, "crash", "crashes"),
            error=record.error,
        )
    if record.status is JobStatus.CANCELLED and record.error == EXPIRED:
        return sentence("cancelled at {clock}: {why}", clock=at, why=EXPIRED_WORDS)
    return sentence("{state} at {clock}", state=status_word(record.status), clock=at)


def _expiry_text(record: JobRecord, now: float) -> list[str]:
    at = record.expiry
    if at is None:
        return []
    return [sentence("it expires in {time} if it has not started", time=in_words(max(0.0, at - now)))]


def _wait_text(wait: Obstacle) -> str:
    why = wait.why
    if wait.since:
        why = sentence("{why}, since {clock}", why=why, clock=clock_time(wait.since))
    if not wait.until or wait.code == "later":
        return why
    until = clock_time(wait.until)
    if wait.code == "rate_limit":  # when the gate opens for one job, which need not be this one
        return sentence("{why}, the next job starts at {clock}", why=why, clock=until)
    return sentence("{why}, until {clock}", why=why, clock=until)


def due_at(record: JobRecord) -> float | None:
    """When a job is due, or was; None if it waits for a signal without an end."""
    since = record.started_at or record.created_at
    return None if record.wait is not None and record.run_at > since + FOR_EVER else record.run_at


def is_suspended(record: JobRecord, last: SeenStep | None) -> bool:
    """Whether a scheduled job was handed back by its own function, which sleeps or waits for a signal.

    `last` is the last step of the function.
    """
    return record.wait is not None or (last is not None and last.name == SLEEP)


def suspension(record: JobRecord, last: SeenStep | None, now: float) -> Obstacle:
    """Return what a job waits for whose function sleeps or waits for a signal."""
    until = record.run_at if record.run_at < now + FOR_EVER else None
    since = None if last is None else last.ended_at
    if record.wait is None:
        return Obstacle("sleep", record.worker, sentence("its function sleeps"), until=until, since=since)
    name = record.wait.name
    why = sentence(
        "its function waits for the signal {name}: send it with `shiftwork send {id} {signal}`",
        name=f"{name!r}",
        id=record.id,
        signal=name,
    )
    return Obstacle("signal", name, why, until=until, since=since)


def need_wait(record: JobRecord, needed: Sequence[JobRecord], lost: Sequence[JobRecord]) -> Obstacle:
    """Return what a job waits for that needs other jobs, of which these are known.

    `lost` are the dead and cancelled jobs that strand it, directly or not, by their ends.
    """
    unmet = {need.id: need for need in record.unmet}
    of = len(unmet.keys() | set(run_options_of(record.options).needs))
    stranded = [job for job in needed if job.status is JobStatus.WAITING and unmet[job.id].broken]
    others = [job for job in needed if job.status not in BAD and job not in stranded]
    parts = [*_under_way(others), *_stranded(stranded), *_ended_badly(lost)]
    words = sentence("{n} of {jobs}", n=f"{len(unmet):,}", jobs=counted(of, "job")) if of > 1 else sentence("1 job")
    why = sentence("{jobs}: {parts}", jobs=words, parts=series(", ", parts)) if parts else words
    return Obstacle("stranded", lost[0].id, why) if lost else Obstacle("needs", record.flow or "", why)


def _under_way(needed: Sequence[JobRecord]) -> list[str]:
    """Return how many jobs of which worker are how far."""
    counts = Counter((job.worker, job.status) for job in needed)
    ordered = sorted(counts.items(), key=lambda one: (_ORDER.index(one[0][1]), one[0][0]))
    return [_these(n, worker, _DOING.get(status) or status_word(status)) for (worker, status), n in ordered]


def _these(n: int, worker: str, state: str) -> str:
    if n == 1:
        return sentence("1 of {worker} is {state}", worker=worker, state=state)
    return sentence("{n} of {worker} are {state}", n=f"{n:,}", worker=worker, state=state)


def _stranded(jobs: Sequence[JobRecord]) -> list[str]:
    return [
        sentence("{n} of {worker} cannot run", n=f"{n:,}", worker=worker)
        for worker, n in sorted(Counter(job.worker for job in jobs).items())
    ]


def _ended_badly(jobs: Sequence[JobRecord]) -> list[str]:
    if not jobs:
        return []
    first = jobs[0]
    ended = sentence(
        "job {id} of {worker} is {state}", id=first.id, worker=first.worker, state=status_word(first.status)
    )
    if len(jobs) == 1:
        return [sentence("{ended}: retry it or cancel the flow", ended=ended)]
    others = counted(len(jobs) - 1, "other")
    them = sentence("{ended}, and {others} ended badly: retry them or cancel the flow", ended=ended, others=others)
    return [them]


def no_estimate(place: Position | None, why: str) -> Estimate:
    return Estimate(
        position=place.n if place else None,
        position_exact=place.exact if place else True,
        basis=sentence("no estimate: {why}", why=why),
    )


def estimate_of(
    place: Position | None, queue: QueueAhead, starts_in: float | None, waits: Sequence[Obstacle]
) -> Estimate:
    """Return the estimate for a job with what it was made from; without a number, what is missing."""
    if starts_in is None:
        return no_estimate(place, _missing(queue, waits))
    return Estimate(
        position=place.n if place else None,
        position_exact=place.exact if place else True,
        estimate=starts_in,
        basis=series("; ", [*_basis(place, queue, starts_in, waits)]),
    )


def starts_text(estimate: Estimate) -> str:
    """Return the position and the estimate in a few words; "" if neither is known."""
    parts = []
    if estimate.position is not None:
        text = position_text(estimate.position, exact=estimate.position_exact)
        parts.append(sentence("position {n}", n=text))
    if estimate.estimate is not None:
        parts.append(sentence("starts {when}", when=start_text(estimate.estimate)))
    return series(", ", parts) if parts else ""


def position_text(position: int, *, exact: bool) -> str:
    """Return the position for people: `12`, or `about 16,700`."""
    return f"{position:,}" if exact else sentence("about {n}", n=f"{round(position, 3 - len(str(position))):,}")


def start_text(estimate: float) -> str:
    """Return the estimate for people: `in about 5.6 min`."""
    return sentence("now") if estimate < _NOW else sentence("in about {time}", time=seconds(estimate))


def _missing(queue: QueueAhead, waits: Sequence[Obstacle]) -> str:
    if queue.mine.opens_at == inf:
        endless = [wait.why for wait in waits if wait.until is None and wait.code != "queue"]
        return series("; ", endless) if endless else sentence("it is held back")
    unknown = unknown_runs(queue)
    if unknown:
        named = series(" and ", unknown[:_NAMED])
        return sentence("no run of {worker} has ended yet, so it is not known how long one takes", worker=named)
    if queue.slots[-1][1] <= 0:
        return sentence("no slot of its pool runs its worker, and none is about to start")
    if queue.overtaking:
        return sentence("jobs of a higher priority come as fast as the pool can run them")
    return sentence("its gates hold it back for longer than can be foreseen")


def _basis(place: Position | None, queue: QueueAhead, starts_in: float, waits: Sequence[Obstacle]) -> Iterator[str]:
    if place is None and starts_in <= queue.due_at - queue.now + _NOW:
        yield sentence("it is due then, and the jobs that are queued now have started before")
        return
    lines = sorted((queue.mine, *queue.others), key=lambda line: -line.ahead)
    exact = place is None or place.exact
    yield _first([line for line in lines if line.ahead], exact=exact)
    yield from _limits(queue.mine)
    for wait in waits:
        if wait.code == "breaker":
            yield _open_breaker(wait)
        elif wait.code in _TIED:
            yield wait.why
    now, later = queue.slots[0][1], queue.slots[-1][1]
    slots = counted(now, "slot")
    yield slots if later == now else sentence("{slots}, soon {n}", slots=slots, n=f"{later:,}")
    for worker, usual in _timed(lines)[:_NAMED]:
        yield sentence("a run of {worker} takes {time} on average", worker=worker, time=seconds(usual))
    untimed = sorted({line.worker for line in lines if line.running and line.run_seconds is None})
    if untimed:
        named = series(" and ", untimed[:_NAMED])
        yield sentence("no run of {worker} has ended yet, so when those that run will end is a guess", worker=named)
    for line in lines:
        if (ran := line.overdue(queue.now)) is not None:
            yield sentence(
                "but the jobs of {worker} that run have run for {time} or longer", worker=line.worker, time=seconds(ran)
            )
    if queue.overtaking:
        taken = sum(one.slots for one in queue.overtaking)
        yield sentence("jobs that still come and go first take {n} of the slots", n=number(taken))


def _open_breaker(wait: Obstacle) -> str:
    if wait.until is None:
        return sentence("breaker {breaker} is open, and the first job behind it must succeed", breaker=wait.by)
    return sentence(
        "breaker {breaker} is open until {clock}, and the first job behind it must succeed",
        breaker=wait.by,
        clock=clock_time(wait.until),
    )


def _first(lines: Sequence[Line], *, exact: bool) -> str:
    total = sum(line.ahead for line in lines)
    if not total:
        return sentence("no job goes first")
    by_worker: Counter[str] = Counter()
    for line in lines:
        by_worker[line.worker] += line.ahead
    parts = [sentence("{n} of {worker}", n=f"{n:,}", worker=worker) for worker, n in by_worker.most_common(_NAMED)]
    more = len(by_worker) - len(parts)
    named = series(", ", parts)
    if more:
        those = sentence("those of {workers}", workers=counted(more, "other worker"))
        named = series(" and ", [named, those])
    jobs = counted(total, "job") if exact else sentence("about {n}", n=counted(total, "job"))
    if total == 1:
        return sentence("{jobs} goes first: {parts}", jobs=jobs, parts=named)
    return sentence("{jobs} go first: {parts}", jobs=jobs, parts=named)


def _limits(mine: Line) -> Iterator[str]:
    if mine.rate is not None:
        yield sentence(
            "the rate limit of {worker} lets {n} start in {time}",
            worker=mine.worker,
            n=f"{mine.rate.count:,}",
            time=seconds(mine.rate.seconds),
        )
    if mine.key is not None:
        yield sentence("of the jobs with key {key}, {n} may run at a time", key=f"{mine.key!r}", n=mine.most)
    elif mine.most is not None:
        yield sentence("{n} of {worker} may run at a time", n=mine.most, worker=mine.worker)


def _timed(lines: Sequence[Line]) -> list[tuple[str, float]]:
    """Return how long runs of the workers take that matter most: those with most to do ahead, or that run now."""
    known = [line for line in lines if line.run_seconds is not None and (line.ahead or line.running)]
    known.sort(key=lambda line: (line.ahead + line.running) * (line.run_seconds or 0.0))
    return [*reversed({line.worker: line.run_seconds or 0.0 for line in known}.items())]
