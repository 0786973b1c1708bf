"""A change that has happened is reported as one, even if the store cannot keep its line of the audit."""

import ast
import inspect
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from shiftwork import Breaker, JobStatus, control
from shiftwork.control.access.audit import Audit
from shiftwork.core.doc_kinds import ENCRYPTION, PLAN, PLAN_NAME
from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.values.envelopes import CIPHER, KeyInUse
from shiftwork.runtime.clock import until_idle
from shiftwork.store.docs import change, read, read_all
from tests.runtime.stage import Act, Stage, node_of, status

if TYPE_CHECKING:
    from shiftwork.handles.worker import Worker

LOST: Final = "could not be recorded: the store is away, says the test"
KEY: Final = urlsafe_b64encode(b"k" * 32).decode()


class Scene:
    """An app with a node, whose store can fail to keep events."""

    def __init__(self, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
        self.stage = stage
        self.app = stage.faulty_app(encryption_keys=KEY)
        self.act = Act()
        self.work: Worker[[], Any] = self.app.register_worker(
            "work", self.act, execution_mode="triggered", breaker=Breaker(name="bank"), timeout_seconds=None
        )
        self._caplog = caplog

    @property
    def control(self) -> control.control.Control:
        return self.app.control

    async def unheard(self, command: Awaitable[Any], event: str) -> Any:
        """Return what a command returns while no event can be kept. One warning names the event that is lost."""
        heard: list[str] = []
        self.app.on(event, lambda one: heard.append(one.message))
        self._caplog.clear()
        self.stage.faults.fail("record")
        result = await command
        self.stage.faults.clear()
        lost = [line for line in self._caplog.messages if line.endswith(LOST)]
        assert len(heard) == 1, "hooks of this process hear of it"
        assert lost == [f"{heard[0]}, but the event {event} {LOST}"]
        return result

    async def ended(self) -> str:
        """The id of a job that was cancelled."""
        job = await self.work.enqueue()
        await (await self.control.store.open()).amend([job.id], Cancel(), self.control.now())
        return job.id


@pytest.fixture
def scene(stage: Stage, caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(stage, caplog)


async def a_job_is_cancelled(scene: Scene) -> None:
    job = await scene.work.enqueue()
    await scene.unheard(scene.app.cancel_job(job.id), "jobs.amended")
    assert await status(job) is JobStatus.CANCELLED


async def a_job_is_retried(scene: Scene) -> None:
    id = await scene.ended()
    assert (await scene.unheard(scene.app.retry_job(id), "jobs.amended")).status is JobStatus.QUEUED


async def a_job_is_discarded(scene: Scene) -> None:
    id = await scene.ended()
    await scene.unheard(scene.app.discard_job(id), "jobs.amended")
    assert await scene.app.find_jobs(ids=[id]) == []


async def a_signal_is_sent(scene: Scene) -> None:
    job = await scene.work.enqueue()
    await scene.unheard(scene.app.send(job.id, "approval"), "job.signalled")
    (signal,) = (await scene.control.jobs.get_shown(job.id))[2].signals
    assert signal.name == "approval"


async def a_stack_is_read(scene: Scene) -> None:
    await scene.app.start()
    job = await scene.work.enqueue()
    await until_idle()
    assert (await scene.unheard(scene.app.job_stack(job.id), "job.inspected")).job_id == job.id


async def a_flow_is_cancelled(scene: Scene) -> None:
    flow = await scene.app.enqueue_flow(scene.work.call())
    assert await scene.unheard(flow.cancel(), "flow.cancelled") == 1
    assert await status(flow.jobs[0]) is JobStatus.CANCELLED


async def many_jobs_are_cancelled(scene: Scene) -> None:
    job = await scene.work.enqueue()
    await scene.unheard(scene.control.bulk.change("cancel", worker="work"), "jobs.amended")
    assert await status(job) is JobStatus.CANCELLED


async def a_schedule_is_put(scene: Scene) -> None:
    put = scene.app.put_schedule("s", scene.work.call(), interval_seconds=60)
    assert (await scene.unheard(put, "schedule.put")).name == "s"
    assert [one.name for one in await scene.control.schedules.all()] == ["s"]


async def a_schedule_is_paused(scene: Scene) -> None:
    await scene.app.put_schedule("s", scene.work.call(), interval_seconds=60)
    await scene.unheard(scene.control.schedules.pause("s"), "schedule.paused")
    assert (await scene.control.schedules.get("s")).paused_at is not None


async def a_schedule_is_run(scene: Scene) -> None:
    await scene.app.put_schedule("s", scene.work.call(), interval_seconds=60)
    job = await scene.unheard(scene.control.schedules.run("s"), "schedule.run")
    assert await status(job) is JobStatus.QUEUED


async def a_schedule_is_deleted(scene: Scene) -> None:
    await scene.app.put_schedule("s", scene.work.call(), interval_seconds=60)
    await scene.unheard(scene.control.schedules.delete("s"), "schedule.deleted")
    assert await scene.control.schedules.all() == []


async def a_token_is_made(scene: Scene) -> None:
    _, secret = await scene.unheard(scene.control.tokens.create("ci", "read"), "token.created")
    assert secret
    assert [token.name for token in await scene.control.tokens.all()] == ["ci"]


async def a_token_is_revoked(scene: Scene) -> None:
    await scene.control.tokens.create("ci", "read")
    await scene.unheard(scene.control.tokens.revoke("ci"), "token.revoked")
    (token,) = await scene.control.tokens.all()
    assert token.revoked_at is not None


def _ignore(*_progress: object) -> None:
    """Report no progress."""


async def jobs_get_another_key(scene: Scene) -> None:
    await scene.work.enqueue()
    done = await scene.unheard(scene.control.encryption.rekey(_ignore), "jobs.amended")
    assert await read_all(scene.stage.store, ENCRYPTION) == {done.key: KeyInUse(CIPHER)}


async def a_key_is_given_up(scene: Scene) -> None:
    await change(scene.stage.store, ENCRYPTION, "lost", lambda _: KeyInUse(CIPHER))
    await scene.unheard(scene.control.encryption.give_up("lost", _ignore), "jobs.amended")
    assert (await read_all(scene.stage.store, ENCRYPTION))["lost"].retired


async def a_node_is_drained(scene: Scene) -> None:
    await scene.app.start()
    name = node_of(scene.app).name
    assert (await scene.unheard(scene.app.drain_node(name), "node.drained")).drained_at is not None


async def a_node_takes_work_again(scene: Scene) -> None:
    await scene.app.start()
    name = node_of(scene.app).name
    await scene.app.drain_node(name)
    assert (await scene.unheard(scene.app.undrain_node(name), "node.drained")).drained_at is None


async def a_worker_is_disabled(scene: Scene) -> None:
    await scene.app.start()
    await scene.unheard(scene.app.disable_worker("work"), "worker.disabled")
    survey = await scene.stage.store.survey(["work"], scene.control.now())
    assert not survey.lanes["work"].state.enabled


async def a_worker_is_rescheduled(scene: Scene) -> None:
    scene.app.register_worker("tick", Act(), cron="0 3 * * *")
    await scene.app.start()
    await scene.unheard(scene.app.reschedule_worker("tick", cron="0 4 * * *"), "worker.rescheduled")
    seen = next(one for one in (await scene.control.system.overview()).workers if one.config.name == "tick")
    assert seen.config.cron == "0 4 * * *"


async def a_worker_is_triggered(scene: Scene) -> None:
    await scene.app.start()
    job = await scene.unheard(scene.control.workers.trigger("work", {}), "job.triggered")
    assert [one.id for one in await scene.app.find_jobs()] == [job.id]


async def a_worker_is_forgotten(scene: Scene) -> None:
    old = scene.stage.app(encryption_keys=KEY)
    old.register_worker("gone", Act(), execution_mode="triggered")
    await old.start()
    await scene.stage.stop(old)
    await scene.unheard(scene.app.forget_worker("gone"), "worker.forgotten")
    assert "gone" not in await scene.app.workers()


async def a_breaker_is_opened(scene: Scene) -> None:
    await scene.app.start()
    assert (await scene.unheard(scene.app.open_breaker("bank"), "breaker.opened")).state == "open"


async def a_breaker_is_closed(scene: Scene) -> None:
    await scene.app.start()
    await scene.app.open_breaker("bank")
    assert (await scene.unheard(scene.app.close_breaker("bank"), "breaker.closed")).state == "closed"


async def a_pool_is_paused(scene: Scene) -> None:
    await scene.app.start()
    await scene.unheard(scene.app.pause_pool("default"), "pool.paused")
    assert (await scene.control.system.overview()).pools[0].change.paused


async def a_pool_is_resumed(scene: Scene) -> None:
    await scene.app.start()
    await scene.app.pause_pool("default")
    await scene.unheard(scene.app.resume_pool("default"), "pool.resumed")
    assert not (await scene.control.system.overview()).pools[0].change.paused


async def a_pool_gets_other_bounds(scene: Scene) -> None:
    await scene.app.start()
    await scene.unheard(scene.control.pools.scale("default", 2, 3), "pool.bounds")
    bounds = (await scene.control.system.overview()).pools[0].bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == (2, 3)


async def pools_are_planned(scene: Scene) -> None:
    scene.app.register_pool("wide", min_workers=1, max_workers=8)
    scene.app.register_worker("wide", Act(), execution_mode="triggered", pool="wide")
    await scene.app.start()
    await scene.app.scale_pool("wide", min_workers=5)
    planned = await scene.unheard(scene.control.pools.plan(), "pool.scaled")
    assert planned.decisions["wide"][0].target == 5
    assert await read(scene.stage.store, PLAN, PLAN_NAME) == planned.plan


COMMANDS: Final[list[Callable[[Scene], Awaitable[None]]]] = [
    a_job_is_cancelled,
    a_job_is_retried,
    a_job_is_discarded,
    a_signal_is_sent,
    a_stack_is_read,
    a_flow_is_cancelled,
    many_jobs_are_cancelled,
    a_schedule_is_put,
    a_schedule_is_paused,
    a_schedule_is_run,
    a_schedule_is_deleted,
    a_token_is_made,
    a_token_is_revoked,
    jobs_get_another_key,
    a_key_is_given_up,
    a_node_is_drained,
    a_node_takes_work_again,
    a_worker_is_disabled,
    a_worker_is_rescheduled,
    a_worker_is_triggered,
    a_worker_is_forgotten,
    a_breaker_is_opened,
    a_breaker_is_closed,
    a_pool_is_paused,
    a_pool_is_resumed,
    a_pool_gets_other_bounds,
    pools_are_planned,
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
async def test_a_change_whose_event_is_lost_is_still_a_success(
    command: Callable[[Scene], Awaitable[None]], scene: Scene
) -> None:
    await command(scene)


async def test_every_command_that_leaves_an_event_is_tried_above(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit is called in no other functions of `control` than those that the commands above go through."""
    came_from: set[str] = set()
    for name in ("record", "record_change", "publish"):
        monkeypatch.setattr(Audit, name, _heard(getattr(Audit, name), came_from))
    for command in COMMANDS:
        stage = Stage()
        await command(Scene(stage, caplog))
        await stage.close()
    assert {one for one in came_from if not one.startswith("Audit.")} == set(_callers_of_the_audit())


def _heard(method: Callable[..., Any], came_from: set[str]) -> Callable[..., Any]:
    def heard(*args: Any, **kwargs: Any) -> Any:
        here = inspect.currentframe()
        assert here is not None
        assert here.f_back is not None
        came_from.add(here.f_back.f_code.co_qualname)
        return method(*args, **kwargs)

    return heard


def _callers_of_the_audit() -> Iterator[str]:
    """The functions of `control` that call a method of an audit."""
    for path in Path(control.__file__).parent.rglob("*.py"):
        for kind in ast.parse(path.read_text(encoding="utf-8")).body:
            for function in kind.body if isinstance(kind, ast.ClassDef) else ():
                called = (part.func for part in ast.walk(function) if isinstance(part, ast.Call))
                if any(isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self._audit" for one in called):
                    assert isinstance(kind, ast.ClassDef)
                    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
                    yield f"{kind.name}.{function.name}"
