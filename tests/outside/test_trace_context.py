"""What is read of the headers traceparent and tracestate, by the text of W3C's Trace Context, Level 2.

`make outside` runs the harness of the specification itself, where it is at hand.
"""

import pytest

from shiftwork.telemetry.tracing import LONGEST_STATE, carried_from

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (PARENT, PARENT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-02", f"00-{TRACE}-{SPAN}-02"),  # the random flag of Level 2
        (f" \t{PARENT}\t ", PARENT),
        # later versions may have more, and are passed on as the version that we know
        (f"01-{TRACE}-{SPAN}-01", PARENT),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", PARENT),
        (f"cc-{TRACE}-{SPAN}-01-", PARENT),
        (f"cc-{TRACE}-{SPAN}-01.what", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"{PARENT}-", None),
        (f"{PARENT}-what", None),
        # lengths, characters and zeros
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (PARENT.upper(), None),
        (f"0-{TRACE}-{SPAN}-01", None),
        (f"000-{TRACE}-{SPAN}-01", None),
        (f".0-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        (f"00-{TRACE}0-{SPAN}-01", None),
        (f"00-.{TRACE[1:]}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN[1:]}-01", None),
        (f"00-{TRACE}-{SPAN}0-01", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        (f"00-{TRACE}-{SPAN}-001", None),
        (f"00-{TRACE}-{SPAN}-.1", None),
        (f"{PARENT},{PARENT}", None),
        (f"{PARENT}\n", None),
        ("", None),
        (None, None),
    ],
)
def test_traceparent(given: str | None, read: str | None) -> None:
    assert carried_from(given, "shop=1") == (None if read is None else f"{read} shop=1")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, ""),
        ("", ""),
        (" \t, ,", ""),
        ("shop=1,bank=2", "shop=1,bank=2"),
        ("shop=1 \t, \t bank=2,", "shop=1,bank=2"),
        ("shop= a b", "shop= a b"),
        ("shop=!\"#$%&'()*+-./:;<>?@[]^_`{|}~", "shop=!\"#$%&'()*+-./:;<>?@[]^_`{|}~"),
        ("0a_-*/@b@=1", "0a_-*/@b@=1"),
        (f"{'k' * 256}={'v' * 200}", f"{'k' * 256}={'v' * 200}"),
        ("shop=1,bank=2,shop=3", "shop=1,bank=2"),
        (",".join(f"k{n}={n}" for n in range(32)), ",".join(f"k{n}={n}" for n in range(32))),
        # one wrong entry, and the whole is not to be trusted
        (",".join(f"k{n}={n}" for n in range(33)), ""),
        (f"shop=1,{'k' * 257}=1", ""),
        (f"shop=1,bank={'v' * 257}", ""),
        *((f"shop=1,{wrong}", "") for wrong in ("bank", "bank=", "=1", "bank =1", "BANK=1", "b.k=1", "@b=1", "b=1=2")),
        *((f"shop=1,{wrong}", "") for wrong in ("_b=1", "bank=\x01", "bank=é", "bank=a\tb")),
    ],
)
def test_tracestate(given: str | None, read: str) -> None:
    assert carried_from(PARENT, given) == f"{PARENT} {read}".strip()


def test_a_long_tracestate_loses_whole_entries_large_ones_first_and_then_the_last() -> None:
    large, small = f"big={'x' * 200}", [f"k{n:02}={'x' * 40}" for n in range(12)]
    carried = carried_from(PARENT, ",".join([large, *small]))
    assert carried is not None
    kept = carried.removeprefix(f"{PARENT} ").split(",")
    assert kept == small[: len(kept)]
    assert len(kept) == (LONGEST_STATE + 1) // len(f"{small[0]},")
