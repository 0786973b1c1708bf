"""W3C's Trace Context as it comes in, checked: what of the headers traceparent and tracestate a job may carry.

A traceparent that is wrong counts as none, and a tracestate never matters without one.
"""

import re
from typing import Final

LONGEST_STATE: Final = 512
"""How much of a tracestate is passed on, as the specification asks for at the least."""
LARGE_STATE_ENTRY: Final = 128
"""Entries that are larger are the first to go."""
MOST_STATE_ENTRIES: Final = 32

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_ENTRY: Final = re.compile(
    r"(?P<key>[a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_SPACE: Final = " \t"


def carried_from(traceparent: str | None, tracestate: str | None) -> str | None:
    """Return what a job carries of these headers: both, separated by a space; None if they name no trace."""
    found = _TRACEPARENT.fullmatch((traceparent or "").strip(_SPACE))
    if found is None or not _is_valid(found):
        return None
    parent = f"00-{found['trace']}-{found['span']}-{found['flags']}"
    state = ",".join(_shortened(_entries(tracestate or "")))
    return f"{parent} {state}" if state else parent


def _is_valid(found: re.Match[str]) -> bool:
    """Check what the pattern does not: version 00 ends with its flags, later versions may have more, ff is invalid."""
    known = found["more"] is None if found["version"] == "00" else found["version"] != "ff"
    return known and bool(found["trace"].strip("0")) and bool(found["span"].strip("0"))


def _entries(tracestate: str) -> list[str]:
    """Return the entries of a tracestate, the first of each key; none if one is wrong, or there are too many."""
    entries = [entry for part in tracestate.split(",") if (entry := part.strip(_SPACE))]
    by_key: dict[str, str] = {}
    for entry in entries:
        read = _ENTRY.fullmatch(entry)
        if read is None or len(entries) > MOST_STATE_ENTRIES:
            return []
        by_key.setdefault(read["key"], entry)
    return list(by_key.values())


def _shortened(entries: list[str]) -> list[str]:
    """Leave out entries until the rest is short enough: large ones first, and then the last."""
    kept = entries
    while len(",".join(kept)) > LONGEST_STATE:
        large = [entry for entry in kept if len(entry) > LARGE_STATE_ENTRY]
        leaving = large[-1] if large else kept[-1]
        kept = [entry for entry in kept if entry != leaving]
    return kept
