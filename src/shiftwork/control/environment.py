"""What the environment names where neither the code nor the command line does: the store and its namespace."""

import os
from typing import Final

from shiftwork.core.words import wrong_id
from shiftwork.errors import ConfigurationError

STORE: Final = "SHIFTWORK_STORE"
NAMESPACE: Final = "SHIFTWORK_NAMESPACE"
DEFAULT_FILE: Final = "shiftwork.db"
"""The database in the current folder that is used where nothing names a store."""
DEFAULT_NAMESPACE: Final = "default"


def store_of_environment() -> str | None:
    """Return the URL of the store that the environment names."""
    return os.environ.get(STORE) or None


def namespace_of_environment() -> str:
    """Return the namespace that the environment names, or the default one."""
    return os.environ.get(NAMESPACE) or DEFAULT_NAMESPACE


def namespace_of_app(given: str) -> str:
    """Return the namespace of an app, which the environment may name if the app leaves the default one."""
    if not given:
        message = f"namespace must be a non-empty string, not {given!r}"
        raise ConfigurationError(message)
    found = namespace_of_environment() if given == DEFAULT_NAMESPACE else given
    wrong = wrong_id(found)
    if wrong is not None:
        message = f"namespace {wrong}"
        raise ConfigurationError(message)
    return found


def default_store() -> str:
    """Return the URL of the store of an app that names none."""
    return store_of_environment() or f"sqlite:///{DEFAULT_FILE}"
