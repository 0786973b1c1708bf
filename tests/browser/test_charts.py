"""Charts show the span that is chosen, whole labels, and what happened where the mouse is."""

import re
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.event import Event
from tests.browser.stage import WIDE, Watched, served
from tests.polling import wait_until
from tests.sim.recorded_past import past, put

NOTE_LABELS = """() => {
    const canvases = [...document.querySelectorAll("canvas")];
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    window.labels = {};
    CanvasRenderingContext2D.prototype.clearRect = function (...where) {
        window.labels[canvases.indexOf(this.canvas)] = [];
        return clearRect.apply(this, where);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
        const width = this.measureText(text).width;
        const left = this.getTransform().e + x - ({ right: width, center: width / 2 }[this.textAlign] ?? 0);
        const whole = left >= 0 && left + width <= this.canvas.width;
        window.labels[canvases.indexOf(this.canvas)]?.push({ text, whole });
        return fillText.call(this, text, x, ...more);
    };
}"""
"""From now on, `window.labels` has the labels that each chart drew since it was last cleared, and whether they fit."""
CLOCK = re.compile(r"(\d\d):(\d\d)")


def test_chart_shows_a_step_with_its_reason_where_the_mouse_is(chromium: Browser) -> None:
    context = chromium.new_context(viewport=WIDE, reduced_motion="reduce")
    app = WorkerOrchestrator("memory://")
    app.register_pool("images", max_workers=12)
    with served(app) as host:
        host.run(step_ten_minutes_ago(app))
        watched = Watched(context.new_page(), host.site)
        page = watched.open("pools/images")
        expect(page.get_by_role("list", name="Scaling steps")).to_contain_text("4 → 8 slots: 40 are queued")
        chart = page.get_by_role("img", name="Slots,")
        wait_until(lambda: says_somewhere(page, chart, "4 → 8 slots: 40 are queued"))
        page.evaluate(NOTE_LABELS)
        past = host.site.ask("history?seconds=21600&pool=images")
        past["pools"]["images"]["oldest_wait"] = [5_000 for _ in past["at"]]
        page.route("**/api/v1/history?*", lambda route: route.fulfill(json=past))
        page.get_by_role("button", name="6 h").click()
        wait_until(lambda: "1 h 30 min" in {one["text"] for labels in labels_of(page).values() for one in labels})
        for labels in labels_of(page).values():
            assert five_hours(labels)
            assert [one for one in labels if not one["whole"]] == []
        context.close()
    assert watched.wrong == []


def labels_of(page: Page) -> dict[str, list[dict[str, Any]]]:
    """What was written on each chart, by the chart's number."""
    found: dict[str, list[dict[str, Any]]] = page.evaluate("window.labels")
    return found


def five_hours(labels: list[dict[str, Any]]) -> bool:
    """Whether the labels of the axis of time are at least as far apart as five hours of the chosen six."""
    clocks = [CLOCK.fullmatch(one["text"]) for one in labels]
    minutes = [60 * int(found[1]) + int(found[2]) for found in clocks if found]
    return bool(minutes) and (minutes[-1] - minutes[0]) % 1_440 >= 300


async def step_ten_minutes_ago(app: WorkerOrchestrator) -> None:
    store, now = await app.control.store.open(), app.control.now()
    await put(store, past(now, 70, lambda _: 60, pool="images", worker="resize"))
    message = "pool images: 4 → 8 slots: 40 are queued"
    await store.record([Event(at=now - 600, name="pool.scaled", subject="images", message=message)])


def says_somewhere(page: Page, chart: Locator, words: str) -> bool:
    """Whether the chart says this while the mouse goes over it, from its newest part to its oldest."""
    box = chart.bounding_box()
    assert box
    figure = page.locator("figure").filter(has=chart)
    for x in range(16, int(box["width"]) - 52, 4):
        page.mouse.move(box["x"] + box["width"] - x, box["y"] + box["height"] / 2)
        if words in str(figure.text_content()):
            return True
    return False
