"""The declarations that define an app: workers, pools, hooks, alerts, and context managers around its jobs.

Everything here is called by people. `registration` checks what they declare, and keeps it.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from shiftwork.app.deployment import Deployment
from shiftwork.app.lifecycle import Lifecycle
from shiftwork.app.registration import Registrations, WorkerFn, merged, named_pool, named_worker
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.option_types import NamedWorkerOptions, PoolOptions, WorkerOptions
from shiftwork.errors import ConfigurationError, LifecycleError
from shiftwork.events import AnyHook, Hooks
from shiftwork.handles.worker import Worker
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.context.middleware import AroundJob, Lifespan, Middleware

if TYPE_CHECKING:
    from shiftwork.app.alerts import AlertFormat

P = ParamSpec("P")
R = TypeVar("R")
AnyLifespan = TypeVar("AnyLifespan", bound=Lifespan)
AnyDeploy = TypeVar("AnyDeploy", bound=Callable[[], Any])
AnyAround = TypeVar("AnyAround", bound=AroundJob)


if TYPE_CHECKING:  # a `Worker` each, of which a type checker knows how it is called

    class PlainWorker(Worker[P, R]):
        """A worker whose function is a plain one, without a context."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    class AsyncWorker(Worker[P, R]):
        """A worker whose function is a coroutine function, without a context."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...

    class PlainWorkerWithContext(Worker[P, R]):
        """A worker whose function is a plain one, with a context first."""

        def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    class AsyncWorkerWithContext(Worker[P, R]):
        """A worker whose function is a coroutine function, with a context first."""

        def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...


class WorkerDecorator:
    """The decorator that `@app.task(...)` and `@app.worker(...)` make: it takes a function and returns a typed handle.

    A type checker can only leave out the first parameter, so the context goes first.
    """

    def __init__(self, add: Callable[[Callable[..., Any], Mapping[str, Any]], Any], options: Mapping[str, Any]) -> None:
        self._add = add
        self._options = options

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    def __call__(self, function: Callable[..., Any], /) -> Worker[Any, Any]:
        """Register the function."""
        worker: Worker[Any, Any] = self._add(function, self._options)
        return worker


def name_of(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return the worker's name: the given one, or the function's."""
    return str(options.get("name") or getattr(function, "__name__", ""))


