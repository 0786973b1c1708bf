"""Every page shows what there is, in both themes and on a phone, and is accessible: axe finds nothing."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from shiftwork.events import NAMES, OF_EVERY_JOB
from tests.browser.stage import Site, Watched
from tests.polling import wait_until

PAGES = {
    "overview": "Overview",
    "pools": "Pools",
    "pools/mail": "mail",
    "workers": "Workers",
    "workers?view=graph": "Workers",
    "workers/image_resize": "image_resize",
    "schedules": "Schedules",
    "schedules/daily-mail": "daily-mail",
    "jobs?status=dead": "Jobs",
    "jobs?waits_for_signal=true": "Jobs",
    "flows": "Flows",
    "dead": "Dead letters",
    "breakers": "Breakers",
    "nodes": "Nodes",
    "events?name=worker.disabled": "Events",
    "nowhere": "Not found",
}
"""Places, and their titles."""
STILL = """() => Promise.allSettled(
    document.getAnimations().filter(one => one.effect.getComputedTiming().endTime < Infinity).map(one => one.finished)
)"""
"""Waits for transitions: a colour half way has another contrast."""
LATIN_WORD = re.compile(r"[A-Za-z_]{3,}")
KEPT_IN_CHINESE = {
    *("shiftwork", "Worker", "worker", "CPU", "Pid", "pid", "Cron", "UTC"),
    *(
        "depends_on",
        "blocks",
        "scale_up_threshold",
        "scale_down_threshold",
        "min_workers",
        "max_workers",
        "enqueue_flow",
    ),
}
"""Names, among them those of options, and terms that the glossary of the Chinese catalogue keeps."""
LIGHT, DARK = "rgb(245, 246, 248)", "rgb(14, 17, 21)"


@pytest.fixture(scope="session")
def axe(checkout: Path) -> str:
    return (checkout / "ui/node_modules/axe-core/axe.min.js").read_text()


def violations(page: Page, axe: str, *only: str) -> list[str]:
    """What axe finds against WCAG 2.2 A and AA, and good practice; or against these rules, or rules with these tags."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"(() => {{ {axe} }})()")
    page.evaluate(STILL)
    # Of WCAG 2.2, axe has the size of targets, which it does not check unless it is asked to.
    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    if only:
        options["runOnly"] = list(only)
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def settled(page: Page) -> None:
    """Until nothing is loading."""
    expect(page.get_by_label("Loading")).to_have_count(0)


def shown(watched: Watched) -> Iterator[str]:
    """Go to every place, one after the other."""
    for place, title in PAGES.items():
        page = watched.open(place)
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        settled(page)
        yield place


