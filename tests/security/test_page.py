"""The page about security names the limits that the code has."""

from pathlib import Path

from shiftwork.control.access.tokens import MOST_SESSIONS, SESSION_SECONDS
from shiftwork.web import limits, routing
from shiftwork.web.connections import ConnectionLimits
from shiftwork.web.limits import Rate
from shiftwork.web.routes import session


def test_the_limits_are_as_documented(checkout: Path) -> None:
    page = (checkout / "docs" / "security.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in page.splitlines() if line.startswith("| ")]
    values = {row[0]: row[1] for row in rows}
    connection, rate = ConnectionLimits(), Rate()
    assert values["connections"].startswith(f"{connection.most},")
    assert values["connections from one address"] == f"{connection.each}"
    assert values["time to send a request, headers and body"] == f"{connection.read_seconds:g} s"
    assert values["time to read the next 64 KiB of an answer"] == f"{connection.write_seconds:g} s"
    sizes = f"{routing.MOST_BYTES >> 20} MiB; without authentication {session.MOST_BYTES >> 10} KiB"
    assert values["body of a request"] == sizes
    waiting = limits.MOST_WAITING - limits.MOST_REQUESTS
    requests = f"{limits.MOST_REQUESTS}, and {waiting} that wait up to {limits.PATIENCE_SECONDS:g} s"
    assert values["requests of one visitor at a time"] == requests
    streams = f"{limits.MOST_STREAMS_EACH}, and {limits.MOST_STREAMS}"
    assert values["streams of one visitor, and in all"] == streams
    assert values["changes of one visitor"] == f"{rate.per_second:g} a second, {rate.burst:g} at once"
    assert f"at most {MOST_SESSIONS} sessions" in page
    assert SESSION_SECONDS == 7 * 86_400
    assert "seven days at most" in page.replace("\n", " ")
