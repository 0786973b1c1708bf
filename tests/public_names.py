"""Every public name, one a line: what docs/stability.md promises to keep.

    python -m tests.public_names    writes tests/public-names.txt

A line that goes needs a deprecation in the minor version before.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

import click

import shiftwork
from shiftwork import contrib, events, testing, types
from shiftwork.cli.entry import main as command_line
from shiftwork.serve.logging import about_job
from shiftwork.web.routing import ROUTES

FILE: Final = Path(__file__).parent / "public-names.txt"
METRICS: Final = Path(__file__).parent.parent / "docs" / "metrics.md"
"""Another test compares its table with the metrics."""
ROW: Final = re.compile(r"^\| `(shiftwork_\w+)` \| ([\w, ]*)\|", re.MULTILINE)

NOT_FOR_USERS: Final = {
    "Call.job",
    "Call.options",
    "Call.worker",
    "Job.record",
    "Job.secrets",
    "Worker.add_calls",
    "WorkerOrchestrator.control",
    "WorkerOrchestrator.served",
}
"""What other parts of shiftwork use of these classes, and no page describes."""


def public_names() -> list[str]:
    """Return every public name, sorted, each after its kind."""
    modules = [shiftwork, testing, types, *(importlib.import_module(one.name) for one in _contrib())]
    names = [f"python {name}" for module in modules for name in _of_module(module)]
    names += [f"python {about_job.__module__}.{about_job.__name__}"]
    names += [f"command {name}" for name in _commands(command_line, "shiftwork")]
    names += [f"route {route.method} {route.path}" for route in ROUTES]
    names += [f"metric {name} {labels}".strip() for name, labels in ROW.findall(METRICS.read_text())]
    names += [f"event {name}" for name in events.NAMES]
    names += [f"status {status.value}" for status in shiftwork.JobStatus]
    return sorted(names)


def _contrib() -> Iterator[Any]:
    return iter_modules(contrib.__path__, "shiftwork.contrib.")


def _of_module(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        whole = f"{module.__name__}.{name}"
        yield whole
        value = getattr(module, name) if whole != "shiftwork.contrib.django.app" else None
        if inspect.isclass(value) and value is not types.Store:  # a minor version may add to that protocol
            ours = [kind for kind in inspect.getmro(value) if kind.__module__.startswith("shiftwork")]
            members = {member for kind in ours for member in [*vars(kind), *vars(kind).get("__annotations__", ())]}
            for member in members:
                if not member.startswith("_") and f"{name}.{member}" not in NOT_FOR_USERS:
                    yield f"{whole}.{member}"


def _commands(command: click.Command, name: str) -> Iterator[str]:
    yield name
    for parameter in command.params:
        yield from (f"{name} ${variable}" for variable in _variables(parameter))
        yield from (f"{name} {option}" for option in parameter.opts if option.startswith("--"))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _commands(found, f"{name} {below}")


def _variables(parameter: click.Parameter) -> Iterator[str]:
    """Yield the environment variables that stand for an option."""
    variables = parameter.envvar or ()
    yield from [variables] if isinstance(variables, str) else variables


if __name__ == "__main__":
    FILE.write_text("".join(f"{name}\n" for name in public_names()))
