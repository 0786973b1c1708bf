"""What this machine has to give: cores and memory, as far as its limits let us."""

import os
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct

_CGROUP: Final = Path("/sys/fs/cgroup")


class Machine(Struct, frozen=True):
    """Cores and bytes of memory."""

    cores: float
    memory: int


def measure(cgroup: Path = _CGROUP) -> Machine:
    """Look, once: what there is, and what a container may use of it."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    memory = int(psutil.virtual_memory().total)
    return Machine(min([cores, *_quota(cgroup)]), min([memory, *_limit(cgroup)]))


def _quota(cgroup: Path) -> list[float]:
    """The cores that a control group allows, version 2 or 1."""
    words = _read(cgroup / "cpu.max").split()
    if len(words) != 2:  # noqa: PLR2004 - the quota and the period
        words = [_read(cgroup / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    quota, period = (float(word) if word.isdecimal() else 0.0 for word in words)
    return [quota / period] if quota > 0 and period > 0 else []


def _limit(cgroup: Path) -> list[int]:
    found = (_read(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes"))
    return [int(word) for word in found if word.isdecimal()]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def resident(pid: int) -> int:
    """Bytes of memory that a process uses; 0 if it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
