"""What jobs are doing, seen from outside: in every kind of pool, also in processes that can no longer say so."""

import pytest

from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


async def test_what_a_job_is_doing_is_seen_in_every_kind_of_pool(mill: Mill) -> None:
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
        seen = await mill.app.job_stack(job.id)
        assert (seen.job_id, seen.pid) == (job.id, line.pid)
        own = seen.stack.partition("\n\n")[0]
        assert own.startswith(f"job {job.id} of {worker.name}:\n  File "), seen.stack
        assert place in own, seen.stack
        assert "windlass/runtime" not in own, "it begins with the user's function"

    for holder, place in ((module.hold_the_loop, "in hold_loop"), (module.hold_everything, "in hold")):
        job = await holder.enqueue(number=0, seconds=20)
        await mill.noted(place.removeprefix("in "))
        seen = await mill.app.job_stack(job.id)
        assert "does not answer" in seen.stack
        assert place in seen.stack, seen.stack
