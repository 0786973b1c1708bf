"""The state of a node in a small file: for probes, which must be quick and must not need the store.

The node writes it every few seconds from its event loop, so an old file means that the node hangs. Its age is measured
by the machine's monotonic clock, which all processes of a machine share and which cannot be set.
"""

import os
import time
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import MsgspecError, Struct

from shiftwork.sentences import plain

Stage = Literal["starting", "running", "stopping"]

VITALS_FRESH_SECONDS: Final = 15.0
"""How old a file may be, by default. The node writes it seven times in this time."""


class Vitals(Struct, frozen=True, kw_only=True):
    """What a node reports about itself."""

    pid: int
    stage: Stage
    leased: bool
    """True if it renewed its lease in time; if not, it has stopped its jobs, and others may run them."""
    words: str
    at: float
    """When it was written, by the monotonic clock."""


def write_vitals(path: Path, vitals: Vitals) -> None:
    """Replace the file in one step: readers see the whole old one or the whole new one."""
    new = path.with_name(f"{path.name}.{vitals.pid}")
    new.unlink(missing_ok=True)  # a process with this number may have died before it replaced the file
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
        file.write(msgspec.json.encode(vitals, enc_hook=plain))
    new.replace(path)


def forget_vitals(path: Path) -> None:
    """Remove the file, if it is still this process's own."""
    found = _read(path)
    if isinstance(found, Vitals) and found.pid == os.getpid():
        path.unlink(missing_ok=True)


def examine(path: Path, *, ready: bool, within: float) -> tuple[bool, str]:
    """Return whether the node of this file is alive, or ready, and a sentence about it."""
    found = _read(path)
    if isinstance(found, str):
        return False, found
    age = time.monotonic() - found.at
    if not 0 <= age <= within:  # a file from before a reboot may be in the future
        return (
            False,
            f"the node (process {found.pid}) has not written {path} for {abs(age):.0f} s: it hangs or has ended",
        )
    if ready and found.stage != "running":
        return False, f"the node (process {found.pid}) is not ready: {found.words}"
    if ready and not found.leased:
        return False, f"the node (process {found.pid}) cannot renew its lease: is the store available? {found.words}"
    return True, f"the node (process {found.pid}) is {'ready' if ready else 'alive'}: {found.words}"


def _read(path: Path) -> Vitals | str:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Vitals)
    except FileNotFoundError:
        return (
            f"there is no {path}: no node was started with --probe-file {path}, or it has not started yet, or has ended"
        )
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    except (MsgspecError, UnicodeDecodeError):
        return f"{path} was not written by a node: does another program use this path?"
