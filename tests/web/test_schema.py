"""The OpenAPI document and the API say the same: schemathesis finds nothing."""

import asyncio
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks

from shiftwork.web.access import Visitor
from shiftwork.web.openapi import API, document
from tests.web.conftest import Web, shop

EXAMPLES: Final = 8
"""For each operation. `make soak`'s patience is not needed: the routes share one reader."""


def _anybody(_: Any) -> Visitor:
    return Visitor(name="tester", role="operate", via="host")


def _web() -> Web:
    web = Web(shop(), identify=_anybody)

    async def fill() -> None:
        for number in range(3):
            await web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": number})
        await web.app.close()

    asyncio.run(fill())
    return web


WEB: Final = _web()
SCHEMA: Final = schemathesis.openapi.from_dict(document() | {"servers": [{"url": API}]})
SCHEMA.app = WEB.api
load_all_checks()
LEFT_OUT: Final[list[Any]] = [
    CHECKS.get_one("ignored_auth"),  # everybody is let in here; test_access walks every route without a token
]


# A stream has no end; test_live reads it.
@SCHEMA.exclude(path="/live").parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_route_does_what_its_document_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(excluded_checks=LEFT_OUT)
