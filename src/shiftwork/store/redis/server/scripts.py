"""The scripts that the server runs, composed of the Lua files in `scripts` and `parts` and known by their digests.

A file in `scripts` has the scripts of one part of the protocol, each under a heading with its name. A line
`-- include: keys, jobs` stands for these files of `parts`, in an order in which each follows those that it uses. The
server makes every function of a script anew in each call, which costs more than running a small one: so what many
calls do not need is included in a function, `load_full`, which is called when it is needed.

Every script gets KEYS[1], the prefix of all keys of the namespace; ARGV[1], its arguments as MessagePack; ARGV[2], the
id of the calling store; and then byte strings, which the server's MessagePack does not support. `add_one` has arguments
of its own.
"""

import re
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Final

from msgspec import Struct

from shiftwork.core.stored_numbers import with_numbers
from shiftwork.store.redis.layout import NUMBERS

READERS: Final = (
    *("survey", "ahead", "get", "results", "find", "dead", "flows", "members", "stats"),
    *("steps", "signal", "parts"),
)
REFUSED_WHEN_FULL: Final = ("add", "add_one", "record", "restore", "take_over")
"""Scripts that would fill a full server further. All others still run, so that queued jobs can be completed: also those
that write docs, which are few and small, and without which no pool scales and no breaker opens."""

NO_SCRIPT: Final = "NOSCRIPT"
ELSEWHERE: Final = ("MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN")
"""Errors after which nothing was run, and another node may have the keys."""
NOT_RUN: Final = (NO_SCRIPT, *ELSEWHERE)

_HEADING: Final = re.compile(r"^-- ══ (\w+) ═+\n", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^-- include: (.+)\n", re.MULTILINE)


class Script(Struct, frozen=True):
    """One script: its name, its text, and the digest by which the server knows it."""

    name: str
    text: bytes
    digest: bytes


@cache
def script(name: str) -> Script:
    """Return the script of this name."""
    flags = "no-writes" if name in READERS else "" if name in REFUSED_WHEN_FULL else "allow-oom"
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    text = (first + with_numbers(_INCLUDE.sub(_included, source(name)), NUMBERS)).encode()
    # The server identifies scripts by SHA-1; security does not depend on it.
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


def names() -> list[str]:
    """Return the names of all scripts."""
    return list(_sources("scripts"))


def source(name: str) -> str:
    """Return the Lua of a script or a part, as its file has it."""
    return _sources("scripts").get(name) or _sources("parts")[name]


def _included(line: re.Match[str]) -> str:
    return "\n".join(source(part) for part in line[1].replace(",", " ").split())


@cache
def _sources(folder: str) -> dict[str, str]:
    """Return the Lua of all scripts, or all parts, by name."""
    files = sorted((Path(__file__).parents[1] / folder).glob("*.lua"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    if folder == "parts":
        return texts
    found: dict[str, str] = {}
    for text in texts.values():
        _, *sections = _HEADING.split(text)
        found.update(zip(sections[::2], sections[1::2], strict=True))
    return found
