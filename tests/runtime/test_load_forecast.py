"""The leader looks ahead: yesterday's peak raises a pool before it comes again, and the scaling event says so."""

from shiftwork.core.doc_kinds import HISTORY
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.observing.pool_history import DAY, HOUR, MINUTE, Hour, Moment, Point, hour_name
from shiftwork.core.scaling.plan import totals
from shiftwork.runtime.clock import ManualClock
from tests.runtime.stage import Stage, node_of

BUSY = Point(0, 14, 14, 14, None, 28, 0, 0, None, None, 28, 840.0)
"""A minute of 14 busy slots: 28 jobs of 30 s."""
IDLE = Point(0, 0, 1, 1, None, 0, 0, 0, None, None, 0, 0.0)


async def remember(stage: Stage, *, begin: float, end: float) -> None:
    """Write a yesterday that was busy from one time of today to another."""
    hours: dict[int, Hour] = {}
    for minute in range(26 * 60):
        at = stage.clock.now() - 26 * HOUR + minute * MINUTE
        point = BUSY if begin - DAY < at <= end - DAY else IDLE
        hour = hours.setdefault(int(at // HOUR), Hour(int(at // HOUR)))
        hour.moments.append(Moment(at, {"mail": point}))
    for number, hour in hours.items():
        await stage.store.put([Doc(HISTORY.name, hour_name(number), HISTORY.encode(hour))])


async def slots(stage: Stage) -> int:
    (app,) = stage.apps
    return totals((await node_of(app).plan()).plan)["mail"]


async def test_yesterdays_peak_raises_the_floor_and_lets_go(stage: Stage, clock: ManualClock) -> None:
    now = clock.now()
    await remember(stage, begin=now + 20 * MINUTE, end=now + 35 * MINUTE)
    app = stage.app()
    app.register_pool("mail", max_workers=10, scale_down_after_seconds=1)
    await app.start()
    await clock.advance(9 * MINUTE)
    assert await slots(stage) == 1
    await clock.advance(7 * MINUTE)
    assert await slots(stage) == 10
    events = await stage.store.events(0, 100)
    first = next(event for event in events if event.name == "pool.scaled" and "1 → " in event.message)
    assert "yesterday's work needed" in first.message
    await clock.advance(18 * MINUTE)
    assert await slots(stage) == 1


async def test_a_node_that_does_not_lead_and_a_pool_that_opted_out_are_not_raised(
    stage: Stage, clock: ManualClock
) -> None:
    now = clock.now()
    await remember(stage, begin=now, end=now + HOUR)
    app = stage.app()
    app.register_pool("mail", look_ahead=False)
    await app.start()
    await clock.advance(3 * MINUTE)
    assert await slots(stage) == 1


async def test_damaged_history_is_read_as_none(stage: Stage, clock: ManualClock) -> None:
    for hour in range(28):
        await stage.store.put([Doc(HISTORY.name, f"{hour:02}", b"\x93\x01\xc1")])
    app = stage.app()
    app.register_pool("mail")
    await app.start()
    await clock.advance(3 * MINUTE)
    assert await slots(stage) == 1
