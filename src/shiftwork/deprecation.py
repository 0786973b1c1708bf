"""Public names that are going away: each still works for one minor version, and warns (docs/stability.md).

    old_name = deprecated_alias("app.old_name()", new_name, instead="app.new_name()", gone_in="0.4.0")

A name that is no function, such as an option or a class, calls `deprecate(…)` once and `warn()` where it is used. The
test suite fails from the version on in which a name should be gone.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Deprecation(NamedTuple):
    """A name, what replaces it, and the first version without it."""

    name: str
    instead: str
    gone_in: str

    def warn(self, *, callers: int = 1) -> None:
        """Warn at the line that called the function which calls this, or further up by this many callers.

        Python shows a warning once for each line of code.
        """
        text = f"{self.name} is deprecated and will be removed in shiftwork {self.gone_in}; use {self.instead} instead"
        warnings.warn(text, DeprecationWarning, stacklevel=callers + 2)


DEPRECATIONS: Final[dict[str, Deprecation]] = {}
"""What is deprecated now, by name."""


def deprecate(name: str, *, instead: str, gone_in: str) -> Deprecation:
    """Record that a name is deprecated, and return what warns of it."""
    DEPRECATIONS[name] = deprecation = Deprecation(name, instead, gone_in)
    return deprecation


def deprecated_alias(name: str, function: Callable[P, R], *, instead: str, gone_in: str) -> Callable[P, R]:
    """Return what stands under the old name of a function or a method: it warns, and calls the function."""
    deprecation = deprecate(name, instead=instead, gone_in=gone_in)

    @wraps(function)
    def alias(*args: P.args, **kwargs: P.kwargs) -> R:
        deprecation.warn()
        return function(*args, **kwargs)

    return alias
