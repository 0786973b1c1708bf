"""A pool's page simulates yesterday with other bounds, by keyboard, in both themes."""

import re
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from shiftwork import WorkerOrchestrator
from tests.browser.stage import Watched, served
from tests.browser.test_pages import settled, violations
from tests.polling import wait_until
from tests.sim.recorded_past import past, put


@pytest.fixture(scope="module")
def axe(checkout: Path) -> str:
    return (checkout / "ui/node_modules/axe-core/axe.min.js").read_text()


async def remember(app: WorkerOrchestrator) -> None:
    hours = past(app.control.now(), 70, lambda _: 60, pool="images", worker="resize")
    await put(await app.control.store.open(), hours)


def shop() -> WorkerOrchestrator:
    app = WorkerOrchestrator("memory://")
    app.register_pool("images", max_workers=12)
    return app


def test_other_bounds_are_tried_on_yesterday(chromium: Browser, axe: str) -> None:
    context = chromium.new_context(viewport={"width": 1360, "height": 900}, reduced_motion="reduce")
    with served(shop()) as host:
        watched = Watched(context.new_page(), host.site)
        watched.expects(HTTPStatus.CONFLICT)
        page = watched.open("pools/images")
        panel = page.locator("section").filter(has_text="What would these bounds have done yesterday?")
        expect(panel.get_by_label("At most")).to_have_value("12")
        panel.get_by_role("button", name="Simulate").click()
        expect(panel).to_contain_text("no day of history yet")
        host.run(remember(host.app))
        panel.get_by_label("At most").fill("4")
        page.keyboard.press("Enter")
        expect(panel.get_by_role("status")).to_have_text(re.compile(r"With 1 to 4 slots, the 4,200 jobs .* instead of"))
        row = panel.get_by_role("row").filter(has_text="Most slots")
        expect(row.get_by_role("cell")).to_have_text(["10", re.compile("^[2-4]$")])
        expect(panel.get_by_role("img", name="Slots, latest")).to_have_accessible_name(re.compile("with 1 to 4 slots"))
        assert violations(page, axe) == []
        page.emulate_media(color_scheme="dark")
        settled(page)
        page.set_viewport_size({"width": 360, "height": 740})
        wait_until(lambda: page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
        panel.get_by_label("At least").fill("5")
        expect(panel.get_by_role("button", name="Simulate")).to_be_disabled()
        assert watched.wrong == []
        context.close()
