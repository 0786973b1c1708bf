"""Judges that are not ours, over the EDN of a recorded run: Jepsen's total-queue, and a linearizable register per job.

Both are written here again, from what is published of them: the rules of `total-queue` in the documentation of
`jepsen.checker`, and Wing and Gong's search for a linear order, which Knossos does. So they share no code with the
rules of `shiftwork.history`, and none with Jepsen. docs/proof.md has the command that runs Jepsen's own.
"""

import asyncio
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from shiftwork.history.edn import write_edn
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.lines import AnyLine
from shiftwork.history.reader import history_of
from tests.history.recorded_run import recorded_lines
from tests.history.tape import Tape
from tests.history.test_mutations import Cutting, claim_what_is_held, drop_an_end

Op = dict[str, Any]

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|:([a-z-]+)|(-?\d+)|(nil)|([{}\[\]])')


def read_edn(text: str) -> list[Op]:
    """The maps of an EDN file, one on each line: of keywords, texts, numbers, vectors and nil."""
    return [_read(TOKEN.finditer(line)) for line in text.splitlines()]


def _read(tokens: Any) -> Any:
    text, keyword, number, nil, bracket = next(tokens).groups()
    if bracket in {"{", "["}:
        items = [*iter(lambda: _read(tokens), "}" if bracket == "{" else "]")]
        return dict(zip(items[::2], items[1::2], strict=True)) if bracket == "{" else items
    if text is not None:
        return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)
    return bracket or keyword or (None if nil else int(number))


# ── total-queue ──────────────────────────────────────────────────────────────────────────────────────────────────────


class TotalQueue(NamedTuple):
    """What Jepsen's total-queue reports. It is valid if nothing is lost, and nothing unexpected."""

    lost: set[Any]
    """Acknowledged, and never dequeued."""
    unexpected: set[Any]
    """Dequeued, though no call ever tried to enqueue it."""
    duplicated: set[Any]
    """Dequeued more often than anyone tried to enqueue it."""
    recovered: set[Any]
    """Dequeued, though the enqueue was not acknowledged."""

    @property
    def valid(self) -> bool:
        return not (self.lost or self.unexpected)


def total_queue(ops: Iterable[Op]) -> TotalQueue:
    seen: dict[tuple[str, str], Counter[Any]] = defaultdict(Counter)
    for op in ops:
        seen[op["f"], op["type"]][op["value"]] += 1
    attempts, enqueues, dequeues = seen["enqueue", "invoke"], seen["enqueue", "ok"], seen["dequeue", "ok"]
    unexpected = Counter({value: n for value, n in dequeues.items() if value not in attempts})
    return TotalQueue(
        lost=set(enqueues - dequeues),
        unexpected=set(unexpected),
        duplicated=set(dequeues - attempts - unexpected),
        recovered=set((dequeues & attempts) - enqueues),
    )


# ── linearizability ──────────────────────────────────────────────────────────────────────────────────────────────────


class Entry(NamedTuple):
    """One operation on a register: the places in the history at which it was called, and at which it returned."""

    called: int
    returned: float
    f: str
    value: Any
    may_not_happen: bool


def entries_of(ops: Iterable[Op]) -> list[Entry]:
    entries: list[Entry] = []
    open_ops: dict[int, tuple[int, Op]] = {}
    for place, op in enumerate(ops):
        if op["type"] == "invoke":
            open_ops[op["process"]] = place, op
            continue
        called, _ = open_ops.pop(op["process"])
        if op["type"] != "fail":
            unknown = op["type"] == "info"
            entries.append(Entry(called, float("inf") if unknown else place, op["f"], op["value"], unknown))
    return entries


def after(state: Any, entry: Entry) -> tuple[bool, Any]:
    """Whether a compare-and-set register allows the operation, and what it holds then."""
    if entry.f == "write":
        return True, entry.value
    if entry.f == "read":
        return state == entry.value, state
    return state == entry.value[0], entry.value[1]


