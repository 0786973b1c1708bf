"""What the system shows of processes and memory where there is no /proc: on macOS, for instance.

It is the only module here that uses psutil, which takes a megabyte of memory: import it only where /proc is missing.
"""

import psutil


def total_memory() -> int:
    """The bytes of memory of this machine."""
    return int(psutil.virtual_memory().total)


def cpu_and_memory(pid: int) -> tuple[float, int] | None:
    """The CPU seconds and the bytes of memory of a process, without its children; None if it is gone."""
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return times.user + times.system, int(process.memory_info().rss)
    except psutil.Error:
        return None
