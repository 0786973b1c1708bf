"""What this machine has: cores and memory, as far as we may use them."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

_CGROUP: Final = Path("/sys/fs/cgroup")
_PROC: Final = Path("/proc")
_MINE: Final = Path("/proc/self/cgroup")


class Usage(Struct, frozen=True):
    """What a process uses: seconds of a core since it began, and bytes of memory now."""

    cpu_seconds: float
    memory: int


class Machine(Struct, frozen=True):
    """Cores and bytes of memory."""

    cores: float
    memory: int


def measure(cgroup: Path = _CGROUP, mine: Path = _MINE) -> Machine:
    """Return the cores and the memory of this machine, within the limits of a container or a service manager."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    memory = _total_memory()
    groups = [line.split(":", 2) for line in _read(mine).splitlines() if line.count(":") > 1]
    paths = {name: path for _, names, path in groups for name in names.split(",")}
    quotas = [quota for folder in _chain(cgroup, paths.get("")) for quota in _quota(_read(folder / "cpu.max"))]
    for folder in _chain(cgroup / "cpu", paths.get("cpu")):
        quotas += _quota(" ".join(_read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")))
    limits = [_read(folder / "memory.max") for folder in _chain(cgroup, paths.get(""))]
    limits += [_read(folder / "memory.limit_in_bytes") for folder in _chain(cgroup / "memory", paths.get("memory"))]
    return Machine(min([cores, *quotas]), min([memory, *(int(word) for word in limits if word.isdecimal())]))


def _chain(top: Path, path: str | None) -> list[Path]:
    """Return the control groups whose limits apply to us: our own, and all those around it.

    In a container ours is the top one. Under systemd it is further down: `/system.slice/shiftwork.service`.
    """
    group = top / (path or "").strip("/")
    return [folder for folder in (group, *group.parents) if folder.is_relative_to(top)]


def _quota(words: str) -> list[float]:
    """Return the cores in `quota period`; none if there is no quota."""
    numbers = [float(word) for word in words.split() if word.isdecimal()]
    return [numbers[0] / numbers[1]] if len(numbers) == 2 and all(numbers) else []  # noqa: PLR2004 - quota and period


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def starved(cgroup: Path = _CGROUP, mine: Path = _MINE, stat: Path = Path("/proc/vmstat")) -> int:
    """Return how many processes the system has killed so far for want of memory; 0 where it does not count them.

    Where our control group counts its own, those of strangers on this machine do not count.
    """
    groups = [line.split(":", 2)[2] for line in _read(mine).splitlines() if line.startswith("0::")]
    own = _read(cgroup / groups[0].strip("/") / "memory.events") if groups else ""
    counts = [int(line.split()[1]) for line in (own or _read(stat)).splitlines() if line.startswith("oom_kill ")]
    return counts[0] if counts else 0


def usage(pid: int, proc: Path = _PROC) -> Usage | None:
    """Return what a process uses, without its children; None if it is gone."""
    try:
        words = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()  # its name may hold anything
        ticks = int(words[11]) + int(words[12])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(words[21]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, IndexError, ValueError):
        return None if (proc / "self").exists() else _usage_without_proc(pid)


def _usage_without_proc(pid: int) -> Usage | None:
    import psutil  # noqa: PLC0415 - it takes a megabyte of memory, and Linux does without

    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return Usage(times.user + times.system, int(process.memory_info().rss))
    except psutil.Error:
        return None


def _total_memory() -> int:
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import psutil  # noqa: PLC0415 - as above

    return int(psutil.virtual_memory().total)
