"""The dead letters: summed up, and retried or discarded by group, at a rate."""

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from shiftwork import JobStatus
from shiftwork.control.jobs.bulk import BULK_BATCH
from shiftwork.control.jobs.filter import FIRST_PAGE
from shiftwork.core.model.jobs import JobPriority, JobRecord
from shiftwork.errors import StoreUnavailableError
from shiftwork.web import site
from tests.web.conftest import Web


def _dead(number: int, worker: str = "resize", error: str | None = None) -> JobRecord:
    at = 1_700_000_000.0 + number // 3  # several of them at once
    return JobRecord(
        id=f"{worker}-{number:05}",
        worker=worker,
        pool="images",
        status=JobStatus.DEAD,
        payload=b"\x81\xa4path\xa5a.png",
        priority=JobPriority.NORMAL,
        head_start=3_600.0,
        run_at=at,
        rank=at - 3_600.0,
        created_at=at,
        ended_at=at + 60,
        error=error or f"order {number} was refused at 0x{number:x}",
    )


async def _bury(web: Web, *jobs: JobRecord) -> None:
    await (await web.app.control.store.open()).restore(jobs, web.app.control.now())


async def _bulk(web: Web, action: str, wanted: dict[str, Any], **more: Any) -> Any:
    answer = await web.post("jobs/bulk", {"action": action, "filter": wanted, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_group_has_a_key_that_means_all_of_it(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    many = BULK_BATCH + 200
    others = [_dead(1, "fetch"), _dead(2, "fetch"), _dead(3, "report", "order 3 was refused at 0x3")]
    await _bury(web, *(_dead(number) for number in range(many)), *others, _dead(many, error="out of paper"))
    monkeypatch.setattr(site, "MOST_DEAD", BULK_BATCH)
    told = await web.get("dead")
    assert (told["total"], told["looked_at"]) == (many + 4, BULK_BATCH)
    group = told["groups"][0]
    assert (len(group["key"]), group["worker"]) == (24, "resize")
    assert group["count"] < many
    alike = {"group": group["key"]}
    assert await _bulk(web, "discard", alike, dry_run=True) == {"matched": many, "changed": 0, "until": None}
    assert (await _bulk(web, "discard", alike | {"ids": ["resize-00007", "fetch-00001"]}))["changed"] == 1
    assert (await _bulk(web, "discard", alike | {"status": ["cancelled"]}))["matched"] == 0
    assert (await _bulk(web, "cancel", alike))["matched"] == 0
    assert (await _bulk(web, "retry", alike, limit=3))["changed"] == 3
    assert (await _bulk(web, "discard", alike))["changed"] == many - 4
    left = await web.get("dead")
    assert sorted((one["worker"], one["count"]) for one in left["groups"]) == [
        ("fetch", 2),
        ("report", 1),
        ("resize", 1),
    ]


async def test_a_look_at_dead_letters_is_shared_until_some_are_changed(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _bury(web, *(_dead(number) for number in range(3)))
    asked: list[Any] = []
    look = web.app.control.bulk.dead

    async def counted(limit: int | None = None) -> Any:
        asked.append(limit)
        return await look(limit)

    monkeypatch.setattr(web.app.control.bulk, "dead", counted)
    for _ in range(5):
        await web.get("dead")
        await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}})  # nothing to do with dead ones
    assert asked == [site.MOST_DEAD]
    await web.post("jobs/resize-00001/discard")
    assert (await web.get("dead"))["groups"][0]["count"] == 2


async def test_jobs_are_queued_again_one_after_the_other(web: Web) -> None:
    await _bury(web, *(_dead(number) for number in range(25)))
    answer = await _bulk(web, "retry", {"worker": "resize"}, rate="600/m")
    assert (answer["matched"], answer["changed"]) == (25, 25)
    jobs = await web.app.find_jobs(worker="resize")
    due = sorted(job.record.run_at for job in jobs)
    assert [after - before for before, after in pairwise(due)] == pytest.approx([0.1] * 24, abs=1e-3)
    assert datetime.fromisoformat(answer["until"]).timestamp() == pytest.approx(due[-1], abs=1e-3)
    assert due[0] <= web.app.control.now()


async def test_at_a_high_rate_a_few_calls_do_it(web: Web) -> None:
    await _bury(web, *(_dead(number) for number in range(1_000)))
    answer = await _bulk(web, "retry", {}, rate="1000/s")
    assert answer["changed"] == 1_000
    due = {job.record.run_at for job in await web.app.find_jobs(limit=1_000)}
    assert len(due) == 20
    assert max(due) - min(due) == pytest.approx(0.95)


async def test_what_was_changed_before_the_store_failed_is_reported(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    await _bury(web, *(_dead(number) for number in range(FIRST_PAGE + 30)))
    store = await web.app.control.store.open()
    amend = store.amend

    async def once(*asked: Any) -> Any:
        monkeypatch.setattr(store, "amend", broken)
        return await amend(*asked)

    async def broken(*_: Any) -> Any:
        message = "gone"
        raise StoreUnavailableError(message)

    monkeypatch.setattr(store, "amend", once)
    assert (await web.post("jobs/bulk", {"action": "discard", "filter": {}})).status_code == 503
    (event,) = (await web.get("events"))["events"]
    assert event["message"] == f"{FIRST_PAGE} jobs were discarded; then it was interrupted"
    assert (await web.get("dead"))["looked_at"] == 30


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"action": "retry", "filter": {}, "rate": "soon"}, 'rate must be a count per time, such as "100/m"'),
        ({"action": "retry", "filter": {}, "rate": "0/s"}, "rate must be a count per time"),
        ({"action": "retry", "filter": {}, "rate": "1/9999d"}, "too slow: the last job would be due in 27 years"),
        ({"action": "discard", "filter": {}, "rate": "1/s"}, "a rate is for retrying jobs: discard takes none"),
        ({"action": "cancel", "filter": {}, "rate": "1/s"}, "a rate is for retrying jobs: cancel takes none"),
        ({"action": "bury", "filter": {}}, "Invalid value 'bury'"),
    ],
)
async def test_what_makes_no_sense_is_refused(web: Web, body: Any, words: str) -> None:
    await _bury(web, _dead(1))
    answer = await web.post("jobs/bulk", body)
    assert (answer.status_code, words in answer.json()["detail"]) == (400, True), answer.text
    assert (await web.get("dead"))["total"] == 1


async def test_what_the_store_counts_anyway_is_not_counted_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        await web.app.control.jobs.enqueue("resize", {"path": f"{number}.png"})
    await _bury(web, *(_dead(number) for number in range(5)), _dead(7, "fetch", "out of paper"))

    async def matched(action: str, **wanted: Any) -> int:
        return int((await _bulk(web, action, wanted, dry_run=True))["matched"])

    paper = await matched("retry", error="paper")

    async def found(_: Any) -> Any:
        pytest.fail("jobs were looked at")

    monkeypatch.setattr(await web.app.control.store.open(), "find", found)
    assert (paper, await matched("retry"), await matched("retry", worker="fetch")) == (1, 6, 1)
    assert (await matched("cancel"), await matched("cancel", pool="images")) == (3, 3)
    assert await matched("retry", worker="sweep") == 0
    assert (await _bulk(web, "retry", {}, dry_run=True, limit=4))["matched"] == 4
