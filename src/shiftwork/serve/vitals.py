"""How a node is, in a small file beside it: for probes, which must be quick and must not need the store.

The node writes it every few seconds from its event loop, so a file that is old means a node that hangs. Its age is
told by the machine's monotonic clock, which all processes of a machine share and which nobody sets.
"""

import os
import time
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import MsgspecError, Struct

Stage = Literal["starting", "running", "stopping"]

FRESH_SECONDS: Final = 15.0
"""How old a file may be, unless the probe says otherwise. The node writes it seven times in as long."""


class Vitals(Struct, frozen=True, kw_only=True):
    """What a node says about itself."""

    pid: int
    stage: Stage
    leased: bool
    """Whether it has renewed its lease in time: if not, it has stopped its jobs and others may have them."""
    words: str
    at: float
    """When it said so, by the monotonic clock."""


def write_vitals(path: Path, vitals: Vitals) -> None:
    """Replace the file. Whoever reads sees the old one or the new one, whole."""
    new = path.with_name(f"{path.name}.{vitals.pid}")
    new.write_bytes(msgspec.json.encode(vitals))
    new.replace(path)


def forget_vitals(path: Path) -> None:
    """Remove the file, if it is still this process's own."""
    found = _read(path)
    if isinstance(found, Vitals) and found.pid == os.getpid():
        path.unlink(missing_ok=True)


def examine(path: Path, *, ready: bool, within: float) -> tuple[bool, str]:
    """Whether the node of this file lives, or is ready; and what is to be said about it."""
    found = _read(path)
    if isinstance(found, str):
        return False, found
    age = time.monotonic() - found.at
    if not 0 <= age <= within:  # one from before the machine was started may lie in the future
        return False, f"the node (process {found.pid}) has not written {path} for {abs(age):.0f} s: it hangs or is gone"
    if ready and found.stage != "running":
        return False, f"the node (process {found.pid}) is not ready: {found.words}"
    if ready and not found.leased:
        return False, f"the node (process {found.pid}) cannot renew its lease: is the store there? {found.words}"
    return True, f"the node (process {found.pid}) is {'ready' if ready else 'alive'}: {found.words}"


def _read(path: Path) -> Vitals | str:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Vitals)
    except FileNotFoundError:
        return f"there is no {path}: no node was started with --probe-file {path}, or it has not begun, or has ended"
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    except (MsgspecError, UnicodeDecodeError):
        return f"{path} is not what a node writes: does something else use this path?"
