"""Durable functions: steps that run once, and waits that hold no slot. What `Context.step` and its like use.

Every step of a job has a number and a name, and its result is kept under the job's fence. A later run of the job
starts the function anew; a step that was kept returns its result instead of running again. So the steps of a function
must come in the same order every time: if a number has another name than before, the run fails and says so.

A step that raises is not kept, and the next run tries it again. But if the function catches the exception and goes on
to another step, the failure is kept before that one begins: a later run must go the same way.

A wait ends the run with `Suspended`, which is not an `Exception`, so that a function does not catch it by accident. The
job is handed back until its time or its signal comes. A function that catches what ends its run, and returns, has not
completed its job (`LocalRun.overruled`); nor has one whose step was left out because its run has to stop, or is stale.

What is kept, and how it is read again, is in `KeptSteps`. While the store is away, every call waits (`StoreCalls`), so
each is safe to repeat: a step that was kept though the reply was lost is not kept again, and one in a transaction is
looked up before it runs again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import msgpack

from shiftwork.core.jobs.durable_functions import MARK, SLEEP, failed, got, in_words, waiting, wrong_name
from shiftwork.core.model.job_parts import Step, Wait
from shiftwork.core.values.envelopes import hidden, revealed, why_unreadable
from shiftwork.errors import LifecycleError, StepError, StepsFullError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.current_run import CurrentRun
from shiftwork.runtime.context.kept_steps import KeptSteps
from shiftwork.runtime.context.step_failures import packed, raised_again
from shiftwork.runtime.context.store_calls import StoreCalls, Suspended, hand_back, told_to_stop
from shiftwork.runtime.error_text import describe
from shiftwork.store.abilities import Transaction, transactional
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.history.recorder import HistoryRecorder

T = TypeVar("T")

FOREVER: Final = 10 * 365 * 86_400.0
"""How long a job waits for a signal if it does not say."""

THREAD_SECONDS: Final = 0.25
"""How often a thread that waits for the store checks whether it was told to stop."""


class Interrupted(asyncio.CancelledError):
    """Kept for a step that was cancelled from outside, by a time limit around it: that will cancel it again."""


class Steps:
    """The steps of one run: those that were kept before it, and those that it adds."""

    def __init__(
        self,
        run: CurrentRun,
        store: Callable[[], Awaitable[Store]],
        clock: Clock,
        calls: StoreCalls,
        *,
        loop: asyncio.AbstractEventLoop,
        recorder: "HistoryRecorder | None" = None,
    ) -> None:
        self._loop = loop
        """Where the store is reached."""
        self._run = run
        self._store = store
        self._clock = clock
        self._calls = calls
        self._steps = KeptSteps(run, store, clock, calls)
        self._recorder = recorder
        self._current: str | None = None
        """The step that is running now."""
        self._failure: tuple[str, float, bytes | str] | None = None
        """The step that failed last, if the function has not gone on since: its name, its start, and what is kept of
        it, or why nothing can be."""

    def wait(self, work: Coroutine[Any, Any, T], instead: str) -> T:
        """Run a coroutine for a plain function, which runs in a thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._wait_in_thread(asyncio.run_coroutine_threadsafe(work, self._loop))
        work.close()
        message = f"ctx.blocking is for plain functions, and would stop this event loop; use `{instead}` instead"
        raise LifecycleError(message)

    def _wait_in_thread(self, work: "Future[T]") -> T:
        while wait([work], timeout=THREAD_SECONDS).not_done:
            if self._run.cancelled:  # nothing cancels a thread, and the store may be away
                work.cancel()
                raise told_to_stop(self._run)
        return work.result()

    async def begin(self, name: str) -> Step | None:
        """Go on to a step. Returns it if it was kept before; otherwise it runs now. Raises what it raised before."""
        _check_name("a step", name)
        if name.startswith(MARK):
            raise StepError(f"the name of a step cannot begin with a colon: {name!r}")
        self._enter(name)
        try:
            kept = await self._next(name)
        except BaseException:
            self._current = None
            raise
        if kept is not None:
            self._current = None
            if kept.name != name:
                await self._fail_again(name, kept)
        return kept

    async def _fail_again(self, name: str, kept: Step) -> None:
        error = raised_again(name, kept.result, self._run.worker_values)
        if isinstance(error, Interrupted):
            await self._loop.create_future()
        raise error

    def called(self, name: str) -> None:
        """Note that the function of the step that runs is about to be called, if the history is recorded."""
        if self._recorder is not None:
            self._recorder.stepped(self._run.job, self._steps.next_number, name)

    def failed(self, name: str, error: BaseException, started_at: float) -> None:
        """Note that the step that runs has failed. The failure is kept if the function goes on to another step."""
        self._current = None
        if self._run.cancelled:  # perhaps it failed for that reason
            hand_back(self._run)
        text = describe(error, self._run.discreet)
        if isinstance(error, asyncio.CancelledError) and _is_cancelled_from_outside():
            error = Interrupted(*error.args)
        try:
            what: bytes | str = packed(name, error, self._run.worker_values, text)
        except StepError as refused:
            what = str(refused)
        self._failure = name, started_at, what

    async def keep(self, name: str, value: Any, started_at: float, function: Callable[..., Any]) -> Step:
        """Keep what a step that ran has returned, hidden if its function is annotated to return a secret."""
        try:
            result = self._run.worker_values.encode_step(name, value, function)
        except StepError as error:
            self.failed(name, error, started_at)
            raise
        try:
            return await self._steps.keep(name, result, started_at)
        finally:
            self._current = None

    async def transact(
        self, name: str, work: Callable[[Any], Awaitable[Any]], started_at: float, function: Callable[..., Any]
    ) -> Step:
        """Run a step with a connection, and keep what it returns in the same transaction."""
        tries = count()

        async def encoded(connection: Any) -> bytes:
            return self._run.worker_values.encode_step(name, await work(connection), function)

        try:
            step = await self._calls.make(
                self._run, lambda: self._transact(name, encoded, started_at, is_first=next(tries) == 0)
            )
        except StepsFullError:
            raise self._steps.full() from None
        except BaseException:
            if self._failure is None:
                self._steps.suspend()
            raise
        finally:
            self._current = None
        if isinstance(step, BaseException):
            raise step
        self._steps.add(step)
        return step

    async def _transact(
        self, name: str, work: Callable[[Any], Awaitable[bytes]], started_at: float, *, is_first: bool
    ) -> Step | BaseException:
        """Try it once, and return the step, or what the step itself has raised."""
        store = await self._store()
        try:
            database = transactional(store, "ctx.in_transaction()")
        except BaseException as error:
            self.failed(name, error, started_at)
            raise
        self._current = name
        raised: list[BaseException] = []
        try:
            async with database.transaction() as transaction:
                committed = None if is_first else await self._steps.committed(transaction)
                return committed or await self._kept_in(transaction, name, work, started_at, raised)
        except BaseException as error:
            if raised and error is raised[0]:
                return error
            self._failure = None  # the connection was lost while the step ran
            raise

    async def _kept_in(
        self,
        transaction: Transaction,
        name: str,
        work: Callable[[Any], Awaitable[bytes]],
        started_at: float,
        raised: list[BaseException],
    ) -> Step:
        self.called(name)
        try:
            result = await work(transaction.connection)
        except BaseException as error:
            raised.append(error)
            self.failed(name, error, started_at)
            raise
        return await self._steps.keep_in(transaction, self._steps.new_step(name, result, started_at))

    def value(self, function: Callable[..., Any], step: Step) -> Any:
        """Return a step's result as its function is annotated to return it, whether it ran now or before."""
        return self._run.worker_values.decode_step(step.name, function, step.result)

    async def sleep(self, seconds: float) -> None:
        """Return once this time has passed since the function first came here."""
        with self._alone(SLEEP):
            kept = await self._next(SLEEP)
            now = self._clock.now()
            until = now + seconds if kept is None else _read(kept, float)
            if kept is None:
                await self._steps.keep(SLEEP, msgpack.encode(until), now)
            if until > now:  # as it was before the sleep was kept: the clock may have been set meanwhile
                raise Suspended(self._clock.now(), until)  # keeping it may have taken an outage

    async def wait_for(self, name: str, seconds: float | None, *, secret: bool) -> Any:
        """Return the value of the next signal with this name. Raises `TimeoutError` if it does not come in time.

        A secret wait keeps hidden what it notes: from its beginning, no signal with this name is shown.
        """
        seal = hidden if secret else _as_it_is
        _check_name("a signal", name)
        with self._alone(waiting(name)):
            patience = FOREVER if seconds is None else seconds
            until = await self._noted(waiting(name), lambda: self._clock.now() + patience, seal)
            kept = await self._next(got(name))
            if kept is None:
                kept = await self._arrived(name, until, seal)
        came, value = _read(kept, tuple[bool, Any])
        if not came:
            message = f"signal {name!r} did not arrive in time"
            raise TimeoutError(message)
        return value

    async def _arrived(self, name: str, until: float, seal: Callable[[bytes], bytes]) -> Step:
        signal = await self._steps.read_signal(name)
        now = self._clock.now()
        if signal is not None:
            return await self._steps.keep(got(name), seal(_pair(signal.value)), now, taking=name)
        if now >= until:
            return await self._steps.keep(got(name), seal(msgpack.encode((False, None))), now)
        raise Suspended(now, until, Wait(name, 1))

    async def _noted(self, name: str, make: Callable[[], float], seal: Callable[[bytes], bytes]) -> float:
        """Return a number that the first run works out, and that later runs get back."""
        kept = await self._next(name)
        if kept is None:
            kept = await self._steps.keep(name, seal(msgpack.encode(make())), self._clock.now())
        return _read(kept, float)

    def _enter(self, name: str) -> None:
        if self._steps.is_stale:
            raise self._steps.stale()
        if self._run.cancelled:  # a thread cannot be stopped, and the next run may be under way
            raise told_to_stop(self._run)
        if self._steps.suspended is not None:  # the function has caught it: what comes later must not run early
            self._run.overruled = self._steps.suspended.end()
            raise self._steps.suspended
        if self._current is not None:
            running = in_words(self._current)
            message = (
                f"step {in_words(name)!r} begins while step {running!r} is running: steps run one after another. "
                "Do what belongs together inside one step, or let a flow run it in parallel"
            )
            raise self._steps.refusal(message)
        self._current = name

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let no other step begin meanwhile."""
        self._enter(name)
        try:
            yield
        except Suspended as suspended:
            self._steps.suspended, self._run.overruled = suspended, suspended.end()
            raise
        finally:
            self._current = None

    async def _next(self, name: str) -> Step | None:
        """Go on to the next step. Returns it if it was kept before."""
        steps = self._steps
        if steps.wants_page:
            await steps.read_page()
        if self._failure is not None:
            await self._keep_failure(*self._failure)
        return steps.next(name)

    async def _keep_failure(self, name: str, started_at: float, what: bytes | str) -> None:
        """Keep the failure that the function has caught, now that it goes on."""
        if isinstance(what, str):
            raise self._steps.refusal(what)
        await self._steps.keep(failed(name), what, started_at)
        self._failure = None


def _check_name(what: str, name: object) -> None:
    wrong = wrong_name(what, name)
    if wrong is not None:
        raise StepError(wrong)


def _is_cancelled_from_outside() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread, which nothing cancels
        return False
    return task is not None and task.cancelling() > 0


def _read(step: Step, kind: type[T]) -> T:
    """Return what a sleep or a wait has noted. Raises `StepError` if it cannot be decrypted."""
    why = why_unreadable(step.result)
    if why is not None:
        message = f"{in_words(step.name)!r}, step {step.number}, cannot be read: {why}"
        raise StepError(message)
    return msgpack.decode(revealed(step.result), type=kind)


def _as_it_is(value: bytes) -> bytes:
    return value


def _pair(value: bytes) -> bytes:
    return b"\x92\xc3" + value  # [true, value]


def step_maker(
    store: Callable[[], Awaitable[Store]], clock: Clock, calls: StoreCalls, recorder: "HistoryRecorder | None" = None
) -> Callable[[CurrentRun], Steps]:
    """Return what makes the steps of a run, for the runs of this event loop and of its threads."""
    loop = asyncio.get_running_loop()
    return lambda run: Steps(run, store, clock, calls, loop=loop, recorder=recorder)
