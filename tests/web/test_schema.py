"""The OpenAPI document and the API say the same: schemathesis finds nothing.

Its own `parametrize` works out every request while tests are collected, and each test process collects all tests. Here
a test works out its own when it runs, and only the process that runs it imports schemathesis.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

from shiftwork.web.access import Visitor
from shiftwork.web.openapi import API, document
from tests.web.conftest import Web, shop

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema

QUICK: Final = settings(
    max_examples=2,  # for each route; they share one reader of requests, and `make outside` sends many more
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
STREAM: Final = "/live"
"""It has no end; test_live reads it."""
ROUTES: Final = [
    f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods if path != STREAM
]


def _anybody(_: Any) -> Visitor:
    return Visitor(name="tester", role="operate", via="host")


@pytest.fixture(scope="module")
def schema() -> "BaseSchema":
    """The document, and an app with a few jobs that should do what it says."""
    import schemathesis

    web = Web(shop(), identify=_anybody)

    async def fill() -> None:
        for number in range(3):
            await web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": number})
        await web.app.close()

    asyncio.run(fill())
    schema = schemathesis.openapi.from_dict(document() | {"servers": [{"url": API}]})
    schema.app = web.api
    return schema


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_does_what_its_document_says(schema: "BaseSchema", route: str) -> None:
    from schemathesis.checks import CHECKS, load_all_checks
    from schemathesis.core.result import Ok
    from schemathesis.pytest.lazy import get_all_tests

    load_all_checks()
    # Everybody is let in here; test_access walks every route without a token.
    left_out: list[Any] = [CHECKS.get_one("ignored_auth")]

    def check(case: "Case[Any]") -> None:
        case.call_and_validate(excluded_checks=left_out)

    method, path = route.split()
    found = schema.include(method=method, path=path)
    [made] = get_all_tests(schema=found, test_func=check, settings=QUICK, given_kwargs={})
    assert isinstance(made, Ok), made
    _, test = made.ok()
    test()
