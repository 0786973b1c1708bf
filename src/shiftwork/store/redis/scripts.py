"""The scripts that the server runs: put together from the Lua files beside this one, each known by its digest.

Every script gets KEYS[1], the beginning of all keys of the namespace; ARGV[1], its arguments as MessagePack; ARGV[2],
who asks; and behind them whatever is bytes, which the server's MessagePack does not know. The parts it is made of come
first, in an order in which each knows what it uses.
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
    "find": ("keys", "jobs", "walking"),
    "dead": ("keys", "walking"),
    "amend": ("keys", "jobs", "burial", "worker_state", "gates"),
    "bury": ("keys", "jobs", "burial"),
    "stats": ("keys", "jobs"),
    "record": ("keys",),
}
READERS: Final = ("survey", "get", "find", "dead", "stats")
REFUSED_WHEN_FULL: Final = ("add", "record", "restore", "take_over")
"""What would fill a full server further. All else goes on, so that a full queue can be worked off: docs too, which are
few and small, and without which no pool gets its workers and no breaker opens."""


class Script(Struct, frozen=True):
    """One script: what it is called, its text, and the digest by which the server knows it."""

    name: str
    text: bytes
    digest: bytes


@cache
def script(name: str) -> Script:
    """The script of this name."""
    flags = "no-writes" if name in READERS else "" if name in REFUSED_WHEN_FULL else "allow-oom"
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    text = (first + "\n".join(_part(part) for part in (*PARTS[name], name))).encode()
    # The server is asked for scripts by their SHA-1; it guards nothing.
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(f"{name}.lua").read_text(encoding="utf-8")
