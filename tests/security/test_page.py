"""The page about security names the limits that the code has."""

from pathlib import Path

from shiftwork.control.access.tokens import MOST_SESSIONS, SESSION_SECONDS
from shiftwork.web import routing, visitor_limits
from shiftwork.web.client_connections import ConnectionLimits
from shiftwork.web.routes import tokens
from shiftwork.web.visitor_limits import Rate


def test_the_limits_are_as_documented(checkout: Path) -> None:
    page = (checkout / "docs" / "security.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in page.splitlines() if line.startswith("| ")]
    values = {row[0]: row[1] for row in rows}
    connection, rate = ConnectionLimits(), Rate()
    assert values["connections"].startswith(f"{connection.most},")
    assert values["connections from one address"] == f"{connection.each}"
    assert values["time to send a request, headers and body"] == f"{connection.read_seconds:g} s"
    assert values["time to read the next 64 KiB of an answer"] == f"{connection.write_seconds:g} s"
    sizes = f"{routing.MOST_BODY_BYTES >> 20} MiB; without authentication {tokens.MOST_LOGIN_BYTES >> 10} KiB"
    assert values["body of a request"] == sizes
    waiting = visitor_limits.MOST_WAITING_REQUESTS - visitor_limits.MOST_REQUESTS
    requests = (
        f"{visitor_limits.MOST_REQUESTS}, and {waiting} that wait up to {visitor_limits.REQUEST_PATIENCE_SECONDS:g} s"
    )
    assert values["requests of one visitor at a time"] == requests
    streams = f"{visitor_limits.MOST_STREAMS_EACH}, and {visitor_limits.MOST_STREAMS}"
    assert values["streams of one visitor, and in all"] == streams
    assert values["changes of one visitor"] == f"{rate.per_second:g} a second, {rate.burst:g} at once"
    assert f"at most {MOST_SESSIONS} sessions" in page
    assert SESSION_SECONDS == 7 * 86_400
    assert "seven days at most" in page.replace("\n", " ")
