"""An app whose jobs end in every way that code, its exceptions and its values can think of, on a pool of each kind.

Every pool has one slot, and every run notes itself in a file: `<pool> <how>`.
"""

import asyncio
import builtins
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from shiftwork import Context, JobCancelledError, PayloadDecodingError, WorkerOrchestrator

journal = os.environ["HOSTILE_JOURNAL"]

app = WorkerOrchestrator("memory://", max_payload_bytes=100_000)
app.register_pool("coroutines", kind="async", min_workers=1, max_workers=1)
app.register_pool("threads", kind="thread", min_workers=1, max_workers=1)
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────


class UnusualError(BaseException):
    pass


def every_exception() -> list[BaseException]:
    """One of each kind that Python knows, and some that it does not."""
    special = {
        UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "no"),
        UnicodeEncodeError: ("utf-8", "\udcff", 0, 1, "no"),
        UnicodeTranslateError: ("x", 0, 1, "no"),
        BaseExceptionGroup: ("all at once", [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]),
        ExceptionGroup: ("all at once", [ValueError("line\nline"), OSError("\udcff")]),
    }
    kinds = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    known = [kind(*special.get(kind, ("wrong",))) for kind in dict.fromkeys(kinds)]
    return [*known, asyncio.CancelledError(), UnusualError(), JobCancelledError("x"), PayloadDecodingError("x")]


class Masked(type):
    """Its classes hide their names."""

    def __getattribute__(cls, name: str) -> Any:
        if name in {"__name__", "__qualname__", "__module__"}:
            raise KeyboardInterrupt
        return super().__getattribute__(name)


class HostileText(str):
    """Text that resists being used."""

    __slots__ = ()

    def __len__(self) -> int:
        raise SystemExit

    def __format__(self, _spec: str) -> str:
        raise SystemExit

    def encode(self, *_: Any) -> bytes:
        raise SystemExit


def hostile(**methods: Any) -> BaseException:
    """An exception with methods of its own."""
    kind: type[BaseException] = type("HostileError", (Exception,), methods)
    return kind("text")


def throw(error: BaseException) -> Any:
    raise error


def endless_chain() -> BaseException:
    first = last = ValueError("first")
    for number in range(500):
        last.__context__ = ValueError(number)
        last = last.__context__
    return first


def nested_groups() -> BaseException:
    group: Exception = ValueError("inmost")
    for _ in range(1_100):
        group = ExceptionGroup("around", [group])
    return group


def around_itself() -> BaseException:
    error = ValueError("around itself")
    error.__cause__ = error.__context__ = error
    return error


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class HostileValue:
    """Raises wherever it is asked."""

    def __init__(self, error: type[BaseException]) -> None:
        object.__setattr__(self, "_error", error)

    def _throw(self, *_: Any, **__: Any) -> Any:
        raise object.__getattribute__(self, "_error")

    __str__ = __repr__ = __reduce__ = __getattribute__ = __eq__ = __hash__ = __bool__ = __iter__ = __len__ = _throw
    __class__ = property(_throw)


class Dumped:
    """A value with an encoding of its own."""

    def __init__(self, dump: Callable[[], Any]) -> None:
        self._dump = dump

    def model_dump(self, mode: str) -> Any:
        assert mode == "json"
        return self._dump()

    @classmethod
    def raising(cls, fatal: type[BaseException]) -> "Dumped":
        return cls(lambda: throw(fatal()))


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append({"again": value})
    return value


def recurse() -> Any:
    return recurse()


def cancel_itself() -> None:
    task = asyncio.current_task()
    if task is None:
        raise asyncio.CancelledError
    task.cancel()


FATAL: tuple[type[BaseException], ...] = (
    *(KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError),
    *(MemoryError, RecursionError),
)
Way = Callable[[Context], Any]


def raising(error: BaseException) -> Way:
    return lambda _: throw(error)


def raising_in(method: str, fatal: type[BaseException]) -> Way:
    return lambda _: throw(hostile(**{method: lambda *_: throw(fatal())}))


def returning(make: Callable[[type[BaseException]], Any], fatal: type[BaseException]) -> Way:
    return lambda _: make(fatal)


def telling(fatal: type[BaseException]) -> Way:
    return lambda ctx: ctx.progress(1, 2, HostileValue(fatal))  # type: ignore[arg-type]


def log_and_fail(ctx: Context) -> None:
    ctx.logger.warning("%s", HostileValue(RecursionError))
    raise ValueError("it went on")


def forking(leave: Callable[[], Any], status: int) -> Way:
    """A child leaves the function, too, before its parent does. Not in a process that is not ours alone."""

    def fork(ctx: Context) -> Any:
        if ctx.worker.pool == "apart":
            child = os.fork()
            if child == 0:
                return leave()
            left = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if left != status:
                return f"the child has left with {left}"
        raise ValueError("the parent")

    return fork


