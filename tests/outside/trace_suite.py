"""W3C's own harness for Trace Context, against the service of ours. Its code is not ours to keep: see docs/proof.md."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.outside.tally import Tally
from tests.ports import free_port

SUITE: Final = "W3C Trace Context"
HOW: Final = "git clone https://github.com/w3c/trace-context build/outside/trace-context, and run it again"
LEVEL: Final = "2"
STRICT: Final = "2"
THEIRS: Final = (
    "OpenTelemetry's Python API drops tracestate with keys that only Level 2 allows, such as `a@` and `a@b@c`"
)
BY_OTHERS: Final = {
    "test_tracestate_key_illegal_vendor_format": THEIRS,
    "test_tracestate_key_length_limit": THEIRS,
}
"""Where what we call is at fault: we carry such keys, as tests/outside/test_trace_context.py shows."""

_ENDED: Final = re.compile(r"^(test_\w+) .*?\.\.\. (ok|FAIL|ERROR|skipped[^\n]*)$", re.MULTILINE | re.DOTALL)


def harness(python: Path, checkout: Path) -> Tally:
    """Run the harness in this checkout of w3c/trace-context; without one, say where to get it."""
    test = checkout / "test" / "test.py"
    if not test.exists():
        return Tally(suite=SUITE, version="-", skipped={"all": HOW})
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.outside.trace_service"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert service.stdout is not None
        address = service.stdout.readline().strip()
        settings = {"HARNESS_PORT": str(free_port()), "SPEC_LEVEL": LEVEL, "STRICT_LEVEL": STRICT}
        ended = subprocess.run(
            [python, test.name, address],
            cwd=test.parent,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        service.terminate()
        service.wait()
    return read(ended.stderr)


def read(report: str) -> Tally:
    """Return the tally of what unittest has reported."""
    tally = Tally(suite=SUITE, version=f"level {LEVEL}, strictness {STRICT}")
    for name, end in _ENDED.findall(report):
        if end == "ok":
            tally.passed += 1
        elif end.startswith("skipped"):
            tally.skipped[name] = end
        elif name in BY_OTHERS:
            tally.skipped[name] = BY_OTHERS[name]
        else:
            tally.failed[name] = end
    return tally
