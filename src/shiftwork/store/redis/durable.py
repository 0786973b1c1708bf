"""Steps and signals of durable functions, from the replies of the scripts."""

from collections.abc import Sequence
from typing import Any

from shiftwork.core.model.job_parts import SeenParts, StepPage
from shiftwork.core.values.beginnings import read_step, seen_signal, seen_step


def step_page(bodies: Sequence[bytes], more: int) -> StepPage:
    return StepPage([read_step(body) for body in bodies], more=bool(more))


def seen_parts(steps: Sequence[Any], signals: Sequence[Any], *counts: int) -> SeenParts:
    """Return what people see of a job, from a reply of `parts`."""
    step_count, step_bytes, signal_count, signal_bytes = counts
    return SeenParts(
        steps=[seen_step(head, tail) for head, tail in zip(steps[::2], steps[1::2], strict=True)],
        signals=[seen_signal(head, tail) for head, tail in zip(signals[::2], signals[1::2], strict=True)],
        step_count=step_count,
        step_bytes=step_bytes,
        signal_count=signal_count,
        signal_bytes=signal_bytes,
    )