def say_half(ctx: Context) -> None:
    ctx.progress("half")  # type: ignore[arg-type]


METHODS = ("__str__", "__repr__", "__getattribute__", "__reduce__", "__getattr__")

WAYS: dict[str, Way] = {
    **{f"raise {type(error).__name__}": raising(error) for error in every_exception()},
    **{f"{name} raises {fatal.__name__}": raising_in(name, fatal) for name in METHODS for fatal in FATAL},
    "__str__ and __getattribute__ raise": lambda _: throw(
        hostile(__str__=lambda _: throw(SystemExit()), __getattribute__=lambda *_: throw(KeyboardInterrupt()))
    ),
    "__class__ raises": lambda _: throw(hostile(__class__=property(lambda _: throw(GeneratorExit())))),
    "__notes__ raises": lambda _: throw(hostile(__notes__=property(lambda _: throw(SystemExit())))),
    "__str__ returns hostile text": lambda _: throw(hostile(__str__=lambda _: HostileText("text"))),
    "__str__ returns a number": lambda _: throw(hostile(__str__=lambda _: 7)),
    "a class without a name": lambda _: throw(Masked("Nameless", (Exception,), {})()),
    "an endless text": lambda _: throw(ValueError("x" * 1_000_000)),
    "text that no store can keep": lambda _: throw(ValueError("\udcff\x00\x1b[31m")),
    "a deep argument": lambda _: throw(ValueError(deep(5_000))),
    "an endless chain": lambda _: throw(endless_chain()),
    "nested groups": lambda _: throw(nested_groups()),
    "an error around itself": lambda _: throw(around_itself()),
    "endless recursion": lambda _: recurse(),
    "its task is cancelled": lambda _: cancel_itself(),
    "a deep result": lambda _: deep(300),
    "a result deeper than the stack": lambda _: deep(20_000),
    "an endless result": lambda _: endless(),
    "a huge result": lambda _: "x" * 1_000_000,
    "a result without an encoding": lambda _: object(),
    **{f"a result that raises {fatal.__name__}": returning(HostileValue, fatal) for fatal in FATAL},
    **{f"its encoding raises {fatal.__name__}": returning(Dumped.raising, fatal) for fatal in FATAL},
    "its encoding is deep": lambda _: Dumped(lambda: deep(300)),
    "its encoding is endless": lambda _: [value := Dumped(lambda: value)],
    **{f"a progress that raises {fatal.__name__}": telling(fatal) for fatal in FATAL},
    "a progress that is no number": say_half,
    "a forked child returns": forking(lambda: "child", 0),
    "a forked child exits": forking(lambda: sys.exit(3), 3),
    "a forked child fails": forking(lambda: throw(ValueError("child")), 1),
    "a hostile log line": log_and_fail,
}
"""What a run may do, by name. None of it succeeds."""


def note(pool: str, how: str) -> None:
    with open(journal, "a") as file:  # noqa: PTH123 - short
        file.write(f"{pool} {how}\n")


def act(pool: str, how: str, ctx: Context) -> Any:
    note(pool, how)
    return "good" if how == "be good" else WAYS[how](ctx)


@app.task(pool="coroutines", max_retries=0)
async def coroutines(ctx: Context, how: str) -> Any:
    return act("coroutines", how, ctx)


@app.task(pool="threads", max_retries=0)
def threads(ctx: Context, how: str) -> Any:
    return act("threads", how, ctx)


@app.task(pool="threads", max_retries=0)
def handed_on(ctx: Context, how: str) -> Coroutine[Any, Any, Any]:
    """Return a coroutine."""

    async def rest() -> Any:
        return act("handed_on", how, ctx)

    return rest()


@app.task(pool="apart", max_retries=0)
def apart(ctx: Context, how: str) -> Any:
    return act("apart", how, ctx)


@app.task(pool="apart", max_retries=0)
async def apart_in_a_coroutine(ctx: Context, how: str) -> Any:
    return act("apart_in_a_coroutine", how, ctx)


WORKERS = (coroutines, threads, handed_on, apart, apart_in_a_coroutine)


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

errors = every_exception()


@app.on("job.dead")
def hook(_event: Any) -> Any:
    """Raise something else each time."""
    errors.append(errors.pop(0))
    raise errors[-1]


@app.on("job.dead")
async def slow_hook(_event: Any) -> None:
    raise errors[-1]


@app.on("job.dead")
def odd_hook(_event: Any) -> Any:
    return HostileValue(KeyboardInterrupt)
