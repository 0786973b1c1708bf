"""The scripts that the server runs, composed of the Lua files beside this one and known to the server by their digests.

Every script gets KEYS[1], the prefix of all keys of the namespace; ARGV[1], its arguments as MessagePack; ARGV[2], the
id of the calling store; and then byte strings, which the server's MessagePack does not support. The parts of a script
come first, in an order in which each follows those that it uses.
"""

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

from msgspec import Struct

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("keys", "jobs", "worker_state"),
    "claim": ("keys", "jobs", "burial", "gates", "admission"),
    "finish": ("keys", "jobs", "burial", "worker_state", "gates"),
    "beat": ("keys", "jobs"),
    "note": ("keys", "jobs"),
    "promote": ("keys", "jobs", "burial"),
    "reap": ("keys", "jobs", "burial", "gates"),
    "prune": ("keys", "jobs"),
    "leave": ("keys", "gates"),
    "hold": ("keys",),
    "drop": ("keys",),
    "put": ("keys", "gates"),
    "switch": ("keys", "worker_state", "gates"),
    "restore": ("keys", "jobs", "worker_state", "gates"),
    "take_over": ("keys", "jobs", "worker_state", "gates"),
    "survey": ("keys", "jobs", "worker_state", "gates", "admission"),
    "get": ("keys", "jobs"),
    "find": ("keys", "jobs", "paging"),
    "dead": ("keys", "paging"),
    "amend": ("keys", "jobs", "burial", "worker_state", "gates"),
    "rewrite": ("keys", "jobs"),
    "bury": ("keys", "jobs", "burial"),
    "stats": ("keys", "jobs"),
    "record": ("keys",),
}
READERS: Final = ("survey", "get", "find", "dead", "stats")
REFUSED_WHEN_FULL: Final = ("add", "record", "restore", "take_over")
"""Scripts that would fill a full server further. All others still run, so that queued jobs can be completed: also those
that write docs, which are few and small, and without which no pool scales and no breaker opens."""


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
    text = (first + "\n".join(_part(part) for part in (*PARTS[name], name))).encode()
    # The server identifies scripts by SHA-1; security does not depend on it.
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(f"{name}.lua").read_text(encoding="utf-8")
