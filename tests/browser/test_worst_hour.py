"""What a tired person needs: buttons in sight, problems that lead to their solution, breakers, waits for a person."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect

from tests.browser.stage import Site, Watched
from tests.browser.test_pages import axe, violations
from tests.polling import wait_until

__all__ = ["axe"]

NARROW: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
NOW = 1_700_000_000
SMTP: dict[str, Any] = {
    "name": "smtp",
    "workers": ["send_mail", "bind_book"],
    "state": "open",
    "since": "2026-11-18T19:00:00.000000Z",
    "failures": 7,
    "until": "2026-11-18T19:00:30.000000Z",
    "forced_by": None,
    "reason": None,
}
RUNS = {
    "minutes": [
        {"at": "2026-11-18T19:00:00Z", "completed": 60, "failed": 3, "p50": 0.4, "p95": 2.5, "longest": 3.0},
        {"at": "2026-11-18T19:03:00Z", "completed": 90, "failed": 0, "p50": 0.5, "p95": 2.0, "longest": 2.5},
    ],
    "p50": 0.5,
    "p95": 2.4,
    "longest": 3.0,
    "completed": 150,
    "failed": 3,
    "errors": [{"error": "SMTPError: 421 try later", "count": 3, "last": "2026-11-18T19:00:40Z"}],
}


HIDDEN_COLUMNS = """() => [...document.querySelectorAll("main table")].flatMap((table) => {
    const end = table.parentElement.getBoundingClientRect().right + 1;
    return [...table.querySelectorAll("th")].filter((one) => one.getBoundingClientRect().right > end);
}).map((one) => one.textContent)"""
"""The columns of tables that one would have to scroll to."""


def served(page: Page, path: str, answer: Any) -> None:
    page.route(f"**/api/v1/{path}", lambda route: route.fulfill(json=answer))


def in_sight(page: Page, name: str) -> bool:
    """Whether the button can be pressed without scrolling sideways."""
    box = page.get_by_role("main").get_by_role("button", name=name).first.bounding_box()
    size = page.viewport_size
    assert box
    assert size
    return box["x"] >= 0 and box["x"] + box["width"] <= size["width"]


@pytest.mark.parametrize("size", [NARROW, PHONE], ids=["1280 px", "phone"])
def test_pools_and_workers_show_their_buttons(watched: Watched, size: ViewportSize) -> None:
    watched.page.set_viewport_size(size)
    page = watched.open("pools")
    expect(page.get_by_role("button", name="Bounds").first).to_be_visible()
    assert in_sight(page, "Pause")
    assert in_sight(page, "Bounds")
    assert page.evaluate(HIDDEN_COLUMNS) == []
    page = watched.open("workers")
    expect(page.get_by_role("button", name="Trigger cleanup")).to_be_visible()
    assert in_sight(page, "Trigger cleanup")
    assert in_sight(page, "Disable cleanup")
    assert page.evaluate(HIDDEN_COLUMNS) == []
    page = watched.open("overview")
    expect(page.get_by_role("row").filter(has_text="mail")).to_be_visible()
    assert page.evaluate(HIDDEN_COLUMNS) == []


def test_pool_has_one_number_of_running_jobs_however_old_the_beats_are(watched: Watched, node: Site) -> None:
    known = node.ask("pools")["pools"]
    seen = [one | {"workers": 4, "busy": 0, "running": 5} for one in known]
    served(watched.page, "pools", {"pools": seen})
    served(watched.page, "overview", node.ask("overview") | {"pools": seen})
    row = watched.open("pools").get_by_role("row").filter(has_text="mail")
    expect(row).to_contain_text("4 of 4 running")
    expect(row).to_contain_text("✓ serving")
    row = watched.open("overview").get_by_role("row").filter(has_text="mail")
    expect(row).to_contain_text("4 of 4")


def test_plot_stays_where_it_is_while_the_pointer_goes_over_it(watched: Watched) -> None:
    page = watched.open("overview")
    chart = page.get_by_role("img", name="Ended attempts per second")
    expect(chart).to_be_visible()
    before = chart.bounding_box()
    assert before
    for part in (0.3, 0.6, 0.9):
        page.mouse.move(before["x"] + before["width"] * part, before["y"] + before["height"] / 2)
        page.wait_for_timeout(50)
        assert chart.bounding_box() == before


def test_problem_has_its_age_and_leads_to_where_it_is_solved(watched: Watched, node: Site) -> None:
    page = watched.page
    seen = node.ask("overview") | {
        "problems": [
            problem("critical", "node_lost", "node b is gone", "node:b", NOW - 10),
            problem("warning", "breaker_open", "breaker smtp is open", "breaker:smtp", NOW - 60),
            problem("warning", "dead_letters", "3 jobs are dead", "dead:images", None),
            problem("warning", "pool_starved", "jobs of mail wait", "worker:send_mail", None)
            | {"remedy": "raise rate_limit of send_mail; more slots do not help"},
        ]
    }
    served(page, "overview", seen)
    served(page, "breakers", {"breakers": [SMTP]})
    watched.open("overview")
    problems = page.locator("section").filter(has_text="What is wrong now").get_by_role("listitem")
    expect(problems).to_have_count(4)
    expect(problems.nth(3)).to_contain_text("raise rate_limit of send_mail; more slots do not help")
    expect(problems.first).to_contain_text("node b is gone")
    expect(problems.first.get_by_role("link")).to_have_attribute("href", "#/nodes?node=b")
    expect(problems.nth(1)).to_contain_text(re.compile(r"for [\d,]+ d"))
    problems.first.get_by_role("link").click()
    gone = page.get_by_role("main").get_by_text("Node b is not running.")
    expect(gone.get_by_role("link", name="Its events")).to_have_attribute("href", "#/events?subject=b")
    page.go_back()
    expect(problems.nth(2).get_by_role("link")).to_have_attribute("href", "#/dead?pool=images")
    problems.nth(1).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Breakers")
    expect(page.get_by_role("listitem").filter(has_text="smtp")).to_contain_text("7 failures")


WORST: Final = {
    "store_failing": "store",
    "store_emptied": "store",
    "no_leader": "leader",
    "node_lost": "node:gone",
    "worker_unknown": "worker:gone",
    "worker_failing": "worker:image_resize",
    "pool_stuck": "pool:images",
    "breaker_open": "breaker:smtp",
    "jobs_expired": "cancelled:images",
    "dead_letters": "dead:images",
}


def test_every_problem_leads_to_a_page_that_exists(watched: Watched, node: Site) -> None:
    page = watched.page
    problems = [problem("warning", code, f"this is {code}", target, None) for code, target in WORST.items()]
    served(page, "overview", node.ask("overview") | {"problems": problems})
    served(page, "breakers", {"breakers": [SMTP]})
    # The store still has jobs of such a worker, otherwise there is no such problem.
    page.route(re.compile("/jobs.*worker=gone"), lambda route: route.fulfill(json=node.ask("jobs?limit=1")))
    for code in WORST:
        watched.open("overview")
        page.get_by_role("listitem").filter(has_text=f"this is {code}").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Overview")
        expect(page.get_by_role("main").locator("[aria-busy=true]")).to_have_count(0)
        expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


def test_a_breaker_that_its_failures_opened_can_be_held_open_and_one_that_is_held_cannot(watched: Watched) -> None:
    held = SMTP | {"name": "bank", "forced_by": "ada", "until": None}
    served(watched.page, "breakers", {"breakers": [SMTP, held]})
    page = watched.open("breakers")
    expect(page.get_by_role("button", name="Open breaker smtp")).to_be_visible()
    expect(page.get_by_role("button", name="Close breaker bank")).to_be_visible()
    expect(page.get_by_role("button", name="Open breaker bank")).to_have_count(0)


def test_problem_links_to_the_runbook_where_the_documentation_is_served(watched: Watched, node: Site, axe: str) -> None:
    address = "https://docs.example/shiftwork/docs/how-to/runbook.html#problem-node_lost"
    lost = problem("critical", "node_lost", "node b is gone", "node:b", NOW - 10) | {"see": address}
    dead = problem("warning", "dead_letters", "3 jobs are dead", "dead:images", None)
    dead |= {"see": "docs/how-to/runbook.md#problem-dead_letters"}
    served(watched.page, "overview", node.ask("overview") | {"problems": [lost, dead]})
    for size in (NARROW, PHONE):
        watched.page.set_viewport_size(size)
        page = watched.open("overview")
        links = page.get_by_role("link", name="How to solve this")
        expect(links).to_have_count(1)
        expect(links.first).to_have_attribute("href", address)
        assert violations(page, axe) == []


def problem(severity: str, code: str, message: str, target: str, since: float | None) -> dict[str, Any]:
    _, _, subject = target.partition(":")
    return {
        "severity": severity,
        "code": code,
        "subject": subject,
        "message": message,
        "remedy": "do something",
        "since": since,
        "target": target,
    }


def test_nodes_are_told_apart_by_a_screen_reader(watched: Watched, node: Site, axe: str) -> None:
    seen = node.ask("nodes")
    (only,) = seen["nodes"]
    more = [one | {"id": f"b-{one['id']}", "node": "b"} for one in seen["instances"]]
    served(watched.page, "nodes", {"nodes": [only, only | {"name": "b"}], "instances": seen["instances"] + more})
    page = watched.open("nodes")
    expect(page.get_by_role("region", name="Instances of b", exact=True)).to_be_visible()
    assert violations(page, axe, "landmark-unique", "region") == []


def test_breaker_is_shown_where_it_matters_and_closed_by_hand_with_a_reason(watched: Watched, axe: str) -> None:
    page = watched.page
    served(page, "breakers", {"breakers": [SMTP]})
    sent: list[Any] = []

    def close(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "{}"))
        route.fulfill(json=SMTP | {"state": "closed"})

    page.route("**/api/v1/breakers/smtp/close", close)
    watched.open("overview")
    page.keyboard.press("/")
    page.keyboard.type("smt")
    expect(page.get_by_role("option").first).to_contain_text("breakersmtp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("breakers.breaker=smtp"))
    expect(page.get_by_role("listitem").filter(has_text="smtp")).to_contain_text("open")
    assert violations(page, axe) == []
    for place in ("workers/send_mail", "pools/mail"):
        panel = watched.open(place).locator("section").filter(has_text="Breakers")
        expect(panel).to_contain_text("smtp")
    page.get_by_role("button", name="Close breaker smtp").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the mail server is back")
    page.get_by_role("dialog").get_by_role("button", name="Close breaker").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert sent == [{"reason": "the mail server is back"}]


def test_worker_shows_run_times_throughput_and_errors_by_group(watched: Watched, axe: str) -> None:
    page = watched.page
    served(page, "workers/send_mail/runs", RUNS)
    watched.open("workers/send_mail")
    main = page.get_by_role("main")
    expect(main).to_contain_text("95 % less than 2.4 s")
    expect(page.get_by_role("img", name="Run time")).to_be_visible()
    errors = page.get_by_role("list", name="Errors").get_by_role("listitem")
    expect(errors).to_contain_text("SMTPError: 421 try later")
    assert violations(page, axe) == []
    errors.get_by_role("link").click()
    expect(page).to_have_url(re.compile("worker=send_mail"))
    page.unroute("**/api/v1/workers/send_mail/runs")
    served(page, "workers/send_mail/runs", RUNS | {"errors": []})  # their jobs have been retried
    page.go_back()
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("No failed jobs are left")


def test_latest_runs_are_those_that_ran_though_others_wait(watched: Watched, node: Site) -> None:
    done = node.enqueue("render_page", n=1)
    wait_until(lambda: node.status(done) == "completed")
    for number in range(60):
        node.act("jobs", worker="render_page", payload={"n": number}, delay_seconds=9_000, tags=["latest"])
    page = watched.open("workers/render_page")
    runs = page.get_by_role("list", name="Latest runs")
    expect(runs.get_by_role("link", name=re.compile("completed")).first).to_be_visible()
    expect(runs.get_by_role("link", name=re.compile("scheduled"))).to_have_count(0)
    node.act("jobs/bulk", action="cancel", filter={"tag": "latest"})


def test_jobs_that_wait_for_a_person_have_a_list_and_say_for_what(watched: Watched, node: Site) -> None:
    waiting = node.enqueue("bind_book", pages=[])
    wait_until(lambda: node.ask(f"jobs/{waiting}")["waits_for_signal"] == "approval")
    page = watched.open("jobs")
    page.get_by_role("button", name="Waiting for a person").click()
    row = page.get_by_role("row").filter(has=page.locator(f'a[title="{waiting}"]'))
    expect(row).to_contain_text("waits for approval")
    expect(page.get_by_role("button", name="Cancel all")).to_be_disabled()
    row.locator(f'a[title="{waiting}"]').click()
    expect(page.get_by_role("main")).to_contain_text(re.compile("waits for approval since"))
    found = node.ask("jobs?limit=1") | {"total": None, "next_after": "~1700000000.0~300"}
    served(page, "jobs?*", found)
    watched.open("jobs?payload=invoice")
    expect(page.get_by_text("The search stops after a moment; Older continues it.")).to_be_visible()
    node.act(f"jobs/{waiting}/cancel")


def test_queued_job_shows_its_position_and_when_it_is_likely_to_start(watched: Watched, node: Site) -> None:
    node.act("pools/reports/pause")
    queued = node.enqueue("long_report", pages=1)
    page = watched.page
    why = node.ask(f"jobs/{queued}/explanation")
    basis = "400 jobs ahead, 100 end in a minute"
    soon = datetime.now(UTC) + timedelta(minutes=2)
    limited = {"code": "rate_limit", "why": "rate limit", "by": "long_report", "since_at": None}
    waits = [*why["waits"], limited | {"until_at": soon.isoformat()}]
    served(
        page,
        f"jobs/{queued}/explanation",
        why | {"position": 401, "position_exact": True, "estimate": 240.0, "estimate_basis": basis, "waits": waits},
    )
    watched.open(f"jobs/{queued}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("Position 401 in the queue")
    expect(main).to_contain_text("starts in about 4 min")
    expect(main).to_contain_text(basis)
    expect(main.get_by_role("listitem").filter(has_text="rate limit")).to_contain_text(
        re.compile(r"the next job starts in \d")
    )
    unknown = {"position": 401, "estimate": None, "estimate_basis": "no estimate: no run of it has ended yet"}
    page.unroute("**/api/v1/jobs/*/explanation")
    served(page, f"jobs/{queued}/explanation", why | unknown)
    page.reload()
    expect(main).to_contain_text("no estimate: no run of it has ended yet")
    expect(main).not_to_contain_text("starts in about")
    node.act(f"jobs/{queued}/cancel")
    node.act("pools/reports/resume")


def test_bulk_dialog_asks_for_a_reason(watched: Watched, node: Site) -> None:
    node.act("jobs", worker="send_mail", payload={"to": "x@example.org"}, delay_seconds=9_000, tags=["why"])
    page = watched.open("jobs?tag=why")
    sent: list[Any] = []

    def bulk(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        if body["dry_run"]:
            return route.fallback()
        sent.append(body)
        return route.fulfill(json={"matched": 1, "changed": 1, "until": None})

    page.route("**/api/v1/jobs/bulk", bulk)
    page.get_by_role("button", name="Cancel all").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("sent twice")
    page.get_by_role("dialog").get_by_role("button", name="Cancel all 1 job").click()
    wait_until(lambda: sent)
    assert sent[0]["reason"] == "sent twice"


def test_schedules_of_workers_are_listed_beside_stored_ones(watched: Watched) -> None:
    page = watched.open("schedules")
    row = page.get_by_role("region", name="Schedules of workers").get_by_role("row").filter(has_text="nightly-report")
    expect(row).to_contain_text("at 03:00 every day, Europe/Vienna")


def test_events_of_one_cause_are_one_row_and_say_who(watched: Watched, node: Site) -> None:
    page = watched.page
    dead = {
        "seq": 40,
        "at": "2026-11-18T19:00:40.000000Z",
        "name": "job.dead",
        "subject": "0001",
        "message": "job 0001 is dead",
        "data": {},
        "by": "ann",
        "text": "37 jobs of image_resize died of ValueError",
        "count": 37,
        "first_at": "2026-11-18T19:00:00.000000Z",
    }
    page.route("**/api/v1/events?*", lambda route: route.fulfill(json={"events": [dead], "next_before": None}))
    watched.open("events?worker=image_resize")
    row = page.get_by_role("listitem").filter(has_text="job.dead")
    expect(row).to_contain_text("37 times since")
    expect(row).to_contain_text("37 jobs of image_resize died of ValueError")
    expect(row).to_contain_text("by ann")
    expect(page.get_by_label("Worker", exact=True)).to_have_value("image_resize")
