"""How the command line prints instants, durations and text from the store. Times are UTC, with a Z."""

from typing import TYPE_CHECKING, Any, Final

from shiftwork.core.words import printable, status_text
from shiftwork.views.formats import clock_time

if TYPE_CHECKING:
    from shiftwork.handles.job import Job

_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400
_KIBI: Final = 1_024


def span(seconds: float) -> str:
    """Return a duration, rounded: `3 s`, `5 min`, `2 h`, `4 d`. A larger unit is used from two of it on."""
    whole = max(0, int(seconds))
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def bounds(low: int, high: int) -> str:
    """Return bounds as text: `5`, or `1–8`."""
    return str(low) if low == high else f"{low}–{high}"


def ago(at: float | None, now: float, *, never: str = "never") -> str:
    """Return an instant relative to now: `3 s ago`, `in 2 h`."""
    if at is None:
        return never
    distance = int(now - at)
    if distance == 0:
        return "now"
    return f"{span(distance)} ago" if distance > 0 else f"in {span(-distance)}"


def when(at: float, now: float) -> str:
    """Return an instant, exactly and relative to now."""
    return f"{clock_time(at)} ({ago(at, now)})"


def took(seconds: float) -> str:
    """Return how long something took, with a fraction where it matters."""
    if seconds < 1:
        return f"{max(0.0, seconds):.3f} s"
    return f"{seconds:.1f} s" if seconds < _MINUTE else span(seconds)


def one_line(text: str) -> str:
    """Return text from the store in one line."""
    return " ".join(printable(text).split())


def status_line(job: "Job[Any]") -> str:
    """Return the status of a job, and where it is, in one line."""
    return f"job {job.id} of {job.worker} is {status_text(job.status)}, in pool {job.pool}"


def size(n: float) -> str:
    """Return a number of bytes, rounded: `512 B`, `34 MiB`, `1.9 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if n < _KIBI:
            return f"{n:.0f} {unit}"
        n /= _KIBI
    return f"{n:.1f} GiB"


def percent(share: float | None) -> str | None:
    """Return a share of one core: `35 %`, or `0.4 %` if it is small."""
    if share is None:
        return None
    return f"{share:.0f} %" if share >= 10 or not share else f"{share:.1f} %"  # noqa: PLR2004 - two digits are enough
