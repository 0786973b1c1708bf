"""The Lua that the server runs, and the numbers that Lua and Python share.

A file in `scripts` has the entry points of one part of the protocol, each under a heading with its name. `parts` has
what they include: a line `-- include: keys, jobs` stands for these files of `parts`, in an order in which each follows
those that it uses. The server creates every function of a script anew in each call, which costs more than running a
small one: so what many calls do not need is included inside a function, `load_full`, which is called when it is needed.

Every script gets KEYS[1], the prefix of all keys of the namespace; ARGV[1], its arguments as MessagePack; ARGV[2], the
id of the calling store; and then byte strings, which the server's MessagePack does not support. `add_one_fast` has
arguments of its own.

Lua names statuses, flags and columns, and sentences for people: `LUA_NUMBERS` and `TEXTS` replace the names when a
script is loaded. `STATE`, `Flag` and `INFO` never change, because stores have written them. The dictionary of keys is
in `parts/keys.lua`, and `parts/job_state.lua` describes the state.
"""

import re
import struct
from collections.abc import Iterable
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from shiftwork.core.stored_numbers import with_numbers
from shiftwork.core.workers.state import FAILED_IN_A_ROW

STATE: Final = struct.Struct("<BHHIIddddd")
"""The state of a job, before the name of its instance."""


class Flag:
    """What the flags of a state say about a job."""

    PARKED: Final = 1
    CANCELLING: Final = 2
    KEYED: Final = 4
    UNIQUE: Final = 8
    HAS_ERROR: Final = 16
    HAS_RESULT: Final = 32
    HAS_PROGRESS: Final = 64
    EXPIRES: Final = 128
    """It may expire. If this is not set, the `expires_at` in its info no longer holds."""
    WAITS: Final = 256
    """It waits for a signal."""
    IN_FLOW: Final = 512
    TAGGED: Final = 1024
    DURABLE: Final = 2048
    """It has steps or signals."""
    NEEDS: Final = 4096
    """It needs other jobs, or once did."""
    NEEDED: Final = 8192
    """Another job waits for it, or once did."""


INFO: Final = (
    *("worker", "pool", "priority", "head_start", "created_at", "cause", "unique_key", "key", "key_limit", "trace"),
    *("options", "expires_at"),
)
"""What never changes about a job. Jobs that have neither options nor an expiry lack the last two."""
NEW: Final = (
    *("id", "worker", "pool", "run_at", "head_start", "unique_key", "key", "key_limit"),
    *("created_at", "info", "extra"),
)
"""The columns of `add`."""
OUTCOME: Final = (
    *("id", "fence", "worker", "pool", "status", "ended_at", "run_at", "attempt", "crashes", "verdict"),
    *("disable_after", "result", "error", "keep_until", "cause", "report", "waited", "marks", "wait", "moves"),
)
"""The columns of `finish`."""
EXTRA: Final = ("flow", "tags", "needs", "parent", "expires_at")
"""The optional fields of a new job; it has at least one."""

UNKNOWN_JOB, NO_ROOM = -1, -2
"""What scripts return instead of a status: for a job that does not exist, and for a signal that has no room."""
STEP_KEPT, STEP_STALE, STEP_FULL = 1, 0, -1
"""What `keep_step` returns: the step is kept, its run is stale, or its job has no room for it."""
MOST_DIGITS: Final = 15
"""The most digits of the version of a doc: Lua cannot represent every longer number."""

LUA_NUMBERS: Final[dict[str, int]] = {
    **{f"FLAG_{name}": flag for name, flag in vars(Flag).items() if name.isupper()},
    **{f"COLUMN_INFO_{name.upper()}": n for n, name in enumerate(INFO, 1)},
    **{f"COLUMN_NEW_{name.upper()}": n for n, name in enumerate(NEW, 1)},
    **{f"COLUMN_OUTCOME_{name.upper()}": n for n, name in enumerate(OUTCOME, 1)},
    **{f"COLUMN_EXTRA_{name.upper()}": n for n, name in enumerate(EXTRA, 1)},
    "STATUS_UNKNOWN": UNKNOWN_JOB,
    "STATUS_FULL": NO_ROOM,
    "STEP_KEPT": STEP_KEPT,
    "STEP_STALE": STEP_STALE,
    "STEP_FULL": STEP_FULL,
    "LIMIT_DIGITS": MOST_DIGITS,
}
"""The number for each name in Lua, which counts columns from one."""
TEXTS: Final[dict[str, str]] = {
    "TEXT_DAMAGED": "unreadable: its record in the store is damaged",
    "TEXT_FAILED_IN_A_ROW": FAILED_IN_A_ROW,
}
"""The sentence for people for each name in Lua, which fills in `%s`."""

OWN_ARGUMENTS: Final = 2
"""How many elements of ARGV come before the bytes that follow the arguments."""

READERS: Final = (
    *("survey", "ahead", "get", "results", "find", "dead", "flows", "members", "stats"),
    *("steps", "signal", "parts"),
)
REFUSED_WHEN_FULL: Final = ("add", "add_one_fast", "record", "restore", "take_over")
"""Scripts that would fill a full server further. All others still run, so that queued jobs can be completed: also those
that write docs, which are few and small, and without which no pool scales and no breaker opens."""

NO_SCRIPT: Final = "NOSCRIPT"
ELSEWHERE: Final = ("MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN")
"""Errors after which nothing was run, and another node may have the keys."""
NOT_RUN: Final = (NO_SCRIPT, *ELSEWHERE)

_HEADING: Final = re.compile(r"^-- ══ (\w+) ═+\n", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^-- include: (.+)\n", re.MULTILINE)
_TEXT: Final = re.compile(r"\bTEXT_[A-Z_]+\b")


class Script(Struct, frozen=True):
    """One script: its name, its text, and the digest by which the server knows it."""

    name: str
    text: bytes
    digest: bytes


@cache
def script(name: str) -> Script:
    flags = "no-writes" if name in READERS else "" if name in REFUSED_WHEN_FULL else "allow-oom"
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    named = _INCLUDE.sub(_included, source(name))
    text = (first + _TEXT.sub(_literal, with_numbers(named, LUA_NUMBERS))).encode()
    # The server identifies scripts by SHA-1; security does not depend on it.
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


def names() -> list[str]:
    """Return the names of all scripts."""
    return list(_sources("scripts"))


def source(name: str) -> str:
    """Return the Lua of a script or a part, as its file has it."""
    return _sources("scripts").get(name) or _sources("parts")[name]


def _literal(name: re.Match[str]) -> str:
    return "'" + TEXTS[name[0]].replace("\\", r"\\").replace("'", r"\'") + "'"


def _included(line: re.Match[str]) -> str:
    return "\n".join(source(part) for part in line[1].replace(",", " ").split())


@cache
def _sources(folder: str) -> dict[str, str]:
    """Return the Lua of all scripts, or all parts, by name."""
    files = sorted((Path(__file__).with_name(folder)).glob("*.lua"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    if folder == "parts":
        return texts
    found: dict[str, str] = {}
    for text in texts.values():
        _, *sections = _HEADING.split(text)
        found.update(zip(sections[::2], sections[1::2], strict=True))
    return found


def columns(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Turn rows into columns, which the server unpacks several times faster."""
    return [brief(column) for column in zip(*rows, strict=True)]


def brief(column: tuple[Any, ...]) -> Any:
    """Return the one value that a whole column has, or the column: most columns of a batch have one value."""
    return column[0] if column.count(column[0]) == len(column) else column
