"""What a person does in the dashboard happens."""

import re
import time
from http import HTTPStatus
from typing import Any

from playwright.sync_api import Browser, Page, expect

from shiftwork import WorkerOrchestrator
from shiftwork.core.doc_kinds import WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.observing.beats import Beat, NodeBeat
from tests.browser.stage import Site, Watched, served
from tests.polling import wait_until


def pool(node: Site, name: str) -> dict[str, object]:
    (found,) = [one for one in node.ask("pools")["pools"] if one["name"] == name]
    return dict(found)


def press(page: Page, name: str) -> None:
    """The button of the open dialog."""
    page.get_by_role("dialog").get_by_role("button", name=name).click()


def test_pool_is_paused_and_resumed(watched: Watched, node: Site) -> None:
    page = watched.open("pools/reports")
    page.get_by_role("main").get_by_role("button", name="Pause").click()
    page.get_by_label("Reason").fill("the printer is on fire")
    press(page, "Pause")
    expect(page.get_by_role("main")).to_contain_text("the printer is on fire")
    assert pool(node, "reports")["paused"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("main").get_by_role("button", name="Pause")).to_be_visible()
    assert pool(node, "reports")["paused"] is False


def test_pool_gets_other_bounds_and_its_own_again(watched: Watched, node: Site) -> None:
    page = watched.open("pools/reports")
    page.get_by_role("button", name="Bounds").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("At least").fill("9")
    expect(dialog.get_by_role("button", name="Set bounds")).to_be_disabled()
    dialog.get_by_label("At most").fill("12")
    press(page, "Set bounds")
    expect(page.get_by_text("bounds set by hand")).to_be_visible()
    assert (pool(node, "reports")["min_workers"], pool(node, "reports")["max_workers"]) == (9, 12)
    page.get_by_role("button", name="Bounds").click()
    press(page, "Reset to the app's own bounds")
    expect(page.get_by_text("bounds set by hand")).to_have_count(0)
    assert (pool(node, "reports")["min_workers"], pool(node, "reports")["max_workers"]) == (1, 2)


def test_worker_is_disabled_and_enabled(watched: Watched, node: Site) -> None:
    page = watched.open("workers/publish-prices")
    page.get_by_role("button", name="Disable").click()
    page.get_by_label("Reason").fill("a sale")
    press(page, "Disable")
    expect(page.get_by_role("main")).to_contain_text("Disabled: a sale")
    assert node.ask("workers/publish-prices")["enabled"] is False
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    assert node.ask("workers/publish-prices")["enabled"] is True


def test_worker_is_triggered_by_a_form_made_from_its_types(watched: Watched, node: Site) -> None:
    page = watched.open("workers/image_resize")
    page.get_by_role("button", name="Trigger").click()
    form = page.get_by_role("dialog")
    form.get_by_label("path").fill("cat.png")
    form.get_by_label("width").fill("640")
    form.get_by_label("mode").select_option("fill")
    form.get_by_label("grey").check()
    press(page, "Run now")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Jobs")
    expect(page.get_by_role("region", name="result")).to_contain_text("cat.png@640 fill grey")


def test_form_has_a_field_for_whatever_a_payload_holds(watched: Watched) -> None:
    page = watched.open("workers/place_order")
    page.get_by_role("button", name="Trigger").click()
    form = page.get_by_role("dialog")
    form.get_by_label("name", exact=True).fill("Ada")
    expect(form.get_by_label("password")).to_have_attribute("type", "password")
    form.get_by_label("password").fill("secret")
    form.get_by_label("born").fill("1815-12-10")
    form.get_by_role("button", name="Add to lines").click()
    form.get_by_role("button", name="Add to lines").click()
    form.get_by_role("button", name="Remove lines 1").click()
    form.get_by_label("article").fill("cards")
    form.get_by_label("pieces").fill("100")
    form.get_by_label("pay").select_option("invoice")
    press(page, "Run now")
    expect(form.get_by_label("pieces")).to_be_focused()  # more than it may be: the browser says so, and sends nothing
    form.get_by_label("pieces").fill("99")
    press(page, "Run now")
    told = "99 cards for Ada (1815-12-10, 6 letters), by invoice, None"
    expect(page.get_by_role("region", name="result")).to_contain_text(told)
    expect(page.get_by_role("region", name="payload")).to_contain_text("•••")
    expect(page.get_by_role("main")).not_to_contain_text("secret")


