"""`shiftwork record`: a file that `shiftwork plan` reads, or the reason why there is none."""

from shiftwork import WorkerOrchestrator
from shiftwork.sim.reading import AS_WRITTEN, read_scenario
from tests.cli.terminal import Terminal, in_shop
from tests.sim.recorded_past import past, put


def remember(minutes: int) -> None:
    async def write(app: WorkerOrchestrator) -> None:
        hours = past(app.control.now(), minutes, lambda _: 30, pool="images", worker="resize")
        await put(await app.control.store.open(), hours)

    in_shop(write)


def test_the_last_day_is_recorded_and_read_again(shop: Terminal) -> None:
    remember(27 * 60)
    said = shop.run("record", "-o", "day.toml")
    assert said.exit_code == 0, said.output
    assert said.stderr == "wrote day.toml; next: shiftwork plan day.toml\n"
    text = (shop.folder / "day.toml").read_text()
    configuration = read_scenario(text).configurations[AS_WRITTEN]
    assert list(configuration.workers) == ["resize"]
    assert list(configuration.workers["resize"].arrivals) == [1_800.0] * 24
    assert (configuration.pools["images"].kind, configuration.pools["images"].max_workers) == ("thread", 4)
    assert "No node runs now" in text
    assert shop.ok("record") == text


def test_why_there_is_nothing_to_record(shop: Terminal) -> None:
    assert "there is no history yet" in shop.refused("record")
    remember(20)
    assert "the history has 20 minutes, and a record needs an hour" in shop.refused("record")
    assert "there is no database" in shop.refused("record", store="sqlite:///none.db", code=3)
    remember(90)
    assert "nowhere/day.toml cannot be written" in shop.refused("record", "-o", "nowhere/day.toml", code=2)
