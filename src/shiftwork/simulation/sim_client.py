"""A simulated client: it adds jobs and changes things, and tries again when the store cannot be reached."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from shiftwork.errors import JobStateError, ResultTimeoutError, StoreError, UnknownJobError, UnknownScheduleError
from shiftwork.simulation.episode import Episode, JobPlan, OrderPlan, job_id
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.sim_app import SimulatedApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CLIENT_TRIES: Final = 12
AGAIN_SECONDS: Final = 1.0


class SimClient:
    """A process that uses the app without running it."""

    def __init__(self, world: World, episode: Episode, process: SimProcess) -> None:
        self.process = process
        self.acknowledged: int = 0
        """How many jobs were added, as far as it knows."""
        self._world = world
        self._episode = episode
        self._app: SimulatedApp | None = None
        self.version = 1

    @property
    def app(self) -> SimulatedApp:
        """The app, for use in the process of the client alone."""
        if self._app is None:
            store, _ = self._world.connect(self.process)
            self._app = SimulatedApp(self._episode, self._world, store, version=self._episode.versions)
        return self._app

    def follow(self, number: int, order: OrderPlan) -> None:
        """Do what an order says when its time has come."""
        self._world.later(self.process, order.at, self._begin, number, order)

    def _begin(self, number: int, order: OrderPlan) -> None:
        self._world.live(self._do(number, order))

    async def _do(self, number: int, order: OrderPlan) -> None:
        for _ in range(CLIENT_TRIES):
            try:
                await self._once(number, order)
            except StoreError:
                await asyncio.sleep(AGAIN_SECONDS)
            except (JobStateError, UnknownJobError, UnknownScheduleError):
                return  # it was too late, or too early
            else:
                return

    async def _once(self, number: int, order: OrderPlan) -> None:
        app = self.app
        if order.kind in {"enqueue", "many", "flow"}:
            calls = self._calls(number, order.jobs)
            await (app.enqueue_flow(*calls) if order.kind == "flow" else app.enqueue_many(calls))
            self.acknowledged += len(calls)
            return
        about = order.about
        change: dict[str, Callable[[], Awaitable[Any]]] = {
            "cancel": lambda: app.cancel_job(about),
            "requeue": app.retry_jobs,
            "send": lambda: app.send(about, "go", number),
            "pause": lambda: app.pause_pool(about),
            "resume": lambda: app.resume_pool(about),
            "disable": lambda: app.disable_worker(about),
            "enable": lambda: app.enable_worker(about),
            "trigger": lambda: app.control.workers.trigger(about, {}),
            "schedule": lambda: app.put_schedule(about, self._plain_call(order.jobs[0]), **_when(order.every)),
            "unschedule": lambda: app.delete_schedule(about),
            "reschedule": lambda: app.reschedule_worker(about, **_when(order.every)),
            "wait": lambda: self._wait(about),
        }
        await change[order.kind]()

    async def _wait(self, id: str) -> None:
        """Wait for a job as a caller does, up to some seconds."""
        with suppress(ResultTimeoutError):
            await (await self.app.get_job(id)).ended(5.0)

    def _plain_call(self, job: JobPlan) -> Any:
        """Return the call of a schedule, which decides itself which jobs there are."""
        return self.app.task_of(job.worker).call(script=job.script, key=job.key)

    def _calls(self, number: int, jobs: tuple[JobPlan, ...]) -> list[Any]:
        calls: list[Any] = []
        for place, job in enumerate(jobs):
            task = self.app.task_of(job.worker).with_options(job_id=job_id(number, place), **job.options)
            given = {"given": calls[job.after[0]].output} if job.given else {}
            call = task.call(script=job.script, key=job.key, **given)
            if job.after:
                call.after(*(calls[before] for before in job.after), whatever=job.whatever)
            calls.append(call)
        return calls


def _when(every: float | str) -> dict[str, Any]:
    """Return the options of a schedule."""
    return {"cron": every} if isinstance(every, str) else {"interval_seconds": every}
