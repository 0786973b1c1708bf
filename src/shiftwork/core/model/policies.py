"""How a worker is retried, and when its breaker opens. Rules: `core.jobs.retry`, `core.workers.breaker`."""

from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from shiftwork.core.model.option_structs import OptionStructMeta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shiftwork.core.words.durations import Duration


# Unlike other options, the cycle collector visits it: as people write it, it has classes, which may refer to it.
class Retry(Struct, frozen=True, metaclass=OptionStructMeta):
    """Which failures are tried again, and after how long: `base · factor^n`, capped, plus or minus the jitter."""

    base_seconds: float = 5.0
    factor: float = 2.0
    max_seconds: float = 3600.0
    jitter: float = cast("float", None)
    """The share by which each wait varies. None is replaced: 0.1, or 0 for waits that are given one by one."""
    delays: tuple[float, ...] | None = None
    """The wait before each retry, instead of a growing one; the last one repeats."""
    on: tuple[str, ...] | None = None
    """The exceptions that are tried again; None for all. Given as classes, kept as their names."""
    never_on: tuple[str, ...] = ()
    """The exceptions that are never tried again. Given as classes, kept as their names."""

    if TYPE_CHECKING:  # what people may write; `core.options.checks` makes the values above of it

        def __init__(
            self,
            base_seconds: Duration = 5.0,
            factor: float = 2.0,
            max_seconds: Duration = 3600.0,
            jitter: float | None = None,
            *,
            delays: Sequence[Duration] | None = None,
            on: Sequence[type[BaseException] | str] | None = None,
            never_on: Sequence[type[BaseException] | str] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        if cast("float | None", self.jitter) is None:
            force_setattr(self, "jitter", 0.1 if self.delays is None else 0.0)


class Breaker(Struct, frozen=True, gc=False, metaclass=OptionStructMeta):
    """When to stop calling something broken: `failures` in the window open it, a probe after the cool-down decides.

    `name` is the destination it guards; workers that name the same destination share a breaker. Without a name, a
    worker has its own.
    """

    failures: int = 5
    window_seconds: float = 60.0
    cool_down_seconds: float = 30.0
    name: str | None = None

    if TYPE_CHECKING:  # as in `Retry`

        def __init__(
            self,
            failures: int = 5,
            window_seconds: Duration = 60.0,
            cool_down_seconds: Duration = 30.0,
            name: str | None = None,
        ) -> None: ...
