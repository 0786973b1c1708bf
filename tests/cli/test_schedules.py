"""`shiftwork schedules`, `schedule …` and `reschedule`: what they print and change."""

from tests.cli.terminal import Terminal


def test_a_schedule_is_put_shown_paused_run_and_deleted(shop: Terminal) -> None:
    said = shop.ok(
        "schedule", "put", "small", "resize", "path=a.png", "width=320", "--cron", "0 3 * * *", "--tag", "acme"
    )
    assert said.startswith("schedule small runs resize at 03:00 every day, UTC\n")
    assert said.count("03:00:00 UTC") == 10
    shown = shop.json("schedule", "show", "small")["schedule"]
    assert shown["payload"] == {"path": "a.png", "width": 320}
    assert (shown["tags"], len(shown["next_times"])) == (["acme"], 10)
    assert "shiftwork schedule resume small" in shop.ok("schedule", "pause", "small")
    assert "PAUSED" in shop.ok("schedules", "--worker", "resize")
    shop.ok("schedule", "resume", "small")
    assert "of resize is queued" in shop.ok("schedule", "run", "small")
    again = shop.run("schedule", "run", "small")
    assert (again.exit_code, "has not ended" in again.stderr) == (1, True)
    shop.ok("schedule", "delete", "small")
    assert shop.json("schedules") == {"schedules": []}
    wrong = shop.run("schedule", "pause", "small")
    assert (wrong.exit_code, "there is no schedule 'small'" in wrong.stderr) == (1, True)


def test_a_preview_stores_nothing(shop: Terminal) -> None:
    said = shop.ok("schedule", "preview", "--cron", "30 9 * * 1-5", "--timezone", "Asia/Tokyo")
    assert said.count("09:30:00 JST") == 10
    assert shop.json("schedules") == {"schedules": []}


def test_a_worker_is_rescheduled_and_reset(shop: Terminal) -> None:
    said = shop.ok("reschedule", "fetch", "--every", "30s")
    assert "every 30 seconds" in said
    assert "shiftwork reschedule fetch --reset" in said
    assert "every 30 seconds*" in shop.ok("workers")
    shop.ok("reschedule", "fetch", "--reset")
    assert "*" not in shop.ok("workers")
    assert shop.run("reschedule", "fetch").exit_code == 1
