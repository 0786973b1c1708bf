"""Loading the orchestrator that `module:name` names, with a clear message if that fails.

An error inside the user's module is shown with the user's frames, without ours and the importer's.
"""

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, Final

import shiftwork
from shiftwork.app import WorkerOrchestrator
from shiftwork.errors import AppImportError, LifecycleError, ShiftworkError, nearest

_OURS: Final = str(Path(shiftwork.__file__).parent) + os.sep
_SHOWN_FRAMES: Final = 6
_GUARD: Final = (
    "The processes of a pool run the program again under another name: code that starts it belongs below "
    '`if __name__ == "__main__":`, and code that the processes need belongs above it.'
)
_ON_DEPLOY: Final = (
    "Every process of a pool imports the module, on an event loop. What a deployment does once belongs in a function "
    "with @app.on_deploy, which `shiftwork deploy MODULE:NAME` runs."
)
PROGRAM_NAME: Final = "__shiftwork_main__"
"""The `__name__` of a program in the processes of its pools."""


def load_app(name: str) -> WorkerOrchestrator:
    """Return the orchestrator `module:name`; `module` alone means `module:app`; `/path/file.py:name` is a program."""
    if name.startswith("/"):
        return _from_program(name)
    module_name, _, attribute = name.partition(":")
    attribute = attribute or "app"
    _refuse_path(name, module_name, attribute)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found = _attribute(_import(module_name), attribute)
    if not isinstance(found, WorkerOrchestrator):
        message = (
            f"{module_name}:{attribute} is {_kind(found)}, not a WorkerOrchestrator; {_orchestrators(module_name)}"
        )
        raise AppImportError(message)
    return found


def _refuse_path(name: str, module: str, attribute: str) -> None:
    if module.endswith(".py") or "/" in module or os.sep in module:
        dotted = ".".join(Path(module).with_suffix("").parts).lstrip("./")
        message = f"{name!r} is a path; name the app as it is imported: {dotted}:{attribute}"
        raise AppImportError(message)
    if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        message = f"{name!r} does not name an app: write MODULE:NAME, for example shop:app"
        raise AppImportError(message)


def _from_program(name: str) -> WorkerOrchestrator:
    """Return the orchestrator of the program that started us: its file is run again, but not as `__main__`."""
    path, _, attribute = name.rpartition(":")
    try:
        found = runpy.run_path(path, run_name=PROGRAM_NAME).get(attribute)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's program may raise anything
        raise AppImportError(f"{_inside(path, error)}\n{_GUARD}") from None
    if not isinstance(found, WorkerOrchestrator):
        message = f"{path} defines no orchestrator {attribute!r} when it is imported\n{_GUARD}"
        raise AppImportError(message)
    return found


# ── the module ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise AppImportError(_inside(name, error)) from None
        raise AppImportError(_not_found(name, error.name)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's module may raise anything
        raise AppImportError(_inside(name, error)) from None


def _not_found(name: str, missing: str) -> str:
    remedy = f"run shiftwork in the folder that contains it (this is {Path.cwd()}), or add that folder to PYTHONPATH"
    near = nearest(name, _modules_here())
    hint = f" ({near})" if near.startswith("did you") else ""
    return f"there is no module {missing!r}{hint}; {remedy}"


def _modules_here() -> Iterator[str]:
    for path in Path.cwd().iterdir():
        if path.suffix == ".py":
            yield path.stem
        elif (path / "__init__.py").exists():
            yield path.name


def _inside(name: str, error: BaseException) -> str:
    words = in_words(f"module {name} cannot be imported", error, without_us=isinstance(error, ShiftworkError))
    return f"{words}\n{_ON_DEPLOY}" if isinstance(error, LifecycleError) else words


def in_words(what: str, error: BaseException, *, without_us: bool) -> str:
    """Return the user's error, and where it happened."""
    frames = _users_frames(error.__traceback__, without_us=without_us)
    where = "".join(traceback.format_list(frames[-_SHOWN_FRAMES:])).splitlines()
    lines = "".join(traceback.format_exception_only(error)).splitlines()
    # A SyntaxError begins with its place and ends with the message; every other error begins with the message.
    first = lines.pop(-1 if isinstance(error, SyntaxError) else 0).removeprefix("shiftwork.errors.")
    return "\n".join([f"{what}: {first}", *where, *lines])


def _users_frames(trace: TracebackType | None, *, without_us: bool) -> traceback.StackSummary:
    """Return the frames of a traceback without the importer's, and without ours if they do not matter."""
    walked = [(frame, line) for frame, line in traceback.walk_tb(trace) if not _is_importer(frame)]
    users = [(frame, line) for frame, line in walked if not (without_us and _is_ours(frame))]
    return traceback.StackSummary.extract(iter(users))


def _is_importer(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(("<frozen importlib", "<frozen runpy")) or file in {importlib.__file__, __file__}


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


# ── the attribute ────────────────────────────────────────────────────────────────────────────────────────────────────


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            message = f"module {module.__name__} has no {path!r}; {_orchestrators(module.__name__)}"
            raise AppImportError(message)
        found = getattr(found, part)
    return found


def _orchestrators(module_name: str) -> str:
    module = sys.modules[module_name]
    names = [name for name, value in vars(module).items() if isinstance(value, WorkerOrchestrator)]
    if not names:
        return (
            f"it defines no WorkerOrchestrator: write `app = WorkerOrchestrator(…)` in {module.__file__ or module_name}"
        )
    return "use " + " or ".join(f"{module_name}:{name}" for name in names)


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
