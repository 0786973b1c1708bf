"""Lists are sorted, filtered, counted and read page by page by the server, and hold still while one reads."""

import re
from http import HTTPStatus

from playwright.sync_api import Browser, expect

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.handles.worker import Call
from tests.browser.stage import Watched, served


def nothing() -> WorkerOrchestrator:
    return WorkerOrchestrator("memory://")


async def noop() -> None:
    """Nothing."""


async def many_events(app: WorkerOrchestrator) -> None:
    store = await app.control.store.open()
    await store.record(
        [
            Event(at=app.control.now(), name="pool.scaled", subject=f"pool-{n}", message=f"step {n}")
            for n in range(1_150)
        ]
    )


def test_events_go_back_as_far_as_they_are_kept(chromium: Browser) -> None:
    context = chromium.new_context()
    app = nothing()
    with served(app) as host:
        host.run(many_events(app))
        watched = Watched(context.new_page(), host.site)
        page = watched.open("events")
        expect(page.get_by_text("100 events, newest first")).to_be_visible()
        for shown in ("600", "1,100"):
            page.get_by_text("Older", exact=True).click()
            expect(page.get_by_text(f"{shown} events, newest first")).to_be_visible()
        page.get_by_text("Older", exact=True).click()
        expect(page.get_by_text("older ones are not kept")).to_be_visible()
        rows = page.locator("li:has(time)")
        expect(rows).to_have_count(1_150)
        expect(rows.last).to_contain_text("step 0")
        rows.first.get_by_role("button", name="Only events about pool-1149").click()
        expect(rows).to_have_count(1)
        expect(page).to_have_url(re.compile("subject=pool-1149"))
        context.close()
    assert watched.wrong == []


async def many_jobs(app: WorkerOrchestrator) -> None:
    for number in range(70):
        await app.control.jobs.enqueue("act", {}, CheckedJobOptions(job_id=f"job-{number:03}"))


def test_jobs_are_sorted_and_counted_by_the_server_and_show_their_places(chromium: Browser) -> None:
    context = chromium.new_context()
    app = nothing()
    app.register_worker("act", noop, execution_mode="triggered")
    with served(app) as host:
        host.run(many_jobs(app))
        watched = Watched(context.new_page(), host.site)
        page = watched.open("jobs?status=queued")
        rows = page.get_by_role("region", name="Jobs").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("position 70")
        expect(page.get_by_text("Page 1, 50 of 70 jobs")).to_be_visible()
        page.get_by_role("button", name="Created").click()
        expect(page.get_by_role("columnheader", name="Created")).to_have_attribute("aria-sort", "ascending")
        expect(rows.nth(1).get_by_label("Select job job-000")).to_be_visible()
        expect(rows.nth(1)).to_contain_text("position 1")
        page.get_by_role("button", name="Newer").click()
        expect(rows.nth(1).get_by_label("Select job job-050")).to_be_visible()
        expect(rows).to_have_count(21)
        expect(page.get_by_text("Page 2, 20 of 70 jobs")).to_be_visible()
        assert "order=oldest" in page.url
        headers = page.get_by_role("columnheader").get_by_role("button")
        assert headers.all_inner_texts() == ["Created\n↑"], "only what the server can sort is a button"
        watched.expects(HTTPStatus.NOT_FOUND)
        page.get_by_label("Worker").first.fill("acd")
        page.get_by_label("Worker").first.press("Enter")
        expect(page.get_by_text("there is no worker 'acd': did you mean 'act'?")).to_be_visible()
        context.close()
    assert watched.wrong == []


async def flows(app: WorkerOrchestrator, call: Call[None], many: int) -> list[str]:
    return [(await app.enqueue_flow(call)).id for _ in range(many)]


def test_flows_and_jobs_hold_still_though_more_come_at_once_than_a_page_has(chromium: Browser) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    app = nothing()
    bind = app.register_worker("bind", noop, execution_mode="triggered")
    with served(app) as host:

        def burst() -> None:
            host.run(flows(app, bind.with_options(tags=["new"]).call(), 60))
            host.site.enqueue("bind")  # announces the change: no node has published the pool, so no bell does
            expect(page.get_by_role("button", name="More than 50 new above")).to_be_visible()

        old = host.run(flows(app, bind.with_options(tags=["old"]).call(), 55))
        watched = Watched(context.new_page(), host.site)
        page = watched.open("flows")
        rows = page.get_by_role("main").locator("li")
        expect(page.get_by_text("Page 1, 50 flows")).to_be_visible()
        burst()
        host.site.act(f"flows/{old[-1]}/cancel")
        expect(rows.first).to_contain_text("1 cancelled")  # what it shows is kept up to date, where it is
        expect(page.get_by_text("in italics")).to_have_count(0)
        page = watched.open("jobs")
        rows = page.get_by_role("region", name="Jobs").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("position 115")
        burst()
        host.site.act(f"flows/{old[-2]}/cancel")
        expect(rows.nth(1)).to_contain_text("position 114")
        expect(page.get_by_text("in italics")).to_have_count(0)
        context.close()
    assert watched.wrong == []


def test_flows_are_filtered_counted_and_steered_by_keys(chromium: Browser) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    app = nothing()
    bind = app.register_worker("bind", noop, execution_mode="triggered")
    with served(app) as host:
        made = host.run(flows(app, bind.with_options(tags=["shoes"]).call(), 2)) + host.run(flows(app, bind.call(), 2))
        host.site.act(f"flows/{made[0]}/cancel")
        watched = Watched(context.new_page(), host.site)
        page = watched.open("flows?tag=shoes")
        rows = page.get_by_role("main").locator("li")
        expect(page.get_by_text("Page 1, the last one, 2 flows")).to_be_visible()
        page.get_by_label("State").select_option("cancelled")
        expect(page.get_by_text("Page 1, the last one, 1 flow")).to_be_visible()
        page.get_by_label("State").select_option("")
        expect(rows).to_have_count(2)
        page.get_by_role("heading", level=1).click()
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(made[0]))
        for action, press, state in (("Retry", "Retry 1 job", "running"), ("Cancel", "Cancel its jobs", "cancelled")):
            page.get_by_role("main").get_by_role("button", name=action).click()
            page.get_by_role("dialog").get_by_label("Reason").fill(f"{action} for the customer")
            page.get_by_role("dialog").get_by_role("button", name=press).click()
            expect(page.get_by_role("heading", level=1)).to_contain_text(state)
        said = [event["text"] for event in host.site.ask("events")["events"] if "customer" in event["text"]]
        assert [text.rpartition(": ")[2] for text in said] == ["Retry for the customer", "Cancel for the customer"]
        context.close()
    assert watched.wrong == []