def test_dead_job_is_edited_and_retried(watched: Watched, node: Site) -> None:
    dead = node.enqueue("image_resize", path="poster.png", width=30_000)
    wait_until(lambda: node.status(dead) == "dead")
    page = watched.open(f"jobs/{dead}")
    page.get_by_role("button", name="Edit and retry").click()
    page.get_by_role("dialog").get_by_label("width").fill("300")
    press(page, "Retry")
    expect(page.get_by_role("region", name="result")).to_contain_text("poster.png@300")


def test_waiting_job_shows_why_and_is_cancelled(watched: Watched, node: Site) -> None:
    later = node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=3_600)["job"]["id"]
    page = watched.open(f"jobs/{later}")
    expect(page.get_by_role("heading", name="Why is it waiting?")).to_be_visible()
    expect(page.get_by_text(re.compile(r"due at 20\d\d-"))).to_have_count(1)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")
    assert node.status(later) == "cancelled"


def test_running_job_shows_its_progress_as_it_goes(watched: Watched, node: Site) -> None:
    running = node.enqueue("long_report", pages=900)
    wait_until(lambda: node.status(running) == "processing")
    page = watched.open(f"jobs/{running}")
    log = page.get_by_role("log")
    expect(log).to_contain_text("page 0 is written")
    expect(log).to_contain_text("page 20 is written")
    expect(page.get_by_text(re.compile(r"^\d+ of 900$"))).to_be_visible()
    wait_until(lambda: log.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 30)  # it follows
    page.get_by_label("Follow").uncheck()
    log.evaluate("box => box.scrollTop = 0")
    expect(log).to_contain_text("page 30 is written")
    assert log.evaluate("box => box.scrollTop") == 0
    page.get_by_role("button", name="Show stack").click()
    expect(page.get_by_role("region", name="stack")).to_contain_text("in long_report")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")


def test_filters_are_in_the_address_and_bulk_actions_count_first(watched: Watched, node: Site) -> None:
    for number in range(3):
        node.act(
            "jobs", worker="send_mail", payload={"to": f"bulk-{number}"}, delay_seconds=7_200, unique_key=f"b{number}"
        )
    page = watched.open("jobs")
    expect(page.get_by_role("button", name="Cancel all")).to_be_disabled()
    page.get_by_role("button", name="scheduled").click()
    page.get_by_label("Worker", exact=True).fill("send_mail")
    page.get_by_label("Worker", exact=True).press("Enter")
    expect(page.get_by_label("Worker", exact=True)).to_be_focused()
    expect(page).to_have_url(re.compile("status=scheduled&worker=send_mail"))
    expect(page.get_by_role("row").filter(has_text="bulk-2")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="scheduled")).to_have_attribute("aria-pressed", "true")
    waiting = len(node.ask("jobs?status=scheduled&worker=send_mail&limit=500")["jobs"])
    page.get_by_role("button", name="Cancel all").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"{waiting} jobs that match the filter")
    assert len(node.ask("jobs?status=scheduled&worker=send_mail&limit=500")["jobs"]) == waiting
    press(page, f"Cancel all {waiting} jobs")
    expect(page.get_by_text("No matching jobs")).to_be_visible()
    assert node.ask("jobs?status=scheduled&worker=send_mail")["jobs"] == []


def test_a_tag_leads_to_all_jobs_that_have_it(watched: Watched, node: Site) -> None:
    def add(to: str, **more: Any) -> str:
        added = node.act("jobs", worker="send_mail", payload={"to": to}, delay_seconds=7_200, **more)
        return str(added["job"]["id"])

    first = add("tag-one", tags=["spring", "one"], expires_seconds=60, max_retries=9, timeout_seconds=90)
    add("tag-two", tags=["spring"])
    add("tag-none")
    page = watched.open(f"jobs/{first}")
    for text in ("if it has not started", "9 at most, for this job", "for this job"):
        expect(page.get_by_text(text).first).to_be_visible()
    page.get_by_role("link", name="spring").click()
    expect(page).to_have_url(re.compile("tag=spring"))
    expect(page.get_by_label("Tag", exact=True)).to_have_value("spring")
    expect(page.get_by_role("row").filter(has_text="tag-two")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="tag-none")).to_have_count(0)


