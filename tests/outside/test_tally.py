"""How `make outside` reads what suites print, and what it prints of it."""

from pathlib import Path

from shiftwork.web.openapi import document
from tests.outside import route_suite
from tests.outside.tally import Tally, lines, read_junit
from tests.outside.trace_suite import read


def test_what_did_not_pass_is_named_and_a_table_ends_it() -> None:
    first = Tally(suite="cron", version="1.0", passed=1_234, skipped={"@Daily": "in\n any case"})
    second = Tally(suite="django", version="6", passed=1, failed={"test_a": "no"}, note="slow")
    assert list(lines([first, second])) == [
        "cron: skipped: @Daily: in any case",
        "django: failed: test_a: no",
        "django: slow",
        "",
        "suite   version  passed  failed  skipped",
        "cron    1.0       1,234       0        1",
        "django  6             1       1        0",
    ]


def test_a_report_of_pytest(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    cases = '<testcase name="a"/><testcase name="b"><failure message="no"/></testcase>'
    report.write_text(f'<testsuite>{cases}<testcase name="c"><skipped message="why"/></testcase></testsuite>')
    tally = read_junit(report, "s", "1")
    assert (tally.passed, tally.failed, tally.skipped) == (1, {"b": "no"}, {"c": "why"})


def test_a_report_of_unittest() -> None:
    tally = read(
        "test_a (x.A.test_a)\nwords ... ok\ntest_b (x.A.test_b)\nmore ... FAIL\ntest_c (x) ... skipped 'strict'\n"
    )
    assert (tally.passed, tally.failed, tally.skipped) == (1, {"test_b": "FAIL"}, {"test_c": "skipped 'strict'"})


def test_the_requests_are_for_routes_that_exist() -> None:
    routes = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
    for named in (
        route_suite.BODIES,
        route_suite.BEYOND,
        route_suite.JOBS_FOR,
        route_suite.FLOWS_FOR,
        route_suite.QUERIES,
    ):
        assert set(named) - routes == set()
