"""What to write instead of a wrong argument of a task."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shiftwork.core.model.worker import WorkerConfig
from shiftwork.errors import meant_by, nearest, same_as
from shiftwork.handles.options import Options

JOB_OPTIONS: Final = tuple(name for name in Options.__struct_fields__ if name != "cause")
_CONTEXT_WORDS: Final = {"ctx", "context", "config", "worker", "job", "worker_config"}
_SHOWN: Final = 40


def unknown_argument(worker: str, name: str, known: Iterable[str], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with an argument that the task does not take."""
    names = [*known]
    options = [] if meant_by(name, names) else meant_by(name, JOB_OPTIONS)
    policy = None if meant_by(name, names) else same_as(name, WorkerConfig.__struct_fields__)
    if not options and policy is not None:
        return f"{worker} takes no argument {name!r}, which is an option of the task: @app.task({policy}=…)"
    if not options:
        return f"{worker} takes no argument {name!r}: {nearest(name, names)}"
    task = worker if worker.isidentifier() else "task"
    others = ", ".join(f"{other}=…" for other in arguments if other in names)
    remedy = f"{task}.with_options({options[0]}={_shown(arguments[name])}).enqueue({others})"
    return f"{worker} takes no argument {name!r}, which is an option of the job: {remedy}"


def unexpected_payload(worker: str, parameter: str) -> str:
    """Return what is wrong with arguments for a task whose only parameter gets the context."""
    return (
        f"{worker} takes no arguments: its only parameter {parameter!r} has no annotation, so it gets the Context; "
        f"to make it payload, annotate it, for example {parameter}: str"
    )


def missing_argument(worker: str, name: str, hints: Mapping[str, Any]) -> str:
    """Return what is wrong where an argument is missing."""
    remedy = f"; if it is the context, annotate it: {name}: Context"
    return f"{worker} needs the argument {name!r}" + (remedy if name in _CONTEXT_WORDS and name not in hints else "")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float | str) else "…"
    return text if len(text) <= _SHOWN else "…"
