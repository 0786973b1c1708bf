"""The scripts that the server runs, composed of the Lua files in `scripts` and `parts` and known by their digests.

Every script gets KEYS[1], the prefix of all keys of the namespace; ARGV[1], its arguments as MessagePack; ARGV[2], the
id of the calling store; and then byte strings, which the server's MessagePack does not support. The parts of a script
come first, in an order in which each follows those that it uses. `add_one` has no other parts than the first, and
arguments of its own.
"""

from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Final

from msgspec import Struct

_ALL: Final = ("keys", "states", "changes")
_JOBS: Final = (*_ALL, "jobs")
_GATES: Final = ("gates", "waking")
_ENDS: Final = (*_JOBS, "needs", "flows", "burial", "releasing")
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("keys", "states", "add_plain", "changes"),
    "add_one": (),
    "claim": ("keys", "states", "claim_plain", "changes", "gates"),
    "finish": ("keys", "states", "needs", "finish_plain", "changes", "worker_state", "gates"),
    "beat": _JOBS,
    "note": _JOBS,
    "keep_step": (*_JOBS, "signals"),
    "steps": _JOBS,
    "first_signal": ("keys", "signals"),
    "parts": ("keys",),
    "send": (*_ENDS, "signals"),
    "results": ("keys",),
    "list_flows": (*_ALL, "paging"),
    "members": (*_ALL, "paging"),
    "promote": (*_ENDS, "worker_state", *_GATES, "cancelling"),
    "reap": (*_ENDS, *_GATES),
    "prune": _JOBS,
    "leave": (*_ALL, *_GATES),
    "hold": ("keys",),
    "drop": ("keys",),
    "put": (*_ALL, *_GATES),
    "switch": (*_ALL, "worker_state", *_GATES),
    "restore": (*_JOBS, "needs", "flows", "worker_state", *_GATES),
    "take_over": (*_JOBS, "worker_state", *_GATES),
    "ahead": _ALL,
    "survey": (*_JOBS, "worker_state", *_GATES, "admission"),
    "get": _JOBS,
    "find": (*_JOBS, "paging"),
    "dead": (*_ALL, "paging"),
    "amend": (*_ENDS, "worker_state", *_GATES, "cancelling"),
    "rewrite": _JOBS,
    "bury": _ENDS,
    "stats": _JOBS,
    "record": ("keys",),
    "upgrade": _JOBS,
}
OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("jobs", "needs", "flows", "worker_state", "add_others"),
    "claim": ("jobs", "needs", "flows", "burial", "releasing", "waking", "admission", "claim_others"),
    "prune": ("needs", "flows", "prune_others"),
    "finish": ("jobs", "flows", "burial", "releasing", "waking", "signals", "finish_others"),
}
"""Parts that many calls do not need, and that are made only when they are: the server makes every function of a script
anew in each call, which costs more than running a small one. They are the function `load_others` of the script, at the
line `-- OTHERS`, and the last of them returns what the script needs."""
READERS: Final = (
    *("survey", "ahead", "get", "results", "find", "dead", "list_flows", "members", "stats"),
    *("steps", "first_signal", "parts"),
)
REFUSED_WHEN_FULL: Final = ("add", "add_one", "record", "restore", "take_over")
"""Scripts that would fill a full server further. All others still run, so that queued jobs can be completed: also those
that write docs, which are few and small, and without which no pool scales and no breaker opens."""

NO_SCRIPT: Final = "NOSCRIPT"
ELSEWHERE: Final = ("MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN")
"""Errors after which nothing was run, and another node may have the keys."""
NOT_RUN: Final = (NO_SCRIPT, *ELSEWHERE)


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
    text = (first + "\n".join(_text(part) for part in ("shelf", *PARTS[name])) + _main(name)).encode()
    # The server identifies scripts by SHA-1; security does not depend on it.
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


def _main(name: str) -> str:
    text = _text(name)
    if name in OTHERS:
        others = "\n".join(map(_text, OTHERS[name]))
        text = text.replace("-- OTHERS\n", f"local function load_others()\n{others}end\n", 1)
    return text


@cache
def _text(name: str) -> str:
    folder = "scripts" if name in PARTS else "parts"
    return (Path(__file__).parents[1] / folder / f"{name}.lua").read_text(encoding="utf-8")
