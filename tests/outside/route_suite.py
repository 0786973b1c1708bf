"""schemathesis against a shop with data behind every route: how many operations reach a 2xx, and do what they document.

`python -m tests.outside.route_suite [EXAMPLES]` prints the tally as JSON. tests/web/test_schema.py is the short form.
"""

import copy
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec
from hypothesis import HealthCheck, settings

from shiftwork.web.openapi import API, document
from tests.outside.open_shop import BREAKER, PERIODIC, Known, OpenShop
from tests.outside.tally import Tally

if TYPE_CHECKING:
    from schemathesis import Case

OK: Final = range(200, 300)
REJECTIONS: Final = ["400", "401", "403", "404", "405", "409", "413", "415", "429", "5xx"]
"""What counts as a rejection of what does not fit the schema; by default schemathesis leaves out 413."""
EXAMPLES: Final = 100
"""For each operation."""
STREAM: Final = "/live"
"""It has no end; tests/web/test_live.py reads it."""
JOBS_FOR: Final = {
    "POST /jobs/{id}/cancel": ("queued", "scheduled", "processing"),
    "POST /jobs/{id}/discard": ("completed", "dead", "cancelled"),
    "POST /jobs/{id}/retry": ("dead", "cancelled", "failed", "scheduled"),
    "POST /jobs/{id}/signals": ("waiting for a signal",),
    "POST /jobs/{id}/stack": ("processing",),
}
FLOWS_FOR: Final = {"POST /flows/{id}/cancel": ("unfinished",), "POST /flows/{id}/retry": ("broken",)}
BODIES: Final[dict[str, Any]] = {
    "POST /jobs": {"worker": "resize", "payload": {"path": "a.png", "width": 20}, "tags": ["big"]},
    "POST /jobs/bulk": {"action": "retry", "filter": {"worker": "fail"}},
    "POST /jobs/{id}/signals": {"name": "go", "value": 7},
    "POST /pools/{pool}/bounds": {"min": 1, "max": 3},
    "POST /schedules/{schedule}": {"worker": "resize", "payload": {"path": "a.png"}, "cron": "0 4 * * 1-5"},
    "POST /tokens": {"name": "ci", "role": "read", "valid_seconds": 60},
    "POST /workers/{worker}/reschedule": {"every": "15m"},
    "POST /workers/{worker}/trigger": {"payload": {}},
}
"""A request that should succeed. For other operations an empty one does."""
BEYOND: Final = {
    "GET /pools/{pool}/what-if": "the two bounds are compared",
    "GET /schedule-preview": "the expression and the time zone are checked",
    "POST /jobs": "the arguments are checked against the worker",
    "POST /jobs/{id}/retry": "the arguments are checked against the worker",
    "POST /pools/{pool}/bounds": "the two bounds are compared",
    "POST /schedules/{schedule}": "the arguments are checked against the worker, and the times",
    "POST /tokens": "some names are reserved",
    "POST /workers/{worker}/reschedule": "the times are checked",
    "POST /workers/{worker}/trigger": "the arguments are checked against the worker",
}
"""Operations that may reject what fits the schema, because no schema can say why."""
QUERIES: Final[dict[str, dict[str, Any]]] = {"GET /schedule-preview": {"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}}


def main(examples: int) -> None:
    """Print the tally."""
    with tempfile.TemporaryDirectory() as folder, OpenShop(f"sqlite:///{folder}/jobs.db") as shop:
        tally = run(shop, examples)
    print(msgspec.json.encode(tally).decode())


def run(shop: OpenShop, examples: int) -> Tally:
    """Try every operation, each with new data."""
    tally = Tally(suite="schemathesis, operations", version=version("schemathesis"))
    sent, accepted = 0, 0
    for path, methods in document()["paths"].items():
        for method in methods:
            route = f"{method.upper()} {path}"
            if path == STREAM:
                tally.skipped[route] = "it has no end"
                continue
            seen, wrong = tried(shop, route, examples)
            reached = sum(count for status, count in seen.items() if status in OK)
            sent, accepted = sent + seen.total(), accepted + reached
            if wrong is None and reached:
                tally.passed += 1
            else:
                tally.failed[route] = wrong or f"no 2xx: {dict(seen)}"
            print(f"{route}: {reached} of {seen.total()} are 2xx", file=sys.stderr)
    tally.note = f"{accepted:,} of {sent:,} requests got a 2xx; the others were meant to be wrong, or came too late"
    return tally


def tried(shop: OpenShop, route: str, examples: int) -> tuple[Counter[int], str | None]:
    """Send requests to one operation; return the statuses of the responses, and what is wrong with one."""
    import schemathesis
    from schemathesis.checks import CHECKS, load_all_checks
    from schemathesis.config import SchemathesisConfig
    from schemathesis.core.result import Ok
    from schemathesis.pytest.lazy import get_all_tests

    load_all_checks()
    # Everybody is let in here; tests/web/test_access.py walks every route without a token.
    left_out: list[Any] = [CHECKS.get_one("ignored_auth")]
    if route in BEYOND:
        left_out.append(CHECKS.get_one("positive_data_acceptance"))
    seen: Counter[int] = Counter()

    def check(case: "Case[Any]") -> None:
        response = case.call()
        seen[response.status_code] += 1
        case.validate_response(response, excluded_checks=left_out)

    method, path = route.split()
    config = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REJECTIONS}}})
    schema = schemathesis.openapi.from_dict(described(route, shop.fill()), config=config)
    schema.config.update(base_url=shop.url + API)
    found = schema.include(method=method, path=path)
    thorough = settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    [made] = get_all_tests(schema=found, test_func=check, settings=thorough, given_kwargs={})
    assert isinstance(made, Ok), made
    _, test = made.ok()
    try:
        test()
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is not what is documented
        return seen, f"{type(error).__name__}: {error}"
    return seen, None


def described(route: str, known: Known) -> dict[str, Any]:
    """Return the document with what there is: in paths nothing else can be named, and a good request is an example."""
    told = copy.deepcopy(document())
    method, path = route.split()
    operation = told["paths"][path][method.lower()]
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path" and route != "POST /schedules/{schedule}":  # that one makes new ones
            parameter["schema"] = {"type": "string", "enum": named(route, parameter["name"], known)}
        elif (value := QUERIES.get(route, {}).get(parameter["name"])) is not None:
            parameter["example"] = value
    if "requestBody" in operation:
        body = {"token": known.token} if path == "/login" else BODIES.get(route, {})
        operation["requestBody"]["content"]["application/json"]["example"] = body
    return told


def named(route: str, name: str, known: Known) -> list[str]:
    """Return what a variable of a path can be."""
    if name == "id" and "/flows" in route:
        return [id for kind in FLOWS_FOR.get(route, known.flows) for id in known.flows[kind]]
    if name == "id":
        return [id for kind in JOBS_FOR.get(route, known.jobs) for id in known.jobs[kind]]
    if route == "POST /workers/{worker}/forget":
        return known.gone
    return {
        "breaker": [BREAKER],
        "node": [known.node],
        "pool": ["images"],
        "schedule": known.schedules,
        "token": known.tokens,
        "worker": [PERIODIC, "fetch"],
    }[name]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else EXAMPLES)
