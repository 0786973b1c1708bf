"""The dashboard stays up to date by itself, can be held still, survives its server, and is quick with many workers."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from shiftwork import WorkerOrchestrator
from tests.browser.stage import Site, Watched, served
from tests.polling import wait_until
from tests.ports import free_port


def nothing() -> WorkerOrchestrator:
    return WorkerOrchestrator("memory://")


async def noop() -> None:
    """What ten thousand workers do."""


def ten_thousand() -> WorkerOrchestrator:
    app = WorkerOrchestrator("memory://")
    for number in range(10_000):
        first = [f"worker-{number // 2:05}"] if 0 < number < 1_000 else []
        app.register_worker(f"worker-{number:05}", noop, interval_seconds=60 + number, depends_on=first)
    return app


def show_new(page: Page) -> None:
    """Have the list show what is new above it."""
    page.get_by_role("button", name=re.compile("new above")).click()


def test_new_job_is_counted_without_a_reload_and_the_focus_stays(watched: Watched, node: Site) -> None:
    page = watched.open("jobs?status=scheduled")
    field = page.get_by_label("Error contains")
    field.fill("half a wo")
    made = node.act("jobs", worker="send_mail", payload={"to": "live"}, delay_seconds=9_000)["job"]["id"]
    expect(page.get_by_role("button", name=re.compile("^1 new above"))).to_be_visible()
    expect(page.get_by_label(f"Select job {made}")).to_have_count(0)
    expect(field).to_be_focused()
    expect(field).to_have_value("half a wo")
    field.fill("")
    show_new(page)
    expect(page.get_by_label(f"Select job {made}")).to_be_visible()


def test_what_is_looked_at_stays_in_place_while_rows_come_above(watched: Watched, node: Site) -> None:
    below = [node.enqueue("send_mail", to=f"below-{number}") for number in range(20)]
    wait_until(lambda: all(node.status(one) == "completed" for one in below))
    page = watched.open("jobs?worker=send_mail")
    rows = page.get_by_role("region", name="Jobs").get_by_role("row")
    expect(rows).to_have_count(51)
    page.evaluate("window.scrollTo(0, 400)")
    seen = page.get_by_label(str(rows.nth(20).get_by_role("checkbox").get_attribute("aria-label")))
    expect(seen).to_be_visible()
    before = seen.bounding_box()
    first = rows.nth(1).get_by_role("checkbox").get_attribute("aria-label")
    made = [node.enqueue("send_mail", to=f"above-{number}") for number in range(60)]
    expect(page.get_by_role("button", name="More than 50 new above")).to_be_visible()
    expect(seen).to_be_visible()
    after = seen.bounding_box()
    assert before
    assert after
    assert after["y"] == pytest.approx(before["y"], abs=40)  # the button takes a line above the list
    assert rows.nth(1).get_by_role("checkbox").get_attribute("aria-label") == first
    newest = page.get_by_label(f"Select job {made[-1]}")

    def is_shown() -> bool:
        if newest.count() == 0 and page.get_by_role("button", name=re.compile("new above")).count():
            show_new(page)  # again, if the page had not read the last of them when it was asked
        return newest.count() == 1

    wait_until(is_shown)
    expect(rows).to_have_count(51)


def test_paused_page_asks_nothing_and_stands_still(watched: Watched, node: Site) -> None:
    page = watched.open("jobs?status=scheduled")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Updates are paused")).to_be_visible()
    made = node.act("jobs", worker="send_mail", payload={"to": "unseen"}, delay_seconds=9_000)["job"]["id"]
    expect(page.get_by_text("Something has changed since")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    done = [node.enqueue("send_mail", to=f"meanwhile-{number}") for number in range(20)]
    wait_until(lambda: all(node.status(one) == "completed" for one in done))
    expect(page.get_by_label(f"Select job {made}")).to_have_count(0)
    assert asked == []
    page.get_by_role("button", name="Resume").click()
    show_new(page)
    expect(page.get_by_label(f"Select job {made}")).to_be_visible()


def test_keyboard_goes_everywhere(watched: Watched) -> None:
    page = watched.open("overview")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")  # before that, no key is heard
    for key, title in {
        "p": "Pools",
        "w": "Workers",
        "j": "Jobs",
        "d": "Dead letters",
        "b": "Breakers",
        "n": "Nodes",
        "e": "Events",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.keyboard.press("/")
    page.keyboard.type("image_res")
    expect(page.get_by_role("listbox", name="Results").get_by_role("option").first).to_contain_text("image_resize")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("image_resize")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_rows_are_steered_by_keys(watched: Watched, node: Site) -> None:
    jobs = [
        node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=9_000, tags=["keys"])
        for _ in range(3)
    ]
    newest = jobs[-1]["job"]["id"]
    page = watched.open("jobs?tag=keys")
    rows = page.get_by_role("region", name="Jobs").get_by_role("row")
    expect(rows).to_have_count(4)
    for key, place in {"j": 1, "J": 1, "k": 1}.items():
        page.keyboard.press(key)
        expect(rows.nth(place)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(rows.nth(2).get_by_role("checkbox")).to_be_checked()
    expect(page.get_by_text("1 job selected")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(newest))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next row of the list")
    page.keyboard.press("Escape")
    watched.open("dead")
    expect(page.get_by_role("button", name="Inspect").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Jobs").get_by_role("row").first).to_be_visible()
    watched.open("nodes")
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("events.subject="))


def test_selected_row_stays_while_it_leaves_its_list(watched: Watched, node: Site) -> None:
    made = [
        node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=9_000, tags=["held"])[
            "job"
        ]["id"]
        for _ in range(3)
    ]
    page = watched.open("jobs?status=scheduled&tag=held")
    rows = page.get_by_role("region", name="Jobs").get_by_role("row")
    expect(rows).to_have_count(4)
    page.get_by_label(f"Select job {made[1]}").check()
    node.act(f"jobs/{made[1]}/cancel")
    node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=9_000, tags=["held"])
    expect(page.get_by_text("1 in italics")).to_be_visible()
    expect(rows.nth(2).get_by_role("checkbox")).to_be_checked()
    show_new(page)
    expect(rows).to_have_count(5)  # the new one, and still the selected one
    expect(page.get_by_label(f"Select job {made[1]}")).to_be_checked()


def test_times_are_in_one_zone_that_is_named_and_kept(chromium: Browser, node: Site) -> None:
    context = chromium.new_context(timezone_id="Asia/Tokyo", reduced_motion="reduce")
    page = context.new_page()
    later = node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=80_000)["job"]
    due = datetime.fromisoformat(later["run_at"])
    page.goto(f"{node.address}#/jobs/{later['id']}")
    local = due.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%d %H:%M")
    expect(page.get_by_role("main").get_by_text(f"due at {local}")).to_be_visible()
    page.get_by_role("button", name="Times are in Asia/Tokyo. Change to UTC").click()
    expect(page.get_by_role("main").get_by_text(f"due at {due.strftime('%Y-%m-%d %H:%M')}")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Times are in UTC. Change to Asia/Tokyo")).to_be_visible()
    node.act(f"jobs/{later['id']}/cancel")
    context.close()


def test_lost_server_is_shown_and_found_again(chromium: Browser) -> None:
    context = chromium.new_context()
    page = context.new_page()
    port = free_port()
    with served(nothing(), port) as host:
        page.goto(f"{host.site.address}#/pools")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    with served(nothing(), port):
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        context.close()


def test_empty_store_is_not_an_error(chromium: Browser) -> None:
    context = chromium.new_context()
    with served(nothing()) as host:
        watched = Watched(context.new_page(), host.site)
        for place, told in {
            "workers": "No workers yet",
            "jobs": "No jobs yet",
            "dead": "No dead letters",
            "nodes": "No node is running",
        }.items():
            expect(watched.open(place).get_by_text(told)).to_be_visible()
        context.close()
    assert watched.wrong == []


def test_ten_thousand_workers_do_not_slow_the_page(chromium: Browser) -> None:
    context = chromium.new_context()
    with served(ten_thousand()) as host:
        watched = Watched(context.new_page(), host.site)
        page = watched.open("workers")
        rows = page.get_by_role("region", name="Workers").get_by_role("row")
        expect(rows).to_have_count(101)
        page.get_by_label("Name contains").fill("worker-0777")
        expect(rows).to_have_count(11)
        page.get_by_label("Name contains").fill("")
        page.get_by_role("button", name="Next page").last.click()
        expect(page.get_by_text("101–200 of 10,000")).to_be_visible()
        page.get_by_role("button", name="Graph").click()
        expect(page.get_by_text("1,000 workers are too many to show at once")).to_be_visible()
        page.get_by_label("Around worker").fill("worker-00100")
        page.keyboard.press("Enter")
        drawing = page.get_by_label("Dependencies and conflicts")
        expect(drawing.get_by_role("link")).to_have_count(4)
        page.get_by_label("Distance").select_option("3")
        expect(drawing.get_by_role("link", name="worker-00801")).to_be_visible()
        context.close()
    assert watched.wrong == []