def test_chosen_jobs_stay_chosen_while_the_list_moves(watched: Watched, node: Site) -> None:
    made = [
        node.act("jobs", worker="send_mail", payload={"to": f"row-{n}"}, delay_seconds=9_000)["job"]["id"]
        for n in range(3)
    ]
    page = watched.open("jobs?status=scheduled")
    page.get_by_label(f"Select job {made[0]}").check()
    page.get_by_label(f"Select job {made[1]}").check()
    newer = node.act("jobs", worker="send_mail", payload={"to": "newer"}, delay_seconds=9_000)["job"]["id"]
    page.get_by_role("button", name="1 new above").click()
    expect(page.get_by_label(f"Select job {newer}")).to_be_visible()
    expect(page.get_by_text("2 jobs selected")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    press(page, "Cancel 2 jobs")
    wait_until(lambda: node.status(made[1]) == "cancelled")
    assert [node.status(one) for one in made] == ["cancelled", "cancelled", "scheduled"]


def test_jobs_are_paged(watched: Watched, node: Site) -> None:
    if len(node.ask("jobs?worker=send_mail&limit=500")["jobs"]) <= 50:
        for number in range(20):
            node.enqueue("send_mail", to=f"more-{number}")
    page = watched.open("jobs?worker=send_mail")
    rows = page.get_by_role("region", name="Jobs").get_by_role("row")
    expect(rows).to_have_count(51)
    shown = rows.locator("a[title]").all_inner_texts()
    assert len(set(shown)) == len(shown) == 50  # short as they are, one can tell them apart
    newest = page.locator(f'a[title="{rows.nth(1).locator("a[title]").get_attribute("title")}"]')
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("Page 2")).to_be_visible()
    expect(page).to_have_url(re.compile("after="))
    expect(newest).to_have_count(0)
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_text("Page 1")).to_be_visible()
    expect(newest).to_have_count(1)


def test_dead_letters_are_inspected_retried_and_discarded(watched: Watched, node: Site) -> None:
    page = watched.open("dead")
    group = page.locator("section").filter(has_text="pixels are too many")
    group.get_by_role("button", name="Inspect").click()
    expect(group.get_by_role("row").filter(has_text="pixels are too many").first).to_be_visible()
    count = len(node.ask("jobs?status=dead&worker=image_resize&limit=500")["jobs"])
    group.get_by_role("button", name="Discard").click()
    press(page, f"Discard {count} jobs")
    expect(group).to_have_count(0)
    assert node.ask("jobs?status=dead&worker=image_resize")["jobs"] == []
    for number in range(2):
        node.enqueue("image_resize", path=f"again-{number}.png", width=20_000 + number)
    wait_until(lambda: len(node.ask("jobs?status=dead&worker=image_resize")["jobs"]) == 2)
    group.get_by_role("button", name="Retry", exact=True).click()
    page.get_by_label("Jobs at most").fill("1")
    page.get_by_label("Per", exact=True).select_option("m")
    expect(page.get_by_role("dialog")).to_contain_text("This takes 1 min, until")
    press(page, "Retry 2 jobs")
    expect(page.get_by_text("2 jobs queued again; the last one is due at")).to_be_visible()
    assert len(node.ask("jobs?status=scheduled&worker=image_resize")["jobs"]) == 1


def test_node_is_drained_and_takes_work_again(watched: Watched, node: Site) -> None:
    page = watched.open("nodes")
    page.get_by_role("button", name="Drain").click()
    page.get_by_label("Reason").fill("new memory")
    press(page, "Drain")
    expect(page.get_by_role("button", name="Undo drain")).to_be_visible()
    assert node.ask("nodes")["nodes"][0]["status"] in {"draining", "drained"}
    page.get_by_role("button", name="Undo drain").click()
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    page.goto(f"{node.address}#/events?name=node.drained")
    expect(page.get_by_role("listitem").filter(has_text="new memory").first).to_be_visible()


