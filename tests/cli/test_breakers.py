"""`shiftwork breakers`: what each guards, closing one, and holding one open."""

import re

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.control.access.audit import current_actor
from shiftwork.core.doc_kinds import GATES
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.workers.admission import Gates
from tests.cli.terminal import URL, Terminal, in_shop


@pytest.fixture
def bank(shop: Terminal) -> Terminal:
    """A shop two of whose workers share a breaker, as the next version of the app has it."""

    async def guard(app: WorkerOrchestrator) -> None:
        store = await app.control.store.open()
        versions = {doc.name: doc.version for doc in await store.docs("gates")}
        for name in ("fetch", "resize"):
            gates = Gates(worker=name, breaker="bank")
            assert await store.put([Doc("gates", name, GATES.encode(gates), versions[name])]) == [True]

    in_shop(guard)
    return shop


def test_a_breaker_is_held_open_and_closed(bank: Terminal) -> None:
    assert re.search(r"^bank +closed +- +0 +- +fetch, resize +-$", bank.ok("breakers"), re.MULTILINE)
    said = bank.ok("breakers", "open", "bank", "--reason", "maintenance")
    assert said == (
        "breaker bank is held open; running jobs continue, queued ones wait until: "
        f"shiftwork breakers close bank --store {URL}\n"
    )
    held = rf"^bank +open +\S+( s ago)? +0 +never +fetch, resize +{re.escape(current_actor())}: maintenance$"
    assert re.search(held, bank.ok("breakers"), re.MULTILINE)
    assert "breaker bank is held open by" in bank.ok("status")
    assert "shiftwork breakers close bank" in bank.ok("status")
    assert bank.ok("breakers", "close", "bank", "--reason", "done").startswith("breaker bank is closed; ")
    events = bank.json("events", "--name", "breaker.opened", "--name", "breaker.closed")["events"]
    assert [(event["name"], event["by"], event["data"]["reason"]) for event in events] == [
        ("breaker.opened", current_actor(), "maintenance"),
        ("breaker.closed", current_actor(), "done"),
    ]


def test_a_breaker_is_held_open_for_a_time(bank: Terminal) -> None:
    said = bank.ok("breakers", "open", "bank", "--for", "2h")
    assert "queued ones wait for 2 h, then one run probes it; or until: shiftwork breakers close bank" in said
    assert re.search(r"^bank +open +.* in (119 min|2 h) +fetch, resize", bank.ok("breakers"), re.MULTILINE)
    (shown,) = bank.json("breakers")["breakers"]
    assert (shown["state"], shown["forced_by"], shown["reason"]) == ("open", current_actor(), None)
    assert bank.json("breakers", "close", "bank")["breaker"]["state"] == "closed"
    assert "is not a duration" in bank.refused("breakers", "open", "bank", "--for", "soon", code=2)


def test_an_unknown_breaker_is_named_with_the_nearest(bank: Terminal) -> None:
    for verb in ("open", "close"):
        said = bank.refused("breakers", verb, "bnak")
        assert said == "shiftwork: there is no breaker 'bnak': did you mean 'bank'?\n"


def test_without_breakers_it_says_so(shop: Terminal) -> None:
    result = shop.run("breakers")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no worker has a breaker\n")


def test_the_store_of_an_app_is_enough(bank: Terminal) -> None:
    assert bank.json("breakers", "--app", "shop:app", store=None) == bank.json("breakers")
    assert "bank is closed" in bank.ok("breakers", "close", "bank", "--app", "shop:app", store=None)
