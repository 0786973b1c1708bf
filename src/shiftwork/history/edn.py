"""Writes a history as Jepsen's checkers read it: one operation in EDN on each line.

Two of them are served, each by operations that the other does not look at:

    total-queue    :enqueue is a job that is added, or queued again by a person; :dequeue is the outcome that ended it
                   for good. What was acknowledged must come out once the queue is drained, and nothing else may.
    cas-register   for each job, its :key, a register: -1 once it has ended, 0 while no instance holds it, otherwise the
                   fence under which it is held. Additions write 0, claims and outcomes compare and set, and a step that
                   was kept has read its fence. So it is linearizable only if each job has one holder at a time,
                   outcomes count under the current fence alone, and what has ended is not claimed.

An operation without an answer is :info: it may have happened or not. A rejected one is :fail. In a history that came to
rest, a job whose last outcome was never answered, and that was not handed out again, has come out: had the outcome not
been written, the job would have been taken from its lost instance. Jobs that may expire are left out, because no line
says that they did.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Final, Literal, NamedTuple, TextIO

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.stories import FINAL_STATUSES, Ending, JobStory, Tenure

OVER: Final = -1
"""What the register of a job holds that has ended."""
FREE: Final = 0
"""What it holds while no instance holds the job."""

Result = Literal["ok", "info", "fail"]
Function = Literal["enqueue", "dequeue", "cas", "read", "write"]


class Operation(NamedTuple):
    """An operation, from its invocation to its completion."""

    since: float
    until: float
    f: Function
    key: str
    value: Any
    """What is read or written, or the pair that is compared and set; None for the queue, whose value is the key."""
    result: Result


class JepsenEvent(NamedTuple):
    """An operation was invoked, or completed."""

    at: float
    kind: Literal["invoke", "ok", "info", "fail"]
    operation: Operation
    process: int


def write_edn(history: RecordedHistory, file: TextIO) -> int:
    """Write a history to a file; returns how many lines it has."""
    index = -1
    start = None
    for index, event in enumerate(events_of(operations_of(history))):
        start = event.at if start is None and event.at > -inf else start
        nanoseconds = 0 if start is None or event.at in {inf, -inf} else int((event.at - start) * 1e9)
        file.write(_line(event, index, nanoseconds))
    return index + 1


def _line(event: JepsenEvent, index: int, nanoseconds: int) -> str:
    one = event.operation
    if one.f in {"enqueue", "dequeue"}:
        hidden = one.f == "dequeue" and event.kind == "invoke"
        value = f":value {'nil' if hidden else _text(one.key)}"
    else:
        value = f":key {_text(one.key)} :value {_number(one, event.kind)}"
    head = f":index {index} :time {nanoseconds} :process {event.process} :type :{event.kind} :f :{one.f}"
    return f"{{{head} {value}}}\n"


def _number(one: Operation, kind: str) -> str:
    if one.f == "read" and kind == "invoke":
        return "nil"
    return f"[{one.value[0]} {one.value[1]}]" if one.f == "cas" else str(one.value)


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def events_of(operations: Iterable[Operation]) -> Iterator[JepsenEvent]:
    """Yield the events of operations, in the order of their positions, each with a process that does nothing else then.

    A process that does not know what became of its operation is never used again.
    """
    ends = [
        (at, is_end, number, operation)
        for number, operation in enumerate(operations)
        for at, is_end in ((operation.since, 0), (operation.until, 1))
    ]
    ends.sort(key=lambda end: end[:3])
    idle: list[int] = []
    fresh = count()
    busy: dict[int, int] = {}
    for at, is_end, number, operation in ends:
        if is_end:
            process = busy.pop(number)
            if operation.result != "info":
                heappush(idle, process)
            yield JepsenEvent(at, operation.result, operation, process)
        else:
            process = busy[number] = heappop(idle) if idle else next(fresh)
            yield JepsenEvent(at, "invoke", operation, process)


def operations_of(history: RecordedHistory) -> Iterator[Operation]:
    """Yield the operations of a history, job by job."""
    unanswered = min((one.effect.since for one in history.all_of("claim", "reap")), default=None)
    for story in history.stories.values():
        added = story.added
        if added is not None and added.job.expires_at is not None:
            continue
        yield from _of_queue(history, story)
        yield from _of_register(story, unanswered)


def _operation(effect: Effect, f: Function, key: str, value: Any = None, result: Result | None = None) -> Operation:
    known: Result = "info" if effect.answered is None else "ok"
    return Operation(effect.since, effect.until, f, key, value, result or known)


def _result(done: bool | None) -> Result:  # noqa: FBT001 - as it was answered
    return "info" if done is None else "ok" if done else "fail"


# ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_queue(history: RecordedHistory, story: JobStory) -> Iterator[Operation]:
    for one in story.additions_of_itself:
        yield _operation(one.effect, "enqueue", story.id)
    for change in story.amended("requeue"):
        yield _operation(change.effect, "enqueue", story.id, result=_result(change.done))
    for change in story.amended("cancel"):
        if change.status != "processing":
            yield _operation(change.effect, "dequeue", story.id, result=_result(change.done))
    for tenure, after in story.successive:
        for ending in tenure.endings:
            if ending.status in FINAL_STATUSES and ending.possible:
                came_out = ending.accepted or (after is None and _came_out(history, tenure, ending))
                yield _operation(ending.effect, "dequeue", story.id, result="ok" if came_out else "info")


def _came_out(history: RecordedHistory, tenure: Tenure, ending: Ending) -> bool:
    """Return whether an outcome without an answer must have been written: the first of the last tenure, at rest."""
    first = next(one for one in tenure.endings if one.possible)
    return history.expects_rest and ending is first and tenure.ending is None


# ── the registers ────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_register(story: JobStory, unanswered: float | None) -> Iterator[Operation]:
    for one in story.additions_of_itself:
        yield _operation(one.effect, "write", story.id, FREE)
    for change in story.amendments:
        value = FREE if change.change == "requeue" else OVER
        if change.done is not False and change.status != "processing":
            yield _operation(change.effect, "write", story.id, value)
    before: Tenure | None = None
    for tenure in story.tenures:
        yield from _claimed(story, tenure, before, unanswered)
        for ending in tenure.endings:
            left = OVER if ending.status in FINAL_STATUSES else FREE
            result = _result(ending.accepted)
            yield _operation(ending.effect, "cas", story.id, (tenure.fence, left), result)
        for keeping in tenure.keepings:
            if keeping.kept:
                yield _operation(keeping.effect, "read", story.id, tenure.fence)
        before = tenure


def _claimed(story: JobStory, tenure: Tenure, before: Tenure | None, unanswered: float | None) -> Iterator[Operation]:
    handout = tenure.handout
    if handout is not None:
        taken = handout.lost_by is not None and before is not None
        value = before.fence if taken and before else FREE
        yield _operation(handout.effect, "cas", story.id, (value, tenure.fence))
    elif unanswered is not None:  # one of those calls may have handed it out
        yield Operation(unanswered, inf, "write", story.id, tenure.fence, "info")