def test_schedule_is_added_changed_paused_run_and_deleted(watched: Watched, node: Site) -> None:
    page = watched.open("schedules")
    page.get_by_role("button", name="New schedule").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("mail-ada")
    form.get_by_label("Worker").fill("send_mail")
    form.get_by_label("Cron").fill("30 9 * * 1-5")
    form.get_by_label("Time zone").fill("Asia/Tokyo")
    form.get_by_label("to", exact=True).fill("ada@example.org")
    preview = form.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("Runs at 09:30 on Monday through Friday, Asia/Tokyo")
    expect(preview.get_by_role("listitem")).to_have_count(10)
    press(page, "Add")
    expect(page.get_by_role("list", name="Next fire times").get_by_role("listitem")).to_have_count(10)
    main = page.get_by_role("main")
    main.get_by_role("button", name="Change").click()
    form.get_by_role("button", name="At an interval").click()
    form.get_by_label("Every").fill("2")
    form.get_by_label("Unit").select_option("hours")
    press(page, "Change")
    expect(main).to_contain_text("every 2 hours")
    main.get_by_role("button", name="Pause").click()
    expect(main).to_contain_text("It fires again when it is resumed")
    seen = node.ask("schedules/mail-ada")
    assert (seen["payload"], seen["paused"]) == ({"to": "ada@example.org", "subject": "Your order"}, True)
    main.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("region", name="result")).to_contain_text("Your order to ada@example.org")
    page = watched.open("schedules?worker=send_mail")
    page.get_by_role("button", name="Delete mail-ada").click()
    press(page, "Delete")
    expect(page.get_by_role("link", name="mail-ada")).to_have_count(0)
    assert [one["name"] for one in node.ask("schedules")["schedules"]] == ["daily-mail"]


def test_worker_gets_another_schedule_and_its_own_again(watched: Watched, node: Site) -> None:
    page = watched.open("workers/nightly-report")
    page.get_by_role("button", name="Reschedule").click()
    page.get_by_role("dialog").get_by_label("Cron").fill("0 4 * * *")
    press(page, "Reschedule")
    expect(page.get_by_role("main")).to_contain_text("wins over the one in the code until it is reset")
    wait_until(lambda: node.ask("workers/nightly-report")["schedule"] == "at 04:00 every day, Europe/Vienna")
    page.get_by_role("button", name="Reschedule").click()
    press(page, "Reset to the schedule in the code")
    expect(page.get_by_role("main")).not_to_contain_text("wins over the one in the code")
    wait_until(lambda: node.ask("workers/nightly-report")["schedule"] == "at 03:00 every day, Europe/Vienna")


async def deployed_without(app: WorkerOrchestrator, worker: str) -> None:
    """A worker with a job that is queued, beside a node of a version that does not have it."""
    store = await app.control.store.open()
    task = WorkerOrchestrator(store).register_worker(worker, lambda: None, execution_mode="triggered")
    await task.with_options(run_at=time.time() - 60).enqueue()
    await store.put([Doc("worker", worker, WORKER.encode(task.config))])
    machine = NodeBeat(host="h", cores=1, memory=1, pools=("default",))
    beat = Beat(
        instance="n",
        node="n",
        pool="",
        slots=0,
        workers=(),
        machine=machine,
        status="busy",
        started_at=time.time() - 60,
    )
    await store.beat([beat], 3_600, time.time())


def test_worker_that_no_node_has_is_forgotten_once_its_jobs_are_cancelled(chromium: Browser) -> None:
    context = chromium.new_context()
    app = WorkerOrchestrator("memory://")
    with served(app) as host:
        host.run(deployed_without(app, "old_name"))
        watched = Watched(context.new_page(), host.site)
        watched.expects(HTTPStatus.NOT_FOUND)  # the page of a worker that is gone may ask for it once more
        page = watched.open("overview")
        expect(page.get_by_text("1 job waits for worker old_name, which no running node has")).to_be_visible()
        expect(page.get_by_text("or cancel these jobs and forget it")).to_be_visible()
        page = watched.open("workers/old_name")
        expect(page.get_by_role("main")).to_contain_text('give that one the alias "old_name"')
        page.get_by_role("button", name="Forget").click()
        forget = page.get_by_role("dialog").get_by_role("button", name="Forget")
        expect(page.get_by_role("dialog")).to_contain_text("1 job of it has not ended: cancel it first")
        expect(forget).to_be_disabled()
        [job] = host.run(app.find_jobs())
        host.site.act(f"jobs/{job.id}/cancel")
        expect(forget).to_be_enabled()
        forget.click()
        expect(page.get_by_text("No workers yet")).to_be_visible()
        assert host.run(app.workers()) == {}
        context.close()
    assert watched.wrong == []
