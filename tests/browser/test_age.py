"""A page knows how old it is: a store that is stopped, or hangs, is said with its cause, and old numbers look old."""

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from shiftwork import WorkerOrchestrator
from tests.browser.stage import served
from tests.browser.test_pages import axe, violations
from tests.store.servers.redis import DURABLE, Server, binary, required, wheel_binary

__all__ = ["axe"]


@pytest.fixture
def server() -> Iterator[Server]:
    program = required(binary("valkey-server", "redis-server") or wheel_binary(), "valkey-server")
    with Server(program, *DURABLE) as started:
        yield started


@pytest.fixture
def fresh(chromium: Browser) -> Iterator[Page]:
    """A page whose errors in the console are expected: the browser reports every 503."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def shop(server: Server) -> WorkerOrchestrator:
    app = WorkerOrchestrator(server.url)
    app.register_pool("images", max_workers=4)
    return app


def says_that_it_is_old(page: Page, cause: str) -> None:
    """Whether the page shows the outage and its cause, and looks like it, a few seconds after the first 10."""
    alert = page.get_by_role("alert").filter(has_text="No answer from the store")
    expect(alert).to_contain_text(re.compile(cause))
    expect(page.get_by_text(re.compile(r"This page shows the state of \d\d:\d\d:\d\d, .+ ago"))).to_be_visible()
    expect(page.get_by_role("main")).to_have_attribute("data-old", "")
    expect(page.get_by_text("Old", exact=True)).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_have_count(0)


def is_live_again(page: Page) -> None:
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("main")).not_to_have_attribute("data-old", "")


def test_stopped_store_is_shown_with_its_cause_on_every_page_until_it_is_back(
    fresh: Page, server: Server, axe: str
) -> None:
    with served(shop(server)) as host:
        host.run(host.app.pause_pool("images"))
        fresh.goto(f"{host.site.address}#/pools")
        expect(fresh.get_by_text("Live", exact=True)).to_be_visible()
        expect(fresh.get_by_role("link", name="images")).to_be_visible()
        server.kill()
        says_that_it_is_old(fresh, "refused|reach|lost|connect")
        expect(fresh.get_by_role("link", name="images")).to_be_visible()  # the last known state stays
        assert violations(fresh, axe) == []
        fresh.goto(f"{host.site.address}#/overview")  # a page that has no data yet says why
        says_that_it_is_old(fresh, "refused|reach|lost|connect")
        fresh.goto(f"{host.site.address}#/dead")
        expect(fresh.get_by_role("main").get_by_role("alert")).to_contain_text(re.compile("refused|reach|connect"))
        assert violations(fresh, axe) == []
        server.start()
        is_live_again(fresh)
        expect(fresh.get_by_text("No dead letters")).to_be_visible()


def test_hanging_store_is_shown_before_its_calls_fail(fresh: Page, server: Server, axe: str) -> None:
    fresh.emulate_media(color_scheme="dark")
    with served(shop(server)) as host:
        fresh.goto(f"{host.site.address}#/jobs")
        expect(fresh.get_by_text("No jobs yet")).to_be_visible()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            says_that_it_is_old(fresh, ".")
            assert violations(fresh, axe) == []
        finally:
            os.kill(server.pid, signal.SIGCONT)
        is_live_again(fresh)
