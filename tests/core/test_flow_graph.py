"""How flows are drawn: depth, boxes, and the critical path."""

import pytest

from shiftwork.core.jobs.flow_drawing import SAMPLES, FlowJob, draw, state_of
from shiftwork.core.model.jobs import JobStatus

COMPLETED, PROCESSING, WAITING, DEAD = (
    JobStatus.COMPLETED,
    JobStatus.PROCESSING,
    JobStatus.WAITING,
    JobStatus.DEAD,
)


def job(
    id: str,
    worker: str,
    *needs: str,
    status: JobStatus = COMPLETED,
    at: tuple[float, float] = (0, 1),
    parent: str | None = None,
) -> FlowJob:
    ended = None if status.live else at[1]
    return FlowJob(id=id, worker=worker, status=status, needs=needs, parent=parent, started_at=at[0], ended_at=ended)


def test_equal_jobs_are_one_box_and_those_in_need_come_first() -> None:
    pages = [job(str(n), "render", "fetch", status=DEAD if n == 9_000 else COMPLETED) for n in range(10_000)]
    merged = job("merge", "merge", *(page.id for page in pages), status=WAITING)
    graph = draw([merged, *pages, job("fetch", "fetch")])
    assert [(box.depth, box.worker, box.counts, box.needs) for box in graph.boxes] == [
        (0, "fetch", {COMPLETED: 1}, []),
        (1, "render", {COMPLETED: 9_999, DEAD: 1}, [0]),
        (2, "merge", {WAITING: 1}, [1]),
    ]
    assert (graph.boxes[1].samples[0], len(graph.boxes[1].samples)) == ("9000", SAMPLES)


def test_what_waits_for_a_job_stands_behind_all_that_the_job_has_added() -> None:
    graph = draw(
        [
            job("index", "index", "a", status=WAITING),
            job("a", "crawl"),
            job("b", "crawl", parent="a"),
            job("c", "crawl", parent="b", status=PROCESSING),
        ]
    )
    assert [(box.depth, box.worker) for box in graph.boxes] == [(0, "crawl"), (1, "crawl"), (2, "crawl"), (3, "index")]
    assert [one.id for one in graph.critical] == ["a", "b", "c", "index"]


def test_what_runs_after_its_own_parent_stands_behind_it() -> None:
    graph = draw(
        [
            job("end", "end", "a", at=(8, 9)),
            job("a", "work", at=(0, 1)),
            job("tidy", "tidy", "a", parent="a", at=(1, 5)),
            job("tidied", "note", "tidy", parent="a", at=(5, 8)),
            job("page", "page", parent="a", at=(1, 2)),
        ]
    )
    wanted = [(0, "work"), (1, "page"), (1, "tidy"), (2, "note"), (3, "end")]
    assert [(box.depth, box.worker) for box in graph.boxes] == wanted
    assert [one.id for one in graph.critical] == ["a", "tidy", "tidied", "end"]


def test_what_waits_for_the_parent_of_its_parent_stands_behind_that_one_alone() -> None:
    graph = draw(
        [
            job("end", "end", "a", at=(9, 10)),
            job("a", "top", at=(0, 4)),
            job("b", "child", parent="a", at=(1, 2)),
            job("late", "late", "a", parent="b", at=(4, 9)),
        ]
    )
    assert [(box.worker, box.needs) for box in graph.boxes] == [
        ("top", []),
        ("child", [0]),
        ("late", [0, 1]),
        ("end", [0]),
    ]
    assert [one.id for one in graph.critical] == ["a", "b", "late", "end"]


def test_what_a_running_job_adds_may_wait_for_its_sibling() -> None:
    for ids in ("bc", "cb"):
        first, second = ids
        siblings = {first: job(first, "fetch", parent="a"), second: job(second, "store", first, parent="a")}
        graph = draw([job("a", "top"), *(siblings[id] for id in sorted(siblings))])
        assert [(box.worker, box.needs) for box in graph.boxes] == [("top", []), ("fetch", [0]), ("store", [0, 1])]


def test_ids_that_were_used_again_the_other_way_round_are_drawn() -> None:
    graph = draw([job("a", "first", "b"), job("b", "second", "a")])
    assert {box.worker for box in graph.boxes} == {"first", "second"}


def test_the_critical_path_goes_through_what_ended_last() -> None:
    jobs = [
        job("quick", "quick", at=(0, 1)),
        job("slow", "slow", at=(0, 9)),
        job("join", "join", "quick", "slow", at=(9, 10)),
        job("aside", "aside", "quick", at=(1, 2)),
    ]
    graph = draw(jobs)
    assert [one.id for one in graph.critical] == ["slow", "join"]
    assert {box.worker for box in graph.boxes if box.critical} == {"slow", "join"}
    running = draw(
        [*jobs[:2], job("join", "join", "quick", "slow", status=WAITING), job("x", "x", "join", status=WAITING)]
    )
    assert [one.id for one in running.critical] == ["slow", "join", "x"]
    dead = job("quick", "quick", status=DEAD, at=(0, 1))
    broken = draw([dead, jobs[1], job("join", "join", "quick", "slow", status=WAITING)])
    assert [one.id for one in broken.critical] == ["quick", "join"]


def test_a_long_chain_is_drawn_and_a_need_that_is_gone_is_left_out() -> None:
    chain = [job(str(n), "w", str(n - 1)) for n in range(5_000)]
    assert draw(chain).boxes[-1].depth == 4_999
    assert draw([]).boxes == []


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"completed": 2}, "completed"),
        ({"completed": 1, "processing": 1, "dead": 1}, "running"),
        ({"waiting": 1, "dead": 1}, "broken"),
        ({"waiting": 1, "cancelled": 1}, "broken"),
        ({"completed": 1, "dead": 1}, "broken"),
        ({"completed": 1, "cancelled": 1}, "cancelled"),
        ({"waiting": 1}, "running"),
    ],
)
def test_how_far_a_flow_is(counts: dict[str, int], state: str) -> None:
    assert state_of(counts) == state
