"""Strangers are asked for a token, readers cannot change anything, and any path will do."""

from playwright.sync_api import Browser, Page, expect

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.doc_types import Role
from tests.browser.stage import Host, Watched, served


async def noop() -> None:
    """Nothing."""


def small() -> WorkerOrchestrator:
    app = WorkerOrchestrator("memory://")
    app.register_worker("sweep", noop)
    return app


async def token(app: WorkerOrchestrator, role: Role) -> str:
    _, shown = await app.control.tokens.create(f"to {role}", role)
    return shown


async def revoke(app: WorkerOrchestrator, name: str) -> None:
    await app.control.tokens.revoke(name)


def signed_in(page: Page, host: Host, role: Role) -> None:
    page.goto(f"{host.site.address}#/workers/sweep")
    page.get_by_label("Token").fill("shiftwork_none")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("this token is not valid")).to_be_visible()
    page.get_by_label("Token").fill(host.run(token(host.app, role)))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("sweep")


def test_reader_signs_in_looks_and_signs_out(chromium: Browser) -> None:
    context = chromium.new_context()
    page = context.new_page()
    with served(small(), trust_loopback=False) as host:
        signed_in(page, host, "read")
        expect(page.get_by_role("button", name="Disable")).to_be_disabled()
        expect(page.get_by_role("button", name="Trigger")).to_be_disabled()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        context.close()


def test_operator_acts_by_cookie_until_the_token_is_revoked(chromium: Browser) -> None:
    context = chromium.new_context()
    page = context.new_page()
    with served(small(), trust_loopback=False) as host:
        signed_in(page, host, "operate")
        page.get_by_role("button", name="Disable").click()
        page.get_by_role("dialog").get_by_role("button", name="Disable").click()
        expect(page.get_by_role("button", name="Enable")).to_be_visible()
        host.run(revoke(host.app, "to operate"))
        expect(page.get_by_label("Token")).to_be_visible()
        context.close()


def test_any_path_will_do(chromium: Browser) -> None:
    context = chromium.new_context()
    with served(small(), root_path="/ops/shiftwork") as host:
        watched = Watched(context.new_page(), host.site)
        page = watched.open("workers/sweep")
        expect(page.get_by_role("heading", level=1)).to_contain_text("sweep")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        context.close()
    assert watched.wrong == []
