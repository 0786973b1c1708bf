"""Every kind of record is in one table, and a damaged one is read as None, whatever is wrong with it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftwork.core import doc_kinds as docs
from shiftwork.core.doc_kinds import ATTEMPT, EVENT, KINDS, READ_BY_CLAIMS, SCHEMA, Kind, damaged_doc
from shiftwork.core.model.doc_types import Doc
from tests.core.records import ALL, VALUES, Damage, damages

CASES = [(kind, damage) for kind in ALL for damage in damages(kind)]


def test_every_kind_of_record_has_an_example_here_and_a_line_in_the_table() -> None:
    assert VALUES.keys() == ALL.keys()
    table = re.findall(r"^    ([a-z_]+) {2,}", docs.__doc__ or "", re.MULTILINE)
    assert {*table} == {"kind", SCHEMA, *KINDS}
    for name, kind in KINDS.items():
        assert re.search(rf"^    {name} .*{kind.type.__name__} ", docs.__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("kind", ALL.values(), ids=repr)
def test_a_record_that_was_written_is_read(kind: Kind[Any]) -> None:
    body = kind.encode(VALUES[kind.name])
    assert kind.decode(body) == VALUES[kind.name]
    assert kind.damage(body) is None


@pytest.mark.parametrize(("kind", "damage"), CASES, ids=repr)
def test_a_damaged_record_is_read_as_none_with_a_reason(kind: str, damage: Damage) -> None:
    assert ALL[kind].decode(damage.body) is None
    assert ALL[kind].damage(damage.body)


@pytest.mark.parametrize("kind", ALL.values(), ids=repr)
@given(st.data())
def test_no_damage_to_a_record_raises(kind: Kind[Any], data: st.DataObject) -> None:
    body = bytearray(kind.encode(VALUES[kind.name]))
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=3)):
        body[at] = data.draw(st.integers(0, 255))
    assert (kind.decode(bytes(body)) is None) == (kind.damage(bytes(body)) is not None)


@pytest.mark.parametrize("kind", READ_BY_CLAIMS)
def test_a_damaged_record_that_claims_read_is_named(kind: str) -> None:
    assert damaged_doc(Doc(kind, "n", ALL[kind].encode(VALUES[kind]))) is None
    assert (damaged_doc(Doc(kind, "n", b"\xa1\xff")) or "").startswith(f"the {kind} record n cannot be read (")


def test_damaged_events_and_attempts_say_so() -> None:
    assert docs.read_event(7, EVENT.encode(VALUES["event"])).seq == 7
    event = docs.read_event(7, b"\xa1\xff")
    assert (event.seq, event.name) == (7, "unreadable")
    assert event.message.startswith("event 7 cannot be read: ")
    assert docs.read_attempt(ATTEMPT.encode(VALUES["attempt"])) == VALUES["attempt"]
    assert docs.read_attempt(b"\xa1\xff").kind == "unreadable"