def is_linearizable(entries: list[Entry]) -> bool:
    """Whether some order of these operations, which none of them contradicts in real time, is what a register does."""
    ahead = [(frozenset(range(len(entries))), None)]
    known = set(ahead)
    while ahead:
        left, state = ahead.pop()
        if all(entries[n].may_not_happen for n in left):
            return True
        first_return = min(entries[n].returned for n in left)
        for n in left:
            allowed, then = after(state, entries[n]) if entries[n].called < first_return else (False, None)
            following = left - {n}, then
            if allowed and following not in known:
                known.add(following)
                ahead.append(following)
    return False


def broken_registers(ops: Iterable[Op]) -> set[str]:
    by_key: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        by_key[op["key"]].append(op)
    return {key for key, those in by_key.items() if not is_linearizable(entries_of(those))}


# ── over our histories ───────────────────────────────────────────────────────────────────────────────────────────────


class Judged(NamedTuple):
    """What both judges say."""

    queue: TotalQueue
    broken: set[str]


def judged(history: RecordedHistory) -> Judged:
    file = io.StringIO()
    assert write_edn(history, file) == file.getvalue().count("\n")
    ops = read_edn(file.getvalue())
    assert [op["index"] for op in ops] == [*range(len(ops))]
    by_queue = [op for op in ops if op["f"] in {"enqueue", "dequeue"}]
    return Judged(total_queue(by_queue), broken_registers(op for op in ops if op not in by_queue))


@pytest.fixture(scope="module")
def lines() -> list[AnyLine]:
    return asyncio.run(recorded_lines())


def test_a_recorded_run_is_valid(lines: list[AnyLine]) -> None:
    found = judged(history_of({"app": lines}))
    assert found.queue.valid
    assert not found.queue.duplicated
    assert not found.broken


def test_what_was_lost_on_the_way_is_found(lines: list[AnyLine]) -> None:
    cut = Cutting(lines)
    drop_an_end(cut)
    assert judged(history_of({"app": cut.lines})).queue.lost == {cut.jobs("plain")[0]}


def test_what_comes_from_nowhere_is_found(lines: list[AnyLine]) -> None:
    cut = Cutting(lines)
    job = cut.jobs("alone")[0]
    cut.drop_call(next(asked for asked in cut.asked("add") if asked.args.jobs[0].id == job))
    assert judged(history_of({"app": cut.lines})).queue.unexpected == {job}


def test_two_holders_have_no_linear_order(lines: list[AnyLine]) -> None:
    cut = Cutting(lines)
    claim_what_is_held(cut)
    assert judged(history_of({"app": cut.lines})).broken == {cut.jobs("saga")[0]}


def test_an_outcome_under_another_fence_has_no_linear_order(lines: list[AnyLine]) -> None:
    cut = Cutting(lines)
    job = cut.jobs("plain")[0]
    cut.change_outcome(job, fence=cut.fence(job) + 1_000_000)
    assert judged(history_of({"app": cut.lines})).broken == {job}


def test_a_job_that_came_out_though_its_addition_was_not_acknowledged_is_recovered() -> None:
    tape = Tape().add("a", lost=True).claim("a", 1).finish("a", 1)
    assert judged(tape.history()).queue.recovered == {"a"}


def test_an_outcome_without_an_answer_came_out_if_nothing_followed_at_rest() -> None:
    tape = Tape().add("a").claim("a", 1).finish("a", 1, lost=True)
    assert judged(tape.history()).queue.lost == {"a"}
    assert judged(tape.rest().history()).queue.valid


def test_a_claim_without_an_answer_may_have_handed_out_the_job() -> None:
    tape = Tape().add("a")
    tape.claim("a", 1, lost=True)
    assert judged(tape.finish("a", 1, "queued", attempt=0).run("a", 2).history()) == judged(
        Tape().add("a").run("a", 2).history()
    )


def test_texts_are_escaped() -> None:
    id = 'a"b\\c\nd'
    file = io.StringIO()
    write_edn(Tape().add(id).history(), file)
    assert {op["value"] for op in read_edn(file.getvalue())} == {id, 0}


def test_a_process_that_knows_its_result_is_used_again() -> None:
    tape = Tape().add("a").add("b", lost=True).add("c")
    file = io.StringIO()
    write_edn(tape.history(), file)
    enqueued = [op for op in read_edn(file.getvalue()) if op["f"] == "enqueue" and op["type"] == "invoke"]
    first, unknown, last = [op["process"] for op in enqueued]
    assert len({first, unknown, last}) == 2
