"""The examples for new users do what they show, each in a few lines, and are all listed."""

import asyncio
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import sentry_sdk
import structlog

from examples import thumbnails
from examples.test_orders import (  # noqa: F401 - an example that is tests
    test_a_charge_is_tried_again_after_an_hour,
    test_the_clean_up_runs_every_night,
    test_the_function_alone,
)

SCREEN: Final = 41
PRINTED: Final = {
    "approval": "reserving the goods of order 7\nshipped from shelf 7, approved by ann\n",
    "book": r"published Moby-Dick, 100 pages\nFlowStatus\(state='completed', .*: 102}, stranded=0\)\n",
    "crawler": r"\['/', '/blog', '/docs', '/docs/api'\]\n",
    "customers": (
        "sync-acme: at 03:00 every day, Europe/Vienna\nsync-bolt: at 09:30 on Monday through Friday, Asia/Tokyo\n"
        "syncing bolt\nsyncing acme\nschedule@sync-bolt@2026-11-16T00:30:00Z completed\n"
        "schedule@sync-acme@2026-11-16T02:00:00Z completed\n"
        "sync-acme: at the start of every hour, UTC\n(syncing acme\n){24}24 runs on the second day\n"
    ),
    "daily_report": (
        r"orders since ever\norders since 2026-10-24 08:00:00\+02:00\n"
        r"daily_report@2026-10-24T06:00:00Z completed\ndaily_report@2026-10-25T07:00:00Z completed\n"
    ),
    "fastapi_shop": "a\\.png at 320 pixels\nada\n",
    "flask_shop": "{'file': 'chairs-7\\.pdf'}\n",
    "rate_limit": r"\['acme/0', 'bolt/0', .*'bolt/3'\]\n8 calls took \d+\.\d s\n",
    "resources": (
        "connecting\n7\nto the error tracker: KeyError\\('users'\\) in count, attempt 1\ndead\ndisconnecting\n"
    ),
    "sentry": r"to Sentry: ValueError: order 7 has no address, {'job': '\w+', 'worker': 'charge', .*}\n",
    "slack": r'{"text":"\*job\.dead\*: job order-7 of charge is dead: ValueError: order 7 has no address"}\n',
    "sqlalchemy_orders": "the chair is sold out: no order, no job\n\\['billed the lamp'\\]\n",
    "structured_logs": (
        "attempt=1 event='charging' job_id='order-7' order=7 pool='default' worker='charge'\nevent='done'\n"
    ),
    "sign_up": (
        r"(Welcome, jo@example\.com!\n)?\[{'job': 'welcome-jo@example\.com'}, {'job': 'welcome-jo@example\.com'}\]\n"
        r"(?(1)|Welcome, jo@example\.com!\n)"
    ),
    "sync_code": r"\('invoice-7\.pdf', 200\)\n{'status': 'completed', 'error': None}\n",
    "unreliable_api": (
        r"18 °C in Vienna after \['RetryAfter: the API responded with 429'\]\n"
        r"job \w+ of weather is dead: GiveUp: the API responded with 404: no such city\n"
    ),
}


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Undo what examples set for their whole process."""
    yield
    sentry_sdk.get_client().close(timeout=0)
    sentry_sdk.get_global_scope().set_client(None)
    structlog.reset_defaults()


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_shows_and_ends(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module(f"examples.{name}", run_name="__main__")
    assert re.fullmatch(PRINTED[name], capsys.readouterr().out)


def test_images_are_made_smaller_in_another_process(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(thumbnails.main())
    printed = capsys.readouterr().out
    assert printed.startswith("64 × 64 pixels became 8 × 8\nJobProgress(done=64.0, total=64.0, ")


def test_every_example_fits_on_a_screen_and_is_listed(checkout: Path) -> None:
    examples = sorted((checkout / "examples").glob("*.py"))
    assert {path.name: len(path.read_text().splitlines()) for path in examples if _lines(path) > SCREEN} == {}
    listed = re.findall(r"^\| \[\w+\]\((\w+\.py)\)", (checkout / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [path.name for path in examples]


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())
