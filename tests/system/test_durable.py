"""Durable functions and flows in processes of their own, on a store that all of them share."""

import importlib
import logging
from pathlib import Path

import pytest

from shiftwork import JobStatus
from tests.polling import eventually
from tests.system.conftest import PROGRAMS

pytestmark = pytest.mark.timeout(180)  # processes; the machine may be busy


async def test_steps_survive_the_death_of_their_process_and_waits_end_in_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ORDERS_FOLDER", str(tmp_path))
    monkeypatch.setenv("ORDERS_STORE", f"sqlite:///{tmp_path}/shiftwork.db")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    caplog.set_level(logging.CRITICAL, "shiftwork")  # the process that dies
    program = importlib.import_module("orders")
    await program.app.start()
    try:
        flow = await program.app.enqueue_flow(program.ship.call(charged=program.order.call(n=7).output))
        order = flow.jobs[0]

        async def waits() -> bool:
            return (await order.refresh()).record.wait is not None

        await eventually(waits, within=120)
        await program.app.send(order.id, "approval", "by ann")
        assert await flow.result(120) == "CHARGE 7: ['charge 7', 'pack CHARGE 7 by ann']"
        await order.refresh()
        assert (order.status, order.crashes, order.attempt) == (JobStatus.COMPLETED, 1, 1)
        assert (await flow.status()).counts == {"completed": 3}
    finally:
        await program.app.stop(0.0)
