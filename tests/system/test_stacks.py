"""What jobs are doing and what they cost, seen from outside: in every kind of pool, even if they no longer respond."""

from contextlib import suppress

import pytest

from shiftwork import NodeSilentError
from shiftwork.views.instances import JobStack
from tests.polling import eventually
from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


async def spinning_is_seen(mill: Mill, pid: int) -> bool:
    """The process that spins uses the processor; what all use of the memory is counted as their node's."""
    beats = [known.beat for known in await (await mill.app.control.store.open()).instances()]
    (spinning,) = [beat for beat in beats if beat.pid == pid]
    (node,) = [beat.machine for beat in beats if beat.machine is not None]
    members = [beat for beat in beats if beat.pool]
    if not spinning.cpu or spinning.lag is None or node.cpu is None or not all(beat.memory for beat in members):
        return False
    assert (node.memory_used or 0) > sum(beat.memory for beat in members), "and the node itself"
    return True


async def stack(mill: Mill, job_id: str, *, answers: bool) -> JobStack:
    """What a job is doing, as its process reports it, or as it is seen in one that does not answer.

    On a busy machine, a process may miss the second in which it is asked, and a node the five.
    """
    seen: list[JobStack] = []

    async def found() -> bool:
        with suppress(NodeSilentError):
            seen.append(await mill.app.job_stack(job_id))
        return bool(seen) and ("does not answer" not in seen[-1].stack) is answers

    await eventually(found, failure=lambda: f"{seen}\n{mill.logs()}")
    return seen[-1]


@pytest.mark.parametrize("lease", [6.0])  # what a process costs is reported three times within it
async def test_what_a_job_is_doing_is_seen_in_every_kind_of_pool(mill: Mill, lease: float) -> None:
    await mill.up(mill.node())
    module = mill.module
    places = {
        module.wait_in_a_coroutine: "in wait_in_a_coroutine\n    await asyncio.sleep(0.01)",
        module.wait_in_a_thread: "in wait_in_a_thread\n    ",
        module.spin: "in spin\n    ",
    }
    for worker, place in places.items():
        job = await worker.enqueue(number=0)
        (line,) = await mill.noted(worker.name)
        seen = await stack(mill, job.id, answers=True)
        assert (seen.job_id, seen.pid) == (job.id, line.pid)
        own = seen.stack.partition("\n\n")[0]
        assert own.startswith(f"job {job.id} of {worker.name}:\n  File "), seen.stack
        assert place in own, seen.stack
        assert "shiftwork/runtime" not in own, "it begins with the user's function"

    await eventually(lambda: spinning_is_seen(mill, line.pid), failure=mill.logs)

    for holder, place in ((module.hold_the_loop, "in hold_loop"), (module.hold_everything, "in hold")):
        job = await holder.enqueue(number=0, seconds=20)
        await mill.noted(place.removeprefix("in "))
        seen = await stack(mill, job.id, answers=False)
        assert place in seen.stack, seen.stack
