"""Opens stores as the environment says: `SHIFTWORK_HISTORY` names the folder in which their calls are recorded.

Without it, no layer is put around a store, nothing is recorded, and what records is not even imported. All of shiftwork
opens its stores here. A run is recorded where the calls of its app's store are.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shiftwork.errors import ConfigurationError
from shiftwork.store import urls
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.history.recorder import HistoryRecorder

HISTORY_FOLDER: Final = "SHIFTWORK_HISTORY"


def open_store(url: str, *, namespace: str = "default", keys: Sequence[str] = ()) -> Store:
    """Return the store that a URL names, as `store.urls` does, recorded if the environment says so."""
    return urls.open_store(url, namespace=namespace, keys=keys, layer=_layer())


def store_of(given: Any, *, namespace: str = "default", keys: Sequence[str] = ()) -> Store:
    """Return the store that a program names, as `store.urls` does, recorded if the environment says so."""
    return urls.store_of(given, namespace=namespace, keys=keys, layer=_layer())


def opening_again(given: Any, *, namespace: str, keys: Sequence[str]) -> Callable[[], Store] | None:
    """Return a function that makes the same store in a forked process, as `store.urls` does, recorded likewise."""
    return urls.opening_again(given, namespace=namespace, keys=keys, layer=_layer())


def _layer() -> urls.Layer | None:
    named = os.environ.get(HISTORY_FOLDER)
    if not named:
        return None
    from shiftwork.history.recorded_store import recorded

    return partial(recorded, folder=_usable(named))


def _usable(named: str) -> Path:
    """Return the folder, which exists and takes files. Raises `ConfigurationError`."""
    folder = Path(named).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unusable(folder, "it is not writable")
    return folder


def _unusable(folder: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{HISTORY_FOLDER} names a folder in which no history can be written, {folder}: {why}. Name another one, or "
        "unset the variable to record nothing"
    )


def recorder_of(store: Store) -> "HistoryRecorder | None":
    """Return what records the calls of a store; None if nothing does."""
    recorder: HistoryRecorder | None = getattr(store, "recorder", None)
    return recorder