def test_pages_are_accessible_in_both_themes_and_fit_a_phone(watched: Watched, axe: str) -> None:
    page = watched.open("overview")
    assert {place: found for place in shown(watched) if (found := violations(page, axe))} == {}
    page.emulate_media(color_scheme="dark")
    page.reload()  # while a page changes its colours, axe sees some of each
    expect(page.locator("body")).to_have_css("background-color", DARK)
    only_colours_differ = {place: violations(page, axe, "color-contrast") for place in shown(watched)}
    assert not any(only_colours_differ.values()), only_colours_differ
    page.set_viewport_size({"width": 360, "height": 740})
    for _ in shown(watched):
        # Not wait_for_function: where it has to wait, it makes code of text, which the page's policy forbids.
        wait_until(lambda: bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")))


def test_job_page_and_dialogs_are_accessible(watched: Watched, node: Site, axe: str) -> None:
    dead = node.ask("jobs?status=dead&worker=image_resize&limit=1")["jobs"][0]["id"]
    page = watched.open(f"jobs/{dead}")
    expect(page.get_by_role("region", name="Traceback of attempt 2")).to_contain_text("pixels are too many")
    assert violations(page, axe) == []
    page.get_by_role("button", name="Edit and retry").click()
    expect(page.get_by_role("dialog").get_by_label("width")).to_be_visible()
    assert violations(page, axe) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Go to Workers")
    assert violations(page, axe) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    running = node.enqueue("long_report", pages=500)
    page.goto(f"{watched.site.address}#/jobs/{running}")
    expect(page.get_by_role("log")).to_contain_text("page 4 is written")
    assert violations(page, axe) == []
    node.act(f"jobs/{running}/cancel")
    page.set_viewport_size({"width": 360, "height": 740})
    wait_until(lambda: bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")))


def test_overview_says_what_is_wrong_and_leads_to_the_remedy(watched: Watched) -> None:
    page = watched.open("overview")
    page.get_by_role("link", name="worker sync-warehouse is disabled").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("sync-warehouse")
    expect(page.get_by_role("main")).to_contain_text("3 runs in a row failed")


def test_overview_draws_its_charts(watched: Watched) -> None:
    page = watched.open("overview")
    charts = {
        "Ended attempts per second": "completed",
        "Success rate": "succeeded",
        "Jobs waiting": "mail",
        "Oldest wait": "mail",
        "95 % waited less than": "mail",
        "95 % ran less than": "mail",
    }
    for chart, line in charts.items():
        expect(page.get_by_role("img", name=chart)).to_have_accessible_name(re.compile(line))
    assert page.locator("canvas").count() == len(charts)
    page.get_by_role("group", name="Time shown").get_by_role("button", name="15 min").click()
    expect(page).to_have_url(re.compile(r"overview\?seconds=900$"))
    page.reload()
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")


def test_pool_shows_each_step_with_its_reason(watched: Watched, node: Site) -> None:
    node.act("pools/mail/pause")  # on a busy machine, each job would be done before the next is added
    for number in range(60):
        node.enqueue("send_mail", to=f"step-{number}@example.org")
    node.act("pools/mail/resume")
    page = watched.open("pools/mail")
    expect(page.get_by_role("list", name="Scaling steps")).to_contain_text("slots:")


def test_workers_tell_their_schedule_in_words(watched: Watched) -> None:
    page = watched.open("workers")
    row = page.get_by_role("row").filter(has_text="nightly-report")
    expect(row).to_contain_text("at 03:00 every day, Europe/Vienna")
    expect(page.get_by_role("row").filter(has_text="sync-warehouse")).to_contain_text("disabled")


def test_graph_is_drawn(watched: Watched) -> None:
    page = watched.open("workers?view=graph")
    drawing = page.get_by_label("Dependencies and conflicts")
    for name in ("fetch-prices", "work-out-prices", "publish-prices", "cleanup"):
        expect(drawing.get_by_role("link", name=name)).to_be_visible()
    page.get_by_label("Around worker").fill("cleanup")
    page.keyboard.press("Enter")
    expect(drawing.get_by_role("link")).to_have_count(2)
    page.get_by_label("Distance").select_option("2")
    expect(drawing.get_by_role("link")).to_have_count(4)
    expect(page).to_have_url(re.compile("around=cleanup&hops=2"))
    drawing.get_by_role("link", name="cleanup").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cleanup")


def test_nodes_show_the_machine(watched: Watched, node: Site) -> None:
    (known,) = node.ask("nodes")["nodes"]
    page = watched.open("nodes")
    expect(page.get_by_role("heading", name=known["name"])).to_contain_text("leader")
    for what in ("CPU", "Memory", "Busy slots"):
        expect(page.get_by_role("meter", name=f"{what} of {known['name']}")).to_be_visible()
    running = node.enqueue("long_report", pages=500)
    row = page.get_by_role("region", name="Instances").get_by_role("row").filter(has_text="reports")
    expect(row.locator(f'a[title="{running}"]')).to_be_visible()
    row.get_by_role("button", name=f"Show the stack of {running}").click()
    expect(page.get_by_role("region", name="stack")).to_contain_text("in long_report")
    node.act(f"jobs/{running}/cancel")


def test_every_event_can_be_asked_for(watched: Watched) -> None:
    page = watched.open("events")
    offered = page.get_by_label("Kind of event").get_by_role("option")
    kept = NAMES.keys() - OF_EVERY_JOB
    expect(offered).to_have_count(1 + len(kept))
    assert set(offered.all_inner_texts()[1:]) == kept


def test_events_are_shown_with_their_reason(watched: Watched) -> None:
    page = watched.open("events?name=worker.disabled")
    expect(page.get_by_role("listitem").filter(has_text="sync-warehouse")).to_contain_text("runs in a row failed")


def test_unknown_things_are_shown_as_unknown(watched: Watched) -> None:
    watched.expects(HTTPStatus.NOT_FOUND)
    page = watched.open("nowhere")
    expect(page.get_by_text("This page does not exist")).to_be_visible()
    page.goto(f"{watched.site.address}#/workers/fetch-price")
    expect(page.get_by_role("alert")).to_contain_text("fetch-prices")


def test_failed_request_is_shown_and_can_be_repeated(watched: Watched) -> None:
    watched.expects(HTTPStatus.SERVICE_UNAVAILABLE)
    page = watched.page
    broken = {"title": "Store is away", "detail": "nobody answers at its address"}
    held: list[Route] = []
    page.route("**/api/v1/dead", lambda route: held.append(route))  # noqa: PLW0108 - it takes attributes
    watched.open("dead")
    expect(page.get_by_label("Loading")).to_be_visible()
    while not held:
        page.wait_for_timeout(10)
    page.route("**/api/v1/dead", lambda route: route.fulfill(status=503, json=broken))  # what it asks from now on
    for asked in held:
        asked.fulfill(status=503, json=broken)
    expect(page.get_by_role("alert")).to_contain_text("nobody answers at its address")
    page.unroute("**/api/v1/dead")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")
    expect(page.get_by_text("failed for good")).to_be_visible()


def test_no_style_or_script_stands_in_the_page(watched: Watched) -> None:
    """A strict policy would not let it run, and the console would say so: see `Watched.wrong`."""
    page = watched.open("overview")
    with page.expect_response(lambda answer: answer.url == watched.site.address) as loaded:
        page.reload()
    policy = loaded.value.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_system_theme_is_followed(watched: Watched) -> None:
    page = watched.open("overview")
    body = page.locator("body")
    page.emulate_media(color_scheme="light")
    expect(body).to_have_css("background-color", LIGHT)
    page.emulate_media(color_scheme="dark")
    expect(body).to_have_css("background-color", DARK)
    page.get_by_role("button", name="Theme: system").click()
    expect(body).to_have_css("background-color", LIGHT)
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    page.get_by_role("button", name="Theme: light").click()
    expect(body).to_have_css("background-color", DARK)


def test_flow_is_drawn_as_it_runs_and_continues_after_a_signal(watched: Watched, node: Site, axe: str) -> None:
    book = node.enqueue("make_book", pages=3)
    wait_until(lambda: any(flow["id"] == book and flow["ended"] == 3 for flow in node.ask("flows")["flows"]))
    page = watched.open("flows")
    expect(page.get_by_text("1 scheduled, 3 completed")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text=book[6:18])).to_contain_text("bind_book")
    assert violations(page, axe) == []
    page.get_by_role("link", name=book[6:18]).click()
    expect(page.get_by_role("link", name="render_page 3 of 3: 3 completed")).to_be_visible()
    assert violations(page, axe) == []
    page.get_by_role("link", name="bind_book scheduled: 1 scheduled").click()
    expect(page.get_by_role("list", name="Steps")).to_contain_text("draw the cover")
    page.get_by_role("button", name="Send approval").click()
    page.get_by_role("dialog").get_by_label("Value, in JSON").fill('{"by": "ann"}')
    page.get_by_role("dialog").get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="result", exact=True)).to_contain_text(
        "3 pages in a blue cover, approved by ann"
    )
    page.get_by_role("link", name=book[6:18]).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.get_by_role("list", name="Critical path")).to_contain_text("render_page")


