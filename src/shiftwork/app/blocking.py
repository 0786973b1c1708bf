"""The coroutines of an orchestrator as plain calls, for code that has no event loop.

A plain call keeps the signature and the documentation of its coroutine, and runs it.
"""

from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from shiftwork.app.orchestrator import APP_STOP_SECONDS, WorkerOrchestrator
from shiftwork.control.calling import refuse_on_a_loop, run
from shiftwork.core.words import Duration
from shiftwork.handles.flow import Flow
from shiftwork.handles.job import Job
from shiftwork.handles.worker import Call

P = ParamSpec("P")
R = TypeVar("R")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")
R5 = TypeVar("R5")
Owner = TypeVar("Owner")


class BlockingMethod(Generic[P, R]):
    """The attribute that stands for a coroutine method."""

    def __init__(self, original: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self._original = original
        self._name = ""

    def __set_name__(self, owner: "type[BlockingOrchestrator]", name: str) -> None:
        self._name = name

    def __get__(self, calls: "BlockingOrchestrator", owner: "type[BlockingOrchestrator]") -> Callable[P, R]:
        app = calls._orchestrator  # noqa: SLF001 - this is a method of it
        original = getattr(app, self._name)

        @wraps(original, updated=())  # not its mark as a coroutine function
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            result: R = app.control.portal.call(lambda: original(*args, **kwargs), f"await app.{self._name}(…)")
            return result

        return call


def blocking(original: Callable[Concatenate[Owner, P], Coroutine[Any, Any, R]]) -> BlockingMethod[P, R]:
    """Return the attribute that makes this coroutine method a plain one, under the same name."""
    return BlockingMethod(original)


class BlockingOrchestrator:
    """The coroutines of an orchestrator as plain calls. Each works from any thread, and in a forked process.

    They run on the orchestrator's event loop while it runs, and otherwise on one in a thread of its own.
    """

    def __init__(self, orchestrator: WorkerOrchestrator) -> None:
        self._orchestrator = orchestrator

    start: Final = blocking(WorkerOrchestrator.start)
    deploy: Final = blocking(WorkerOrchestrator.deploy)
    trigger_worker: Final = blocking(WorkerOrchestrator.trigger_worker)
    auto_scale: Final = blocking(WorkerOrchestrator.auto_scale)
    recover_stuck_jobs: Final = blocking(WorkerOrchestrator.recover_stuck_jobs)
    get_job: Final = blocking(WorkerOrchestrator.get_job)
    find_jobs: Final = blocking(WorkerOrchestrator.find_jobs)
    explain_job: Final = blocking(WorkerOrchestrator.explain_job)
    job_stack: Final = blocking(WorkerOrchestrator.job_stack)
    cancel_job: Final = blocking(WorkerOrchestrator.cancel_job)
    retry_job: Final = blocking(WorkerOrchestrator.retry_job)
    discard_job: Final = blocking(WorkerOrchestrator.discard_job)
    cancel_jobs: Final = blocking(WorkerOrchestrator.cancel_jobs)
    retry_jobs: Final = blocking(WorkerOrchestrator.retry_jobs)
    discard_jobs: Final = blocking(WorkerOrchestrator.discard_jobs)
    workers: Final = blocking(WorkerOrchestrator.workers)
    enable_worker: Final = blocking(WorkerOrchestrator.enable_worker)
    disable_worker: Final = blocking(WorkerOrchestrator.disable_worker)
    forget_worker: Final = blocking(WorkerOrchestrator.forget_worker)
    reschedule_worker: Final = blocking(WorkerOrchestrator.reschedule_worker)
    put_schedule: Final = blocking(WorkerOrchestrator.put_schedule)
    get_schedules: Final = blocking(WorkerOrchestrator.get_schedules)
    pause_schedule: Final = blocking(WorkerOrchestrator.pause_schedule)
    resume_schedule: Final = blocking(WorkerOrchestrator.resume_schedule)
    delete_schedule: Final = blocking(WorkerOrchestrator.delete_schedule)
    run_schedule: Final = blocking(WorkerOrchestrator.run_schedule)
    pools: Final = blocking(WorkerOrchestrator.pools)
    pause_pool: Final = blocking(WorkerOrchestrator.pause_pool)
    resume_pool: Final = blocking(WorkerOrchestrator.resume_pool)
    scale_pool: Final = blocking(WorkerOrchestrator.scale_pool)
    get_pool_dashboard: Final = blocking(WorkerOrchestrator.get_pool_dashboard)
    get_breakers: Final = blocking(WorkerOrchestrator.get_breakers)
    close_breaker: Final = blocking(WorkerOrchestrator.close_breaker)
    open_breaker: Final = blocking(WorkerOrchestrator.open_breaker)
    nodes: Final = blocking(WorkerOrchestrator.nodes)
    drain_node: Final = blocking(WorkerOrchestrator.drain_node)
    undrain_node: Final = blocking(WorkerOrchestrator.undrain_node)
    get_health: Final = blocking(WorkerOrchestrator.get_health)
    events: Final = blocking(WorkerOrchestrator.events)
    check: Final = blocking(WorkerOrchestrator.check)

    get_flow: Final = blocking(WorkerOrchestrator.get_flow)
    find_flows: Final = blocking(WorkerOrchestrator.find_flows)
    send: Final = blocking(WorkerOrchestrator.send)

    @overload
    def enqueue_flow(self, call: Call[R], /) -> Flow[R]: ...

    @overload
    def enqueue_flow(self, a: Call[R], b: Call[R2], /) -> Flow[tuple[R, R2]]: ...

    @overload
    def enqueue_flow(self, a: Call[R], b: Call[R2], c: Call[R3], /) -> Flow[tuple[R, R2, R3]]: ...

    @overload
    def enqueue_flow(self, a: Call[R], b: Call[R2], c: Call[R3], d: Call[R4], /) -> Flow[tuple[R, R2, R3, R4]]: ...

    @overload
    def enqueue_flow(
        self, a: Call[R], b: Call[R2], c: Call[R3], d: Call[R4], e: Call[R5], /
    ) -> Flow[tuple[R, R2, R3, R4, R5]]: ...

    @overload
    def enqueue_flow(self, *calls: Call[Any]) -> Flow[tuple[Any, ...]]: ...

    def enqueue_flow(self, *calls: Call[Any]) -> Flow[Any]:
        """Add these calls and all the calls that they need, in one step: all of them, or none."""
        portal = self._orchestrator.control.portal
        return portal.call(lambda: self._orchestrator.control.flows.enqueue(calls), "await app.enqueue_flow(…)")

    def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Job[R]]:
        """Add many jobs in one step: all of them, or none."""
        portal = self._orchestrator.control.portal
        return portal.call(lambda: self._orchestrator.enqueue_many(calls), "await app.enqueue_many(…)")

    def stop(self, timeout_seconds: Duration = APP_STOP_SECONDS) -> None:
        """Stop claiming, let running work finish within the timeout, and hand back the rest uncounted."""
        portal = self._orchestrator.control.portal
        portal.call(lambda: self._orchestrator.stop(timeout_seconds), "await app.stop()")
        portal.close()

    def close(self) -> None:
        """Close the store, in a process that only asks or enqueues, and end the thread that did so."""
        portal = self._orchestrator.control.portal
        portal.call(self._orchestrator.close, "await app.close()")
        portal.close()

    def run(self, *, stop_timeout_seconds: Duration = APP_STOP_SECONDS) -> None:
        """Start, wait for SIGTERM or SIGINT, then stop: in this thread, which must be the main one."""
        refuse_on_a_loop("await app.run()")
        run(self._orchestrator.run(stop_timeout_seconds=stop_timeout_seconds))