def checked(decorator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function. Raises `ConfigurationError` if something else was passed in its place."""
    if not callable(function):
        raise ConfigurationError(
            f"@app.{decorator} takes options by name, not {function!r}: @app.{decorator}(name={str(function)!r})"
        )
    return function


def nameless(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without the name."""
    return {name: value for name, value in options.items() if name != "name"}


class OrchestratorDeclarations:
    """Declares workers, pools, hooks and alerts, in the module that defines an app."""

    _registrations: Registrations
    _middleware: Middleware
    _hooks: Hooks
    _lifecycle: Lifecycle
    _deployment: Deployment

    def register_worker(
        self,
        name: str | WorkerConfig | Mapping[str, Any] | None = None,
        function: WorkerFn | None = None,
        options: WorkerOptions | WorkerConfig | Mapping[str, Any] | None = None,
        *,
        fn: WorkerFn | None = None,
        **named: Unpack[WorkerOptions],
    ) -> Worker[..., Any]:
        """Register a function under a name. Without a schedule it runs every 300 seconds.

        Options are given by name, as a mapping, or as a `WorkerConfig`; a mapping with a name, or a config, may also
        stand in place of the name. `fn` is another name for `function`.
        """
        called, function, written = named_worker(name, function, fn, named)
        return self._registrations.add_worker(called, function, merged(called, options, written), {})

    @overload
    def worker(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def worker(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def worker(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def worker(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    @overload
    def worker(self, /, **options: Unpack[NamedWorkerOptions]) -> WorkerDecorator: ...

    def worker(
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> WorkerDecorator | Worker[Any, Any]:
        """Register the decorated function, SCHEDULED by default. `name` is the function's by default.

        Without options the parentheses may be left out.
        """
        decorator = WorkerDecorator(self._add_worker, options)
        return decorator if function is None else decorator(checked("worker", function))

    def _add_worker(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        return self._registrations.add_worker(name_of(function, options), function, nameless(options), {})

    @overload
    def task(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def task(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    @overload
    def task(self, /, **options: Unpack[NamedWorkerOptions]) -> WorkerDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> WorkerDecorator | Worker[Any, Any]:
        """Register the decorated function as a TRIGGERED worker, whose parameters are its payload.

        Without options the parentheses may be left out.
        """
        decorator = WorkerDecorator(self._add_task, options)
        return decorator if function is None else decorator(checked("task", function))

    def _add_task(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        name = name_of(function, options)
        defaults = {"execution_mode": "triggered", "max_consecutive_failures": None}
        return self._registrations.add_worker(name, function, nameless(options), defaults)

    def register_pool(
        self,
        name: str | PoolConfig | Mapping[str, Any] | None = None,
        options: PoolOptions | Mapping[str, Any] | None = None,
        **named: Unpack[PoolOptions],
    ) -> PoolConfig:
        """Register a pool, by its name and options, as a `PoolConfig`, or as a mapping with a name.

        Options are given by name or as a mapping. Workers name the pool in their `pool` option.
        """
        return self._registrations.add_pool(*named_pool(name, options, named))

    def lifespan(self, function: AnyLifespan, /) -> AnyLifespan:
        """Enter this context manager once in each process that runs jobs; what it yields is `ctx.state` there.

        The function takes nothing and yields once, or returns a context manager; plain or async. If it raises, the
        process takes no jobs. It is left when the process has finished its jobs.
        """
        if self._lifecycle.state != "stopped":
            raise LifecycleError("@app.lifespan belongs before start(): this process runs jobs already")
        self._middleware.set_lifespan(function)
        return function

    def around_job(self, function: AnyAround, /) -> AnyAround:
        """Run each job inside this context manager, where the job runs. Several are nested in this order.

        The function takes the `Context` and yields once, or returns a context manager; plain or async. It sees the
        exception that a run raises. What it raises itself fails the run; it cannot turn a failure into a success.
        """
        self._middleware.add_around(function)
        return function

    @overload
    def on_deploy(self, function: AnyDeploy, /) -> AnyDeploy: ...

    @overload
    def on_deploy(self, /) -> Callable[[AnyDeploy], AnyDeploy]: ...

    def on_deploy(self, function: Callable[[], Any] | None = None, /) -> Any:
        """Run this function once per deployment: by `shiftwork deploy MODULE:NAME`, or by `await app.deploy()`.

        It takes nothing, is plain or async, and should be safe to run again. It puts schedules, for example.
        """
        if function is None:
            return self.on_deploy
        self._deployment.add(function)
        return function

    @overload
    def on(self, event: str) -> Callable[[AnyHook], AnyHook]: ...

    @overload
    def on(self, event: str, hook: AnyHook) -> AnyHook: ...

    def on(self, event: str, hook: AnyHook | None = None) -> AnyHook | Callable[[AnyHook], AnyHook]:
        """Call a function, plain or async, for every event of this name in this process.

        "*" is every event that is kept: all but `job.started`, `job.completed` and `job.failed`.
        """
        if callable(event):
            raise ConfigurationError('@app.on names an event: @app.on("job.dead"), or @app.on("*") for all of them')
        if hook is not None:
            self._hooks.add(event, hook)
            return hook

        def decorate(hook: AnyHook) -> AnyHook:
            self._hooks.add(event, hook)
            return hook

        return decorate

    def alert(
        self,
        url: str,
        *,
        events: Sequence[str],
        secret: str | None = None,
        format: "AlertFormat" = "json",  # noqa: A002 - the word that people look for
    ) -> None:
        """Post these events ("*": all) to an address, until they are accepted.

        With a `secret` they are signed as Standard Webhooks are. `format` is "json", "slack" for an incoming webhook of
        Slack, or a function that takes the event and returns what to post as JSON, None for nothing. An event that is
        not accepted within about a minute is given up. Nothing waits for it.
        """
        from shiftwork.app.alerts import Alert, check_events

        check_events(events)
        alert = Alert(url, secret, format)
        for event in dict.fromkeys(events):
            self._hooks.add(event, alert)

    def registered(self) -> tuple[dict[str, WorkerConfig], dict[str, PoolConfig]]:
        """Return the workers and pools registered here, checked together as `start` does, without asking the store."""
        registry = self._registrations.complete()
        return {name: worker.config for name, worker in registry.workers.items()}, dict(registry.pools)