def english_on(page: Page, node: Site) -> set[str]:
    """Return the words on a Chinese page that are neither data nor kept. The data is asked for after the page."""
    words = set(LATIN_WORD.findall(page.inner_text("body"))) - KEPT_IN_CHINESE
    asked = [
        "overview",
        "workers",
        "pools",
        "schedules",
        "nodes",
        "dead",
        "jobs?status=dead",
        "jobs?worker=image_resize",
        "flows",
    ]
    asked += ["events", "events?name=pool.scaled", "events?name=worker.disabled"]
    data = "".join(str(node.ask(path)) for path in asked) + " ".join(NAMES)
    return {word for word in words if word not in data}


def test_pages_are_chinese_for_a_reader_of_chinese_and_english_on_request(
    chromium: Browser, node: Site, axe: str
) -> None:
    context = chromium.new_context(locale="zh-CN", reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    for place in PAGES:
        page.goto(f"{node.address}#/{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_label("加载中")).to_have_count(0)
        assert english_on(page, node) == set(), place
        assert violations(page, axe, "wcag2a") == [], place  # colours and sizes are those of English pages
    page.goto(f"{node.address}#/workers/fetch-price")
    expect(page.get_by_role("alert")).to_contain_text("没有 worker 'fetch-price'：您是指 'fetch-prices' 吗？")
    page.goto(f"{node.address}#/overview")
    problem = page.get_by_role("link", name=re.compile("worker sync-warehouse 已禁用.连续 3 次运行失败"))
    expect(problem).to_contain_text("然后启用")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.get_by_role("button", name="切换为 English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("performance.getEntriesByType('resource').filter(one => one.name.includes('zh-CN'))") == []
    context.close()
